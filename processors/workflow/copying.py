"""`dataclasses.replace` for frozen dataclasses that have fields and nothing else, in 60 % of its time.

Each event copies the session, its run and a task: a tenth of the time of a decision, before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

S = TypeVar("S")


def _copied(state: S, /, **changes: Any) -> S:
    """The state with other values in some fields.

    Raises:
        TypeError: a field that it does not have.
    """
    kind: Any = type(state)
    copy: S = object.__new__(kind)
    for name in kind.__dataclass_fields__:
        object.__setattr__(copy, name, changes.pop(name) if name in changes else getattr(state, name))
    if changes:
        raise TypeError(f"{kind.__name__} has no {', '.join(changes)}")
    return copy


if TYPE_CHECKING:  # a checker knows which fields may be given
    from dataclasses import replace
else:
    replace = _copied


__all__ = ["replace"]
