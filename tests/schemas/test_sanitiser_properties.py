"""What the sanitiser promises of every value: valid, bounded, unchanged the second time, no secret left."""

from __future__ import annotations

import json
import re
import string
import time
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from pml.schemas.sanitiser import REDACTED, preview, sanitise, sanitise_and_preview, sanitise_text
from pml.schemas.sanitiser.formats import FORMATS, SHORTEST, WORD_FORMATS, Format
from pml.schemas.sanitiser.keys import Secrecy, secrecy
from pml.schemas.sanitiser.redaction import redact_text

slow = settings(suppress_health_check=list(HealthCheck), deadline=None)

TOKEN = st.text(string.ascii_letters + string.digits, min_size=8, max_size=40)
SIGNS = st.text(string.ascii_letters + string.digits + "!#$%*+-./:?@^_~|", min_size=8, max_size=24).filter(
    lambda text: any(sign.isalnum() for sign in text)
)
SECRET_NAMES = st.sampled_from(
    [
        "password",
        "api_key",
        "apiKey",
        "X-Api-Key",
        "client_secret",
        "DB_PASSWORD",
        "authToken",
        "private-key",
        "passwd",
    ]
)
TEXT = st.text(max_size=30)
# What may stand directly beside a secret: any character that cannot be one of its own.
GAP = st.sampled_from([" ", "\n", '"', "'", ",", "(", "<", ";", "é", "→", "{", "}", "[", "\t"])


def planted(
    shape: Callable[[str], str], values: st.SearchStrategy[str]
) -> st.SearchStrategy[tuple[str, str]]:
    return values.map(lambda value: (shape(value), value))


def base64_of(text: str) -> str:
    return b64encode(text.encode()).decode().rstrip("=")


def pem(body: str) -> str:
    return f"-----BEGIN EC PRIVATE KEY-----\n{body}\n-----END EC PRIVATE KEY-----"


def web_token(name: str) -> str:
    return (
        base64_of(f'{{"alg":"{name}"}}').replace("+", "-").replace("/", "_")
        + "."
        + base64_of(name)
        + "."
        + name
    )


# A text with a secret in it, and the part of it that must not be seen again.
IN_TEXT = st.one_of(
    planted(lambda value: f"Authorization: Bearer {value}", SIGNS),
    planted(lambda value: f"Bearer {value}1x", TOKEN),
    planted(lambda value: f"Basic {value}", TOKEN.map(lambda text: base64_of("user:" + text))),
    planted(web_token, TOKEN),
    planted(pem, TOKEN),
    planted(lambda value: f"postgres://bob:{value}@db.example.com/x", TOKEN),
    planted(lambda value: f"https://h/p?a=1&api_key={value}&b=2", TOKEN),
    planted(lambda value: f"https://h/p?access_token={value}", TOKEN),
    planted(lambda value: f"--client-secret {value}", TOKEN),
    planted(lambda value: f"<password>{value}</password>", SIGNS),
    st.tuples(SECRET_NAMES, SIGNS).map(lambda pair: (f"{pair[0]}={pair[1]}", pair[1])),
    st.tuples(SECRET_NAMES, SIGNS).map(lambda pair: (f'{pair[0]}: "{pair[1]}"', pair[1])),
    st.tuples(SECRET_NAMES, SIGNS).map(lambda pair: (json.dumps({pair[0]: pair[1], "a": 1}), pair[1])),
    st.tuples(SECRET_NAMES, SIGNS).map(
        lambda pair: (orjson.dumps(orjson.dumps({pair[0]: [pair[1]]}).decode()).decode(), pair[1])
    ),
    st.sampled_from(FORMATS).flatmap(
        lambda shape: st.from_regex(shape.pattern, fullmatch=True, alphabet=st.characters(codec="ascii"))
    ).map(lambda text: (text, text)),
)  # fmt: skip

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | TEXT
    | st.binary(max_size=8)
    | st.dates()
    | st.decimals()
)
ANYTHING = st.recursive(
    SCALARS
    | st.uuids()
    | st.datetimes()
    | st.sets(st.integers() | st.text(max_size=3), max_size=3)
    | st.complex_numbers(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(TEXT | st.integers() | st.none() | SECRET_NAMES, inner, max_size=4)
    ),
    max_leaves=15,
)
WORDS = st.sampled_from(
    ["release", "notes", "a/b/c.py", "2026-11-22T10:00:00Z", "Alice", "50 %", "café", "12:30", "{}", "[1]",
     "0192f0c1-77aa-7b1e-8c55-5f2f0c9d1e2a", "5f2c0d9e8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d",
     "https://example.com/a?page=2", "\U0001f600"]
)  # fmt: skip
HARMLESS_NAMES = st.sampled_from(
    ["author", "path", "items", "keyboard", "page", "public_key", "next_page_token"]
)
HARMLESS_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.lists(WORDS, max_size=5).map(" ".join)
)
HARMLESS = st.recursive(
    HARMLESS_SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(HARMLESS_NAMES, inner, max_size=4),
    max_leaves=20,
)


