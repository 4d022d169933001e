"""What the arguments of a call look like, without what they say (spec story 12.7)."""

from __future__ import annotations

from pml.schemas.base import Record


class ArgumentPattern(Record):
    """The shape of a call's arguments, taken of the full values before anything is redacted.

    Later releases may add fields; who reads patterns passes over those that it does not know.

    Attributes:
        has_file_path: a value is a path of a file or folder, or a file's name.
        file_extension: that of the first file, in lower case with its dot: `.json`.
        has_channel_ref: a value names a channel: `#prod`, or the argument is called `channel`.
        argument_count: how many arguments there are.
        types: the JSON type of each argument, by name.
        categories: of short values that look like one of few, by argument: 8 hex digits of their keyed hash.
    """

    has_file_path: bool = False
    file_extension: str | None = None
    has_channel_ref: bool = False
    argument_count: int = 0
    types: dict[str, str] = {}
    categories: dict[str, str] = {}
