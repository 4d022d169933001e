"""What a session has at hand: whether anything in it names a value for an input (spec story 12.4)."""

from __future__ import annotations

from collections.abc import Sequence

from pml.processors.learning.argument_candidates import LEFT_OUT, candidates
from pml.processors.learning.parameters import Parameter
from pml.processors.learning.scene import HISTORY_MOST, Past, Scene, scene, taken_apart

_TEXTS = frozenset({"string", "array"})


class Holdings:
    """Elements of a session and the visible text, looked through for one input after another.

    An input is at hand where a source names a value for it: a default, a habit, a value that its schema
    allows, a piece of the text, an earlier argument or a field of an earlier result that is called alike or
    was seen to be meant. How likely that value is right is another question (`ArgumentSources.guesses`).
    """

    def __init__(self, past: Sequence[Past], text: str) -> None:
        """The elements that ended, the latest last, and the text that is visible now; empty: none."""
        self._past, self._text = past, text
        self._scene: Scene | None = None
        self._looked: dict[tuple[str, str], bool] = {}

    def has(self, wanted: Parameter) -> bool:
        """Whether a value for it can be named at all."""
        if wanted.default is not None or wanted.constants or wanted.enum:
            return True
        key = wanted.tool, wanted.name
        if key not in self._looked:
            self._looked[key] = self._is_named(self.before(), wanted)
        return self._looked[key]

    def before(self) -> Scene:
        """What is known, taken apart once: when it is first needed."""
        if self._scene is None:
            self._scene = scene([taken_apart(each) for each in self._past[-HISTORY_MOST:]], self._text)
        return self._scene

    def _is_named(self, before: Scene, wanted: Parameter) -> bool:
        """Any piece of a text is a text, or an item of a list: that needs no look at all the others."""
        if wanted.type in _TEXTS and any(before.spans.values()):
            return True
        return any(each.value != LEFT_OUT for each in candidates(before, wanted))