def all_text(value: Any) -> str:
    """Every string and key in a value, also inside JSON inside strings, as one text."""
    return orjson.dumps(value).decode().replace("\\\\", "\\").replace('\\"', '"')


def hidden(secret: str, value: Any) -> bool:
    return secret not in all_text(value) and secret not in orjson.dumps(value).decode()


def as_text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def nested(draw: st.DrawFn, secret: Any) -> Any:
    """The secret somewhere in a structure: an item, a value, a key, JSON in a string, bytes."""
    value = secret
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["list", "tuple", "object", "json"]))
        if kind == "object":
            value = {**draw(st.dictionaries(st.sampled_from("abc"), SCALARS, max_size=2)), "at": value}
        elif kind == "json" and not isinstance(value, bytes):
            value = json.dumps(value, default=as_text, ensure_ascii=False)
        else:
            value = [draw(SCALARS), value] if kind == "list" else (value, draw(SCALARS))
    return value


@st.composite
def texts_with_a_secret(draw: st.DrawFn) -> tuple[str, str]:
    text, secret = draw(IN_TEXT)
    before, after = draw(TEXT), draw(TEXT)
    assume(secret not in before + after and secret not in REDACTED)
    assume(secret.lower() not in ("undefined", "required", "optional"))  # what code and prose put there
    return f"{before}{draw(GAP)}{text}{draw(GAP)}{after}", secret


@st.composite
def values_with_a_secret(draw: st.DrawFn) -> tuple[Any, str]:
    text, secret = draw(texts_with_a_secret())
    form = draw(st.sampled_from(["text", "bytes", "key"]))
    planted_here = {"text": text, "bytes": text.encode("utf-8", "replace"), "key": {text: 1}}[form]
    value = nested(draw, planted_here)
    assume(repr(value).count(secret) == repr(planted_here).count(secret))  # not by chance beside it as well
    return value, secret


@slow
@given(ANYTHING | values_with_a_secret().map(lambda pair: pair[0]))
@example({"text": "\0" * 2_000})
@example({str(number): "x" * 900 for number in range(5)})
@example("word " * 300)
@example([1] * 200)
def test_both_at_once_are_what_each_is_alone(value: Any) -> None:
    assert sanitise_and_preview(value) == (sanitise(value), preview(value))


@slow
@given(ANYTHING, st.integers(64, 400))
def test_the_answer_is_valid_json_within_the_limit(value: Any, limit: int) -> None:
    data = orjson.dumps(sanitise(value, limit))
    assert len(data) <= limit
    assert orjson.loads(data) == sanitise(value, limit)


@slow
@given(values_with_a_secret())
def test_a_planted_secret_does_not_survive_anywhere(planted_value: tuple[Any, str]) -> None:
    value, secret = planted_value
    assert hidden(secret, sanitise(value))
    assert secret not in preview(value)


