"""Takes secrets out of a JSON value that was read, in every string, key and JSON text inside a string."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from pml.schemas.sanitiser.credentials import Rule, begins_private_key, ends_private_key, redact, rules_for
from pml.schemas.sanitiser.markers import REDACTED, JsonValue
from pml.schemas.sanitiser.reading import Reader, TooMany, free_name

_NESTED_MAX = 3  # levels of JSON inside strings inside JSON; deeper ones are treated as text


def redact_value(value: JsonValue, strings: Sequence[str], nested: int = 0) -> JsonValue:
    """The value without secrets.

    Args:
        value: JSON as `Reader` gave it.
        strings: all strings in it, keys too; most values have none with a trace of a secret, and end here.
        nested: how many levels of JSON text this value lies in.
    """
    rules = rules_for("\n".join(dict.fromkeys(strings)))
    return _Redaction(rules, nested).value(value) if rules else value


def redact_text(text: str, nested: int = 0) -> str:
    """The text without secrets."""
    rules = rules_for(text)
    return _Redaction(rules, nested).text(text) if rules else text


class _Redaction:
    __slots__ = ("_done", "_nested", "_rules")

    def __init__(self, rules: list[Rule], nested: int) -> None:
        self._rules = rules
        self._nested = nested
        self._done: dict[str, str] = {}

    def value(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return self._array(value)
        if isinstance(value, dict):
            return self._object(value)
        return value

    def text(self, text: str) -> str:
        known = self._done.get(text)
        if known is None:
            known = self._done[text] = redact(self._json(text), self._rules)
        return known

    def _object(self, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        answer: dict[str, JsonValue] = {}
        for key, item in value.items():
            name = self.text(key)
            answer[name if name not in answer else free_name(answer, name)] = self.value(item)
        return answer

    def _array(self, value: list[JsonValue]) -> list[JsonValue]:
        answer: list[JsonValue] = []
        inside_key = False
        for item in value:
            answer.append(REDACTED if inside_key and isinstance(item, str) else self.value(item))
            if isinstance(item, str):
                inside_key = begins_private_key(item) or (inside_key and not ends_private_key(item))
        return answer

    def _json(self, text: str) -> str:
        """JSON text, judged by its own names; as it was where nothing was found."""
        if self._nested >= _NESTED_MAX or text.lstrip()[:1] not in ("{", "[", '"'):
            return text
        try:
            inner = orjson.loads(text)
            reader = Reader(len(text))
            clean = redact_value(reader.read(inner), reader.strings, self._nested + 1)
        except (orjson.JSONDecodeError, TooMany):
            return text
        return text if clean == inner else orjson.dumps(clean).decode()
