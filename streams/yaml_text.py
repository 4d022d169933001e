"""YAML, and JSON, as people write it."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from pml.schemas.canonical import NESTING_MAX

# What people write has fewer; a few lines that name each other may stand for any number of values.
VALUES_MAX = 1_000_000
# So many letters count as one of them.
LETTERS = 64
# PyYAML adds up `1:1:1` (minutes and seconds) in the square of its length, and Python writes no number of
# 4,300 digits that it reads from hexadecimal ones.
NUMBER_LETTERS_MAX = 400
# What all mappings of a text may merge.
MERGED_MAX = 100_000
_MERGE = "tag:yaml.org,2002:merge"
# What PyYAML says before it quotes the name of an anchor or tag. Else it quotes single characters.
_BEFORE_NAMES = re.compile(
    "^(found undefined alias|found undefined tag handle|duplicate tag handle"
    "|could not determine a constructor for the tag) .*$",
    re.DOTALL,
)
_TOO_DEEP = f"it is nested deeper than {NESTING_MAX} levels"


class NotYAML(ValueError):
    """A text is no YAML. Its place is told and not the text: there may be secrets in it.

    `problem` is what is wrong, `place` its line and column, from 1, or None where the reader does not say.
    """

    def __init__(self, problem: str, place: tuple[int, int] | None = None) -> None:
        super().__init__("it is no YAML")
        self.problem = problem
        self.place = place


class _Loader(yaml.SafeLoader):
    """What is merged is put together, and a number read, before anybody sees how much it is: count first."""

    merged = 0

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        for each in _merged(node):
            self.flatten_mapping(each)
            self.merged += len(each.value)
            if self.merged > MERGED_MAX:
                raise NotYAML(f"its mappings merge more than {MERGED_MAX:,} values")
        super().flatten_mapping(node)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        self._check_length(node)
        return super().construct_yaml_int(node)

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        self._check_length(node)
        return super().construct_yaml_float(node)

    def _check_length(self, number: yaml.ScalarNode) -> None:
        if len(self.construct_scalar(number)) > NUMBER_LETTERS_MAX:
            problem = f"a number has more than {NUMBER_LETTERS_MAX} letters"
            raise NotYAML(problem, _place(number.start_mark))


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_yaml_float)


def _merged(node: yaml.MappingNode) -> list[yaml.MappingNode]:
    """The mappings that one merges; what it names there and is none is told when it is put together."""
    named = [value for key, value in node.value if key.tag == _MERGE]
    each = [part for value in named for part in (value.value if _is_sequence(value) else [value])]
    return [part for part in each if isinstance(part, yaml.MappingNode)]


def _is_sequence(node: yaml.Node) -> bool:
    return isinstance(node, yaml.SequenceNode)


def read_yaml(text: str) -> Any:
    """What a text says.

    Raises:
        NotYAML: it is none, nests deeper than `NESTING_MAX` levels, has a value that cannot be, as a
            thirteenth month, or more than `VALUES_MAX` of them, counted wherever they are named again.
    """
    value = _loaded(text)
    _check_bounds(value)
    return value


def read_json_or_yaml(text: str) -> Any:
    """The same, and JSON as JSON: YAML takes 1e5 for a word, and half an emoji for a letter.

    JSON is as long as it is written: it is read as far down as Python reads it.

    Raises:
        NotYAML: as above.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return read_yaml(text)


def _loaded(text: str) -> Any:
    try:
        return yaml.load(text, _Loader)
    except NotYAML:
        raise
    except yaml.MarkedYAMLError as error:
        raise NotYAML(_BEFORE_NAMES.sub(r"\1", error.problem or ""), _place(error.problem_mark)) from None
    except RecursionError:
        raise NotYAML(_TOO_DEEP) from None
    except Exception:  # of any kind: they are the errors of what makes `!!int ""` or `!!bool x` a value
        raise NotYAML("it has a value that cannot be, as a date of a thirteenth month") from None


def _place(mark: yaml.Mark | None) -> tuple[int, int] | None:
    return None if mark is None else (mark.line + 1, mark.column + 1)


def _check_bounds(value: Any) -> None:
    """Refuse a value with too many others in it, as one that has itself in it."""
    waiting, count = [(value, 0)], 0
    while waiting:
        each, depth = waiting.pop()
        parts = _parts(each)
        count += 1 + (len(each) // LETTERS if isinstance(each, (str, bytes)) else 0)
        if count + len(waiting) + len(parts) > VALUES_MAX:
            raise NotYAML(f"it stands for more than {VALUES_MAX:,} values")
        if depth > NESTING_MAX:
            raise NotYAML(_TOO_DEEP)
        waiting += ((part, depth + 1) for part in parts)


def _parts(value: Any) -> list[Any]:
    """What a value holds: YAML makes tuples and sets too."""
    if isinstance(value, dict):
        return [*value, *value.values()]
    return [*value] if isinstance(value, (list, tuple, set)) else []