@slow
@given(texts_with_a_secret(), st.integers(0, 120), st.integers(0, 60))
def test_a_secret_at_the_limit_of_a_text_does_not_show(
    planted_text: tuple[str, str], before: int, limit: int
) -> None:
    text, secret = planted_text
    whole = "x" * before + " " + text
    pieces = {secret[start : start + 8] for start in range(max(1, len(secret) - 7))}
    assume(not any(piece in whole.replace(secret, "") + REDACTED for piece in pieces))
    for shown in (sanitise_text(whole, limit + 8), preview(whole, limit + 8), preview([whole, 1], limit + 8)):
        assert not any(piece in shown for piece in pieces)


@slow
@given(SECRET_NAMES, ANYTHING, st.integers(0, 3))
def test_nothing_of_a_value_under_a_secret_name_is_left(name: str, value: Any, depth: int) -> None:
    assume(value is not None and not isinstance(value, bool))
    assume(not isinstance(value, (str, list, dict, tuple)) or value)
    whole: Any = {name: value}
    for _ in range(depth):
        whole = [whole]
    assert orjson.dumps(sanitise(whole)).decode() == "[" * depth + f'{{"{name}":"{REDACTED}"}}' + "]" * depth


@slow
@given(ANYTHING | values_with_a_secret().map(lambda pair: pair[0]), st.integers(64, 20_000))
def test_a_second_time_changes_nothing(value: Any, limit: int) -> None:
    once = sanitise(value, limit)
    assert sanitise(once, limit) == once


@slow
@given(st.lists(IN_TEXT.map(lambda pair: pair[0]) | TEXT, max_size=4).map("".join), st.integers(16, 200))
@example('password="[REDACTED', 200)
@example("password: [REDACTED] [REDACTED]", 24)
def test_a_second_time_changes_no_text(text: str, limit: int) -> None:
    once = sanitise_text(text, limit)
    assert len(once.encode()) <= limit
    assert sanitise_text(once, limit) == once


@slow
@given(HARMLESS)
def test_a_value_without_secrets_comes_back_equal(value: Any) -> None:
    size = len(orjson.dumps(value))
    assert sanitise(value, max(size, 64)) == value
    assert orjson.dumps(sanitise(value, max(size, 64))) == orjson.dumps(value)


@slow
@given(ANYTHING)
def test_no_value_raises(value: Any) -> None:
    assert isinstance(preview(value, 40), str)
    assert len(preview(value, 40)) <= 40
    orjson.dumps(sanitise(value))


@slow
@given(
    st.from_regex(r"[A-Za-z][\w.-]{0,12}", fullmatch=True, alphabet=st.characters(codec="ascii")),
    SECRET_NAMES,
)
@example("", "mot_de_passe")
@example("", "recoveryCodes")
@example("", "pinCode")
@example("db", "Otp")
def test_every_name_that_hides_is_found_in_text_too(before: str, word: str) -> None:
    assume(secrecy(before + word) is Secrecy.SECRET)
    for text in ("{}=kJ8s9d7f", "{}: kJ8s9d7f", '"{}":"kJ8s9d7f"', "--{} kJ8s9d7f", "?{}=kJ8s9d7f&a=b"):
        assert "kJ8s9d7f" not in sanitise_text(text.format(before + word))


@pytest.mark.parametrize("shape", WORD_FORMATS, ids=lambda shape: shape.trigger)
def test_no_format_is_shorter_than_the_words_that_are_looked_at(shape: Format) -> None:
    shortest, _ = re._parser.parse(shape.pattern.pattern).getwidth()  # type: ignore[attr-defined]
    assert shortest >= SHORTEST
    assert shape.trigger.strip("0123456789abcdef-"), "words of these digits only are passed over"


