"""Secrets that a text gives under a name: `password=…`, `"apiKey": "…"`, `Authorization: …`, `--token …`.

One pass from left to right. A name is a run of letters, digits, `_`, `.` and `-`; `keys.secrecy` judges it;
then the value is found by how it is written: quoted (at any level of escaping), to the end of the line
(headers, YAML), or one word. A value that cannot be delimited is taken out to the end of its line: too much
rather than too little. Linear time: a name is scanned once from its first character, and the text goes on
behind the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from pml.schemas.sanitiser.keys import Secrecy, looks_random, secrecy
from pml.schemas.sanitiser.markers import REDACTED

_NAME = re.compile(
    r"(?<![\w.-])(?P<name>[\w.-]++)"
    r"(?:(?P<closed>\\{0,8}[\"'`]?\]?)[ \t]*+(?P<separator>:=|=>|={1,3}|:)[ \t]*+"
    r"|(?P<is>[ ](?:is|was)[ ]|[ ](?=['\"])))"
)
_TAG = re.compile(r"<(?P<name>[\w:.-]++)[^<>\n]{0,200}>(?P<value>[^<>]+)(?:(?=</)|(?<=…)\Z)")
_FLAG = re.compile(r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))--?(?P<name>[A-Za-z][\w.-]*+)[ \t]{1,4}(?=[^\s-])")
_LOGIN = re.compile(
    r"\blogin\s{1,4}[^\s]{1,128}\s{1,4}(?P<name>password)\s{1,4}(?P<value>[^\s]+)"
)  # a line of .netrc
_OWNER = re.compile(r"([A-Za-z]{2,20})[ ]\Z")
_OWNER_MAX = 22

_QUOTE = re.compile(r"(?P<prefix>[bBrRuUfF]{0,2})(?P<quote>\\{0,8}(?:\"\"\"|'''|[\"'`]))")
_WORD = re.compile(r"[^\s,;&\"'`<>]*")
_BLOCK = re.compile(  # a template, or YAML's block of lines
    r"\$?\{\{[^{}\n]{0,80}\}\}|[|>][+-]?[0-9]?[ \t]*(?:\r?\n[ \t]+[^\n]*)+"
)
_LINE_START = re.compile(r"(?:^|\n)[ \t]*(?:[-+#>*]|export|set)?[ \t]*\\{0,8}[\"']?\Z")
_LINE_START_MAX = 40
_HEADER_WORDS: Final = ("authorization", "cookie")

_HARMLESS = re.compile(
    r"""(?ix) [\s"'`]* (?:
        \[REDACTED\]…? | …+ | \.{3} | \*+ | [-_.,:;]*
      | \$\{[a-z_]\w{0,64}\} | \$?\{\{[^{}]{0,80}\}\} | %s | %\([a-z_]{1,40}\)s | <[a-z_ -]{1,40}>
      | (?:os\.environ|os\.getenv|process\.env)[\w.\[\]("')]{0,80}
      | str|string|bytes|int|bool|float|number|boolean|none|null|nil|undefined
      | true|false|any|required|optional
    ) [\s"'`,;)\]}]*"""
)
_HARMLESS_MAX = 120
_SUSPECT_REACH = 600  # nothing longer looks random, so a suspect value is read no further: keeps this linear
_SHORTEST_VALUE = 3  # shorter ones, as in "unexpected token: }", are punctuation
_DIGIT_OR_SIGN = re.compile(r"[^A-Za-z.,;:!?'\"()\s]")

# A superset of what `keys.secrecy` looks for. Those that lie inside common harmless words (passed, monkey,
# author, typing, side, design) come with what their word may look like.
_STEMS: Final = (
    "secret", "token", "cookie", "bearer", "mnemonic", "srf", "phrase", "codes", "kennwort", "senha",
    "contrase", "pwd", "jwt", "nonce", "cvv", "cvc",
)  # fmt: skip
_INSIDE_WORDS: Final = tuple(
    (
        stem,
        longer,
        tuple(re.compile(f"{word}{plural}(?![a-z])") for word in (stem, stem.capitalize(), stem.upper())),
    )
    for stem, plural, longer in (
        ("pass", "[eE]?", ("passw", "passp", "passc")),
        ("key", "[sS]?", ()),
        ("auth", "", ("authoriz", "authentic")),
        ("cred", "[sS]?", ("credential",)),
        ("sess", "", ("session",)),
        ("sig", "", ("signature",)),
        ("pin", "", ()),
        ("otp", "", ()),
        ("sid", "", ()),
        ("salt", "", ()),
    )
)
_SIGNS: Final = (":", "=", ">", " -", "--", " is ", " was ", ' "', " '", "login")


class Span(NamedTuple):
    """Where a value lies in its text."""

    start: int
    end: int


def names_secrets(text: str) -> bool:
    """Whether a text may give a value under a name that is not plain: often wrongly yes, never wrongly no."""
    if not any(sign in text for sign in _SIGNS):
        return False
    lowered = text.lower()
    if any(stem in lowered for stem in _STEMS):
        return True
    return any(
        stem in lowered
        and (any(word in lowered for word in longer) or any(word.search(text) for word in whole))
        for stem, longer, whole in _INSIDE_WORDS
    )


def redact_assignments(text: str) -> str:
    """The text with every value under a secret-like name replaced."""
    if not names_secrets(text):
        return text
    text = _replace(text, _named_values(text))
    if "-" in text:
        text = _replace(text, _flag_values(text))
    if "<" in text:
        text = _replace(text, _matched_values(text, _TAG))
    return _replace(text, _matched_values(text, _LOGIN))


def _replace(text: str, spans: Iterator[Span]) -> str:
    pieces, position = [], 0
    for span in spans:
        pieces += [text[position : span.start], REDACTED]
        position = span.end
    return "".join([*pieces, text[position:]]) if pieces else text


def _flag_values(text: str) -> Iterator[Span]:
    position = line_end = 0
    while (match := _FLAG.search(text, position)) is not None:
        position = match.end()
        line_end = _line_end(text, position, line_end)
        span = _inside(text, position, line_end) or Span(position, _end(_WORD, text, position, line_end))
        if secrecy(match["name"]) >= Secrecy.TEXT and not _harmless(text, span):
            yield span
            position = span.end


def _matched_values(text: str, pattern: re.Pattern[str]) -> Iterator[Span]:
    for match in pattern.finditer(text):
        span = Span(*match.span("value"))
        if secrecy(match["name"]) >= Secrecy.TEXT and not _harmless(text, span):
            yield span


def _named_values(text: str) -> Iterator[Span]:
    position = line_end = 0
    while (match := _NAME.search(text, position)) is not None:
        position = match.end()
        judgement = _judgement(text, match)
        if judgement is Secrecy.PLAIN:
            continue
        line_end = _line_end(text, position, line_end)
        reach = len(text) if judgement is not Secrecy.SUSPECT else position + _SUSPECT_REACH
        span = _inside(text, position, min(line_end, reach)) or _unquoted(text, match, line_end, reach)
        if not _harmless(text, span) and _hides(judgement, text, span, match):
            yield span
            position = span.end


def _line_end(text: str, position: int, known: int) -> int:
    """Where the line of a position ends; looked for once a line, which keeps long lines linear."""
    if position <= known:
        return known
    end = text.find("\n", position)
    return end if end >= 0 else len(text)


def _judgement(text: str, match: re.Match[str]) -> Secrecy:
    name, start = match["name"], match.start()
    judgement = secrecy(name)
    if (
        text[start - 1 : start] == "\\" and name[0] in "nrt"
    ):  # the end of an escape, as in "one line\ntoken=…"
        judgement = max(judgement, secrecy(name[1:]))
    if judgement is Secrecy.SUSPECT:
        owner = _OWNER.search(text[max(0, start - _OWNER_MAX) : start])
        judgement = secrecy(f"{owner[1]}_{name}") if owner else judgement
        in_query = text[start - 1 : start] in ("?", "&")
        return Secrecy.TEXT if in_query and judgement is Secrecy.SUSPECT else judgement
    bare_pass = name.lower() == "pass" and match["separator"] == ":" and not match["closed"]
    return Secrecy.SUSPECT if bare_pass else judgement  # "PASS: test_login" is a line of a test report


def _hides(judgement: Secrecy, text: str, span: Span, match: re.Match[str]) -> bool:
    value = text[span.start : span.end]
    if match["is"] is not None and (judgement is Secrecy.SUSPECT or not _after_word(match, value)):
        return False
    if judgement is Secrecy.SUSPECT:
        return looks_random(value.strip("\"'`,;) "))
    return judgement is Secrecy.SECRET or not value.strip("\"'").isdigit()


def _after_word(match: re.Match[str], value: str) -> bool:
    """`password is hunter2` gives one, `password is required` and `token "else"` give none."""
    if match["is"] == " ":
        return "pass" in match["name"].lower() or _DIGIT_OR_SIGN.search(value) is not None
    return _DIGIT_OR_SIGN.search(value) is not None


def _harmless(text: str, span: Span) -> bool:
    length = span.end - span.start
    if length < _SHORTEST_VALUE:
        return True
    return length <= _HARMLESS_MAX and _HARMLESS.fullmatch(text, span.start, span.end) is not None


def _end(pattern: re.Pattern[str], text: str, start: int, reach: int) -> int:
    match = pattern.match(text, start, reach)
    return match.end() if match else start


def _inside(text: str, start: int, line_end: int) -> Span | None:
    """A value in quotes, without them; to the end of the line where they are not closed."""
    opening = _QUOTE.match(text, start)
    if opening is None:
        return None
    end = text.find(opening["quote"], opening.end(), line_end)
    while end > 0 and text[end - 1] == "\\":
        end = text.find(opening["quote"], end + 1, line_end)
    return Span(opening.end(), end if end >= 0 else line_end)


def _unquoted(text: str, match: re.Match[str], line_end: int, reach: int) -> Span:
    start, line_end = match.end(), min(line_end, reach)
    before = text[max(0, match.start() - _LINE_START_MAX) : match.start()]
    if (block := _BLOCK.match(text, start, reach)) is not None:
        return Span(*block.span())
    if before[-1:] in ("'", '"', "`") and not match["closed"]:
        closing = text.find(before[-1], start, line_end)
        return Span(start, closing if closing >= 0 else line_end)
    is_container = text.startswith(("[", "{", "("), start) and not text.startswith(REDACTED, start)
    if is_container or _runs_to_line_end(match, before):
        return Span(start, line_end)
    return Span(start, _end(_WORD, text, start, line_end))


def _runs_to_line_end(match: re.Match[str], before: str) -> bool:
    if match["separator"] is None:
        return False
    if any(word in match["name"].lower() for word in _HEADER_WORDS):
        return True
    at_line_start = len(before) < _LINE_START_MAX or "\n" in before
    return match["separator"] == ":" and at_line_start and _LINE_START.search(before) is not None
