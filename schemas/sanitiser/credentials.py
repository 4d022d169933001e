"""Secrets that a text shows by their own shape: private keys, web tokens, provider keys, what logs in.

Each rule has a cheap test for text that cannot hold it, and replaces what it finds. Order matters: what
spans most goes first. Rules repeat until nothing changes (at most `_ROUNDS`), so that a second run finds
nothing either.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from pml.schemas.sanitiser.assignments import names_secrets, redact_assignments
from pml.schemas.sanitiser.formats import SPREAD_FORMATS, WORD_FORMATS, Format, long_words
from pml.schemas.sanitiser.keys import looks_random
from pml.schemas.sanitiser.markers import REDACTED

Rule = Callable[[str], str]
_ROUNDS = 4

# RFC 7468, RFC 4716 (four dashes and spaces), PGP, PuTTY. A key that is cut off ends where its base64 ends.
_PEM_LABEL = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?"
_PRIVATE_KEY_BEGIN = re.compile(rf"-{{4,5}} ?BEGIN {_PEM_LABEL}(?: ?-{{4,5}})?|PuTTY-User-Key-File-[0-9]")
_PRIVATE_KEY_END = re.compile(rf"-{{4,5}} ?END {_PEM_LABEL}(?: ?-{{4,5}})?|Private-MAC: ?[0-9a-f]*")
_PRIVATE_KEY_REST = re.compile(r"[A-Za-z0-9+/=\s\\:,.-]*")

# RFC 7519 and 7516: base64url of `{"`, then two to four more parts. A run without parts is no token.
_WEB_TOKEN = re.compile(r"eyJ[\w-]{8,}+(?P<parts>(?:\.[\w-]*+){1,4})?")
# Discord's bot tokens: the bot's id, a time, a signature.
_DISCORD_TAIL = re.compile(r"\.[\w-]{6}\.[\w-]{27}")
_DISCORD = re.compile(r"[MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{27,}")

# RFC 3986: what stands before @ in an address; a name alone only where it looks random.
_USER_INFO = re.compile(
    r"://(?P<user>[^\s/\"'<>`\\@]{0,512})(?P<rest>(?:@[^\s/\"'<>`\\@]{0,512})*)@(?=[^\s/\"'<>@])"
)
# RFC 6750 and RFC 7617. Words after "bearer" or "basic" in prose are no credentials.
_BEARER = re.compile(r"(?i)bearer[ \t]{1,4}(?P<value>[\w.~+/=:-]{6,})")
_BEARER_WORD_MAX = 15
_BASIC = re.compile(r"(?i)basic[ \t]{1,4}(?P<value>[A-Za-z0-9+/]{4,}={0,2})")


def _format_rules(formats: Iterable[Format]) -> tuple[tuple[str, Rule], ...]:
    return tuple((shape.trigger, partial(shape.pattern.sub, REDACTED)) for shape in formats)


_WORD_RULES: Final = _format_rules(WORD_FORMATS)
_SPREAD_RULES: Final = _format_rules(SPREAD_FORMATS)


def rules_for(text: str) -> list[Rule]:
    """The rules that may find something in a text; none for most texts."""
    rules: list[Rule] = []
    if "PRIVATE KEY" in text or "PuTTY-User-Key" in text:
        rules.append(_redact_private_keys)
    if names_secrets(text):
        rules.append(redact_assignments)
    words = long_words(text)
    if "eyJ" in words:
        rules.append(_redact_web_tokens)
    if words:
        rules += [rule for trigger, rule in _WORD_RULES if trigger in words]
    rules += [rule for trigger, rule in _SPREAD_RULES if trigger in text]
    if "." in words and _DISCORD_TAIL.search(words) is not None:
        rules.append(_redact_discord)
    return rules + _login_rules(text)


def _login_rules(text: str) -> list[Rule]:
    rules: list[Rule] = []
    if "@" in text and "://" in text:
        rules.append(_redact_user_info)
    lowered = text.lower()
    if "bearer" in lowered:
        rules.append(_redact_bearer)
    if "basic" in lowered:
        rules.append(_redact_basic)
    return rules


def redact(text: str, rules: Iterable[Rule]) -> str:
    """The text without the secrets that the rules know."""
    for _ in range(_ROUNDS):
        before = text
        for rule in rules:
            text = rule(text)
        if text == before:
            return text
    return text


def begins_private_key(text: str) -> bool:
    """Whether a private key begins in a text and does not end there: the next lines belong to it."""
    begins = [match.start() for match in _PRIVATE_KEY_BEGIN.finditer(text)]
    return bool(begins) and _PRIVATE_KEY_END.search(text, begins[-1]) is None


def ends_private_key(text: str) -> bool:
    """Whether a private key that began on an earlier line ends on this one."""
    return _PRIVATE_KEY_END.search(text) is not None


def _redact_private_keys(text: str) -> str:
    pieces, position = [], 0
    ends_follow = True  # once no end follows, none follows later either: keeps this linear
    while (begin := _PRIVATE_KEY_BEGIN.search(text, position)) is not None:
        end = _PRIVATE_KEY_END.search(text, begin.end()) if ends_follow else None
        ends_follow = end is not None
        last = end or _PRIVATE_KEY_REST.match(text, begin.end()) or begin
        pieces += [text[position : begin.start()], REDACTED]
        position = last.end()
    return "".join([*pieces, text[position:]])


def _redact_web_tokens(text: str) -> str:
    return _WEB_TOKEN.sub(lambda match: REDACTED if match["parts"] else match[0], text)


def _redact_discord(text: str) -> str:
    return _DISCORD.sub(REDACTED, text)


def _redact_user_info(text: str) -> str:
    return _USER_INFO.sub(_without_user_info, text)


def _without_user_info(match: re.Match[str]) -> str:
    user = match["user"] + match["rest"]
    has_password = user.partition(":")[2] not in ("", REDACTED)
    return f"://{REDACTED}@" if has_password or looks_random(user) else match[0]


def _redact_bearer(text: str) -> str:
    return _BEARER.sub(_without_bearer, text)


def _without_bearer(match: re.Match[str]) -> str:
    value = match["value"]
    is_word = value.rstrip(".:").isalpha() and len(value) <= _BEARER_WORD_MAX
    return match[0] if is_word else match[0][: -len(value)] + REDACTED


def _redact_basic(text: str) -> str:
    return _BASIC.sub(_without_basic, text)


def _without_basic(match: re.Match[str]) -> str:
    value = match["value"]
    return match[0][: -len(value)] + REDACTED if _is_login(value) else match[0]


def _is_login(value: str) -> bool:
    """Whether base64 holds `user:password` (RFC 7617), perhaps with a letter too many behind it."""
    digits = value.rstrip("=")
    digits = digits[:-1] if len(digits) % 4 == 1 else digits
    return b":" in b64decode(digits + "=" * (-len(digits) % 4))