@pytest.mark.parametrize("shape", FORMATS, ids=lambda shape: shape.trigger)
@settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_each_provider_format_is_found_beside_anything(shape: Format, data: st.DataObject) -> None:
    ascii_text = st.characters(codec="ascii")
    secret = data.draw(st.from_regex(shape.pattern, fullmatch=True, alphabet=ascii_text))
    around = "" if "(?<!" in shape.pattern.pattern else "abc"
    assert shape.trigger in secret
    assert secret not in sanitise_text(f"{around}{secret} {secret}")


MIB = 2**20
HARD_TEXTS = {
    "one letter": "a",
    "words": "key ",
    "keys": "key=",
    "suspects": "key=a ",
    "names": "pass1=x ",
    "quotes": 'password="',
    "escapes": "key=" + chr(92) + '"',
    "backslashes": "a" + chr(92),
    "web tokens": "eyJ",
    "web tokens with dots": "eyJaaaaaaaa.",
    "keys that begin": '-----BEGIN PRIVATE KEY-----"',
    "dashes": "-",
    "addresses": "://a:",
    "addresses with names": "://a@",
    "signs": "@",
    "bearers": "bearer ",
    "basics": "basic AAAA ",
    "tags": "<a",
    "closed tags": "<password>",
    "tokens of openai": "sk-",
    "digits": "12345678",
    "digits of telegram": "12345678:AA",
    "discord": "MNO",
    "discord with dots": "M" * 24 + ".aaaaaa.",
    "flags": "--token ",
    "logins": "login a password ",
    "blocks": "password: |\n ",
    "hex": "0123456789abcdef-us",
    "suspect blocks": "key: |\n ",
    "suspect words": "key=a.",
    "suspect quotes": "key: '",
    "wrapped suspects": "'key: a",
    "containers": "key=[",
    "escapes of lines": "\\ntoken ",
    "templates": "token={{ ",
    "spaces": " ",
    "lines": "\n",
    "brackets": "[",
    "objects": '{"a":',
    "secrets": "ghp_" + "a" * 36 + " ",
    "prefixes": "ghp_glpat-xoxb-sk_live_AKIAnpm_hf_SG.dp.pt.key-re_",
}


def seconds(work: Callable[[], object]) -> float:
    """Of the processor."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


@pytest.mark.parametrize("part", HARD_TEXTS.values(), ids=HARD_TEXTS)
def test_anything_takes_linear_time(part: str) -> None:
    """Of a text eight times as long eight times as much; quadratic would be 64 times.

    The best of three looks counts: what else the machine does only adds.
    """
    ending = 'eyJ SG. "bearer basic @ :// T3BlbkFJ PRIVATE KEY -us password'
    long = (part * (MIB // 4 // len(part)) + ending)[-MIB // 4 :]
    short = long[-MIB // 32 :]
    growth = (seconds(lambda: redact_text(long)) / seconds(lambda: redact_text(short)) for _ in range(3))
    assert any(times < 24 for times in growth)


@pytest.mark.parametrize(
    "value",
    [
        "x y " * (2 * MIB),
        [1] * (4 * MIB),
        {str(number): number for number in range(300_000)},
        [[[]] * 1_000] * 1_000,
        ["password=x " * 1_000] * 1_000,
        b"\xff" * (8 * MIB),
        {"a": "é" * (4 * MIB)},
        10 ** (MIB // 4),
    ],
    ids=["text", "items", "names", "lists", "repeated text", "bytes", "unicode", "integer"],
)
def test_eight_mebibytes_take_bounded_time(value: Any) -> None:
    """Bounded: at most 100 000 items are read and 256 KiB of text searched, whatever the value holds.

    To search all of it would take 32 times as long as that much does.
    """
    cleaned = sanitise(value)
    searched = seconds(lambda: sanitise("key=a. " * 36_000))
    assert seconds(lambda: (sanitise(value), preview(value))) < 8 * searched
    assert isinstance(cleaned, dict)
    assert set(cleaned) == {"_truncated", "_originalSize"}
    assert cleaned["_originalSize"] > 10_240  # type: ignore[operator]
