"""The sanitiser by example: what goes, what stays, what becomes of types that JSON does not have."""

from __future__ import annotations

import math
from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import orjson
import pytest
from pydantic import BaseModel, SecretStr

from pml.schemas.sanitiser import REDACTED, preview, sanitise, sanitise_text
from pml.schemas.sanitiser.keys import Secrecy, looks_random, secrecy

HEX = "0123456789abcdef"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nn0tARealKey=\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"


def words(text: str) -> list[str]:
    return text.split()


SECRET_NAMES = words(
    "password passwd pwd Password user_password dbPassword PGPASSWORD passphrase pass_phrase passWord "
    "password2 api_key apiKey APIKey API_KEY apikey x-api-key X-Api-Key OPENAI_API_KEY authorization "
    "Authorization proxy-authorization client_secret clientSecret secret SECRET_KEY secretAccessKey "
    "aws_secret_access_key access_token accessToken token auth_token refresh-token id_token bot.token "
    "csrf_token csrftoken bearer private_key privateKey signing_key encryptionKey master_key "
    "account_key cookie Set-Cookie credentials creds pin otp cvv mnemonic seed_phrase recovery_codes "
    "mot_de_passe passwort kennwort contraseña access_tokens session_key license_key password_hash "
    "access_key_id secret_id webhook_secret"
)
PLAIN_NAMES = words(
    "author authors keyboard monkey passenger compass passed bypass tokenizer secretary path name id "
    "next_page_token pageToken nextToken continuation_token sync_token public_key publicKey primary_key "
    "cache_key idempotency_key spin opinion side design signal hotkey turkey option essay inside"
)
SUSPECT_NAMES = words(
    "key keys max_tokens maxTokens token_count total_tokens prompt_tokens tokens token_type "
    "token_expires_at auth signature session_id password_policy secret_name secret_arn "
    "password_changed_at api_key_name token_url key_id"
)


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_secret_name_hides_any_value(name: str) -> None:
    assert secrecy(name) is Secrecy.SECRET
    for value in ("x", 1234, 1.5, ["a"], {"a": "b"}, b"x", Decimal(1)):
        assert sanitise({"a": [{name: value}]}) == {"a": [{name: REDACTED}]}


@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_a_plain_name_hides_nothing(name: str) -> None:
    assert secrecy(name) is Secrecy.PLAIN
    value = {name: "kJ8s9d7fKj3h4kjh5KJH3k4j5h"}
    assert sanitise(value) == value


@pytest.mark.parametrize("name", SUSPECT_NAMES)
def test_a_suspect_name_hides_only_what_looks_random(name: str) -> None:
    assert secrecy(name) is Secrecy.SUSPECT
    for value in ("release notes", "PROJ-123", 4096, 0.5, None, "2026-11-22T10:00:00Z", [1, 2], {"a": 1}):
        assert sanitise({name: value}) == {name: value}
    assert sanitise({name: "kJ8s9d7fKj3h4kjh5KJH3k4j5h"}) == {name: REDACTED}
    assert sanitise({name: ["x", HEX * 3]}) == {name: ["x", REDACTED]}
    held = {"type": "literal", "value": HEX * 3, "commit": HEX * 3}
    assert sanitise({name: held}) == {name: {**held, "value": REDACTED}}
    assert sanitise({name: [[{"#text": [HEX * 3, 7]}]]}) == {name: [[{"#text": [REDACTED, 7]}]]}


def test_what_holds_nothing_stays_under_a_secret_name() -> None:
    value = {"password": None, "token": "", "secret": False, "cookies": [], "credentials": {}}
    assert sanitise(value) == value


def test_numbers_stay_under_pass_and_text_does_not() -> None:
    assert sanitise({"pass": 12, "fail": 0}) == {"pass": 12, "fail": 0}
    assert sanitise({"pass": "hunter2", "smtp_pass": "x"}) == {"pass": REDACTED, "smtp_pass": REDACTED}
    assert sanitise({"pass": {"value": "hunter2", "at": 3}}) == {"pass": {"value": REDACTED, "at": 3}}


@pytest.mark.parametrize(
    ("text", "random"),
    [
        (HEX * 2, True),
        ("kJ8s9d7fKj3h4kjh5KJH3k4j5h", True),
        ("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", True),
        ("0192f0c1-77aa-7b1e-8c55-5f2f0c9d1e2a", False),
        ("ses_0192f0c1-77aa-7b1e-8c55-5f2f0c9d1e2a", False),
        ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", False),
        ("my-feature-branch-name-2026", False),
        ("AVeryLongClassNameForTesting", False),
        ("short1", False),
        ("two words with 1 2 3 numbers in them", False),
    ],
)
def test_randomness_is_told_from_names_and_identifiers(text: str, random: bool) -> None:
    assert looks_random(text) is random


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("password=hunter2 user=bob", "password=[REDACTED] user=bob"),
        ("password='hun ter2', user='bob'", "password='[REDACTED]', user='bob'"),
        (r"x {\"password\": \"hun ter2\", \"a\": 1}", r"x {\"password\": \"[REDACTED]\", \"a\": 1}"),
        ('x {"password": "hun\\"ter2", "a": 1}', 'x {"password": "[REDACTED]", "a": 1}'),
        ('said "password": "hunter2 and never clo', 'said "password": "[REDACTED]'),
        ("config:\n  password: correct horse\n  user: bob", "config:\n  password: [REDACTED]\n  user: bob"),
        ("password: |\n  one\n  two\nuser: x", "password: [REDACTED]\nuser: x"),
        ('{password: ["a", "b"]}', "{password: [REDACTED]"),
        ("Authorization: Digest username=\"M\", response=\"6629\"", "Authorization: [REDACTED]"),
        ("curl -H 'X-Api-Key: abc def' http://h", "curl -H 'X-Api-Key: [REDACTED]' http://h"),
        (r"one line\ntoken=abcd\napi_key=efgh", r"one line\ntoken=[REDACTED]"),
        ("mysql --password hunter2 -u x", "mysql --password [REDACTED] -u x"),
        ("deploy --api-key=abc", "deploy --api-key=[REDACTED]"),
        ("https://h/p?api_key=abc&b=2", "https://h/p?api_key=[REDACTED]&b=2"),
        ("https://h/p?key=abc&sig=a%2Fb&page=2", "https://h/p?key=[REDACTED]&sig=[REDACTED]&page=2"),
        ("postgres://bob:p@ss@db:5432/x", "postgres://[REDACTED]@db:5432/x"),
        ("redis://:pass@h", "redis://[REDACTED]@h"),
        ("https://kJ8s9d7fKj3h4kjh5KJH3k4j5h@github.com/a", "https://[REDACTED]@github.com/a"),
        ("<password>hun ter2</password>", "<password>[REDACTED]</password>"),
        ("the password is hunter2, right", "the password is [REDACTED], right"),
        ("wrong password 'hunter2'", "wrong password '[REDACTED]'"),
        ("API key: abcdef", "API key: [REDACTED]"),
        ('d["secret"] = "abc"', 'd["secret"] = "[REDACTED]"'),
        ("machine h login me password hunter2", "machine h login me password [REDACTED]"),
        ("sent Bearer abc123.x_y to it", "sent Bearer [REDACTED] to it"),
        ("sent Basic dXNlcjpwYXNz to it", "sent Basic [REDACTED] to it"),
        (f"jwt {JWT} end", "jwt [REDACTED] end"),
        (f"key\n{PEM}\nend", "key\n[REDACTED]\nend"),
        (PEM[:60] + ' "rest"', '[REDACTED]"rest"'),
        (f"AKIAIOSFODNN7EXAMPLE and ghp_{'a1B2' * 9}", "[REDACTED] and [REDACTED]"),
        ("1234567890:AA" + "b" * 33, REDACTED),
        ("https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXX", "https://[REDACTED]"),
    ],
)  # fmt: skip
def test_a_secret_in_a_text_goes_and_the_rest_stays(text: str, expected: str) -> None:
    assert sanitise_text(text) == expected
    assert sanitise({"a": [text]}) == {"a": [expected]}


@pytest.mark.parametrize(
    "text",
    [
        "Unexpected token: } in JSON at position 3",
        "Unexpected token '<', \"<!DOCTYPE \"... is not valid JSON",
        "PASS: test_login\nFAIL: test_logout",
        "password is required; the token is invalid; the secret was missing",
        "Author: Alice <alice@example.com>, max_tokens=4096, tokens: 12",
        "basic understanding, basic: yes, bearer of bad news",
        "def f(password: str, token: str) -> bool",
        "password=${DB_PASSWORD} token={{ token }} secret=<secret> api_key: null",
        "task-0123456789abcdef0123456789abcdef disk-usage-of-the-machine",
        "http://localhost:8080/a@b mailto:bob@example.com 12:30:45",
        "https://h/list?page_token=CAESDnh5ejEyMw&limit=5",
        "2026-11-22T10:00:00.000000Z 0192f0c1-77aa-7b1e-8c55-5f2f0c9d1e2a",
        "commit 5f2c0d9e8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d",
    ],
)
def test_text_without_a_secret_is_not_touched(text: str) -> None:
    assert sanitise_text(text) == text
    assert sanitise(text) == text


def test_json_in_a_string_is_judged_by_its_own_names() -> None:
    inner = {"user": "bob", "auth": {"password": [1, "x"], "n": 1.0}}
    text = orjson.dumps({"inner": orjson.dumps(inner).decode()}).decode()
    cleaned = sanitise({"content": [{"type": "text", "text": text}]})
    read = orjson.loads(orjson.loads(cleaned["content"][0]["text"])["inner"])  # type: ignore[index,call-overload]
    assert read == {"user": "bob", "auth": {"password": REDACTED, "n": 1.0}}


def test_json_in_a_string_without_a_secret_keeps_its_spelling() -> None:
    text = '{ "keys" : [1,  2], "author": "x", "token_count": 5 }'
    assert sanitise([text]) == [text]


def test_a_repeated_name_in_json_text_hides_nothing() -> None:
    assert "hunter2" not in sanitise_text('{"password": "hunter2", "password": "[REDACTED]", "a": 1}')


def test_pairs_flags_and_lines_are_seen_as_what_they_are() -> None:
    assert sanitise([{"name": "Authorization", "value": "abc"}, {"Key": "Owner", "Value": "bob"}]) == [
        {"name": "Authorization", "value": REDACTED},
        {"Key": "Owner", "Value": "bob"},
    ]
    assert sanitise([["Cookie", "a=b"], ["Accept", "c"]]) == [["Cookie", REDACTED], ["Accept", "c"]]
    assert sanitise(["run", "--token", "abc", "-v", "x"]) == ["run", "--token", REDACTED, "-v", "x"]
    assert sanitise(["a", *PEM.split("\n"), "b"]) == ["a", *[REDACTED] * 4, "b"]


def test_names_that_are_secrets_go_without_losing_their_values() -> None:
    keys = [f"ghp_{letter * 36}" for letter in "abc"]
    cleaned = sanitise({key: number for number, key in enumerate(keys)})
    assert isinstance(cleaned, dict)
    assert list(cleaned.values()) == [0, 1, 2]
    assert all(name.startswith(REDACTED) for name in cleaned)


class Colour(Enum):
    RED = "red"


class Place(NamedTuple):
    x: int
    y: int


@dataclass
class Login:
    user: str
    password: str


class Account(BaseModel):
    name: str
    api_key: str
    secret_text: SecretStr
    plan: SecretStr


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05+00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (time(3, 4), "03:04:00"),
        (timedelta(hours=1), "1:00:00"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Decimal("1.10"), "1.10"),
        (b"caf\xc3\xa9 \xff", "café \\xff"),
        (bytearray(b"x"), "x"),
        (math.nan, None),
        (-math.inf, None),
        (2**64 - 1, 2**64 - 1),
        (2**64, "18446744073709551616"),
        (-(10**30), "-1" + "0" * 30),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ((1, (2,)), [1, [2]]),
        (Place(1, 2), [1, 2]),
        (Colour.RED, "red"),
        (PurePosixPath("/a/b"), "/a/b"),
        (np.float64(1.5), 1.5),
        (np.int64(3), 3),
        (ValueError("password=hunter2"), "ValueError: password=[REDACTED]"),
        (Login("bob", "hunter2"), {"user": "bob", "password": REDACTED}),
        ({1: "a", None: "b", 2.5: "d", (1, 2): "e"}, {"1": "a", "null": "b", "2.5": "d", "[1,2]": "e"}),
        ({True: "a", False: "b"}, {"true": "a", "false": "b"}),
        ("a\ud800b", "a\\ud800b"),
        (print, "<builtins.builtin_function_or_method>"),
        (Login, "<builtins.type>"),
    ],
)  # fmt: skip
def test_other_types_become_json(value: Any, expected: Any) -> None:
    assert sanitise({"v": value}) == {"v": expected}


def test_a_pydantic_model_becomes_an_object_without_its_secrets() -> None:
    account = Account(name="x", api_key="k", secret_text=SecretStr("s"), plan=SecretStr("t"))
    assert sanitise(account) == {"name": "x", "api_key": REDACTED, "secret_text": REDACTED, "plan": REDACTED}


def test_names_that_become_equal_keep_both_values() -> None:
    cleaned = sanitise({1: "a", "1": "b"})
    assert cleaned == {"1": "a", "1 (2)": "b"}


def test_bytes_are_searched_like_text() -> None:
    assert sanitise([b"\xff\xfeAKIAIOSFODNN7EXAMPLE"]) == ["\\xff\\xfe" + REDACTED]


def test_cycles_and_depth_are_cut() -> None:
    value: dict[str, Any] = {"a": 1}
    value["self"] = value
    assert sanitise(value) == {"a": 1, "self": "[CYCLE]"}
    deep: Any = "bottom"
    for _ in range(500):
        deep = [deep]
    data = orjson.dumps(sanitise(deep))
    assert b"[TOO DEEP]" in data
    assert b"bottom" not in data


def test_a_shared_value_is_no_cycle() -> None:
    shared = [1]
    assert sanitise([shared, shared]) == [[1], [1]]


def test_an_exponential_value_is_cut_in_time() -> None:
    value: Any = ["x"]
    for _ in range(60):
        value = [value, value]
    cleaned = sanitise(value)
    assert isinstance(cleaned, dict)
    assert cleaned["_truncated"] is True
    assert cleaned["_originalSize"] >= 100_000  # type: ignore[operator]


class Hostile:
    @property
    def __class__(self) -> type:
        raise RuntimeError("no class for you")


class HostileDict(dict[str, Any]):
    def items(self) -> Any:
        raise MemoryError


def test_hostile_objects_do_not_raise() -> None:
    assert sanitise([Hostile(), HostileDict(a=1)]) == ["[UNREADABLE]", "[UNREADABLE]"]
    assert preview([Hostile()]) == '["[UNREADABLE]"]'


def test_redaction_comes_before_measuring() -> None:
    assert sanitise({"password": "x" * 20_000, "a": 1}) == {"password": REDACTED, "a": 1}
    assert sanitise({"note": "key: " + "-----BEGIN PRIVATE KEY-----" + "A" * 20_000}) == {
        "note": "key: " + REDACTED
    }


def test_a_value_too_large_says_how_large_it_was() -> None:
    value = {"rows": ["é" * 10] * 600}
    assert sanitise(value) == {"_truncated": True, "_originalSize": len(orjson.dumps(value))}
    assert sanitise(value, limit_bytes=len(orjson.dumps(value))) == value
    assert sanitise(value, limit_bytes=len(orjson.dumps(value)) - 1) != value
    large = {"text": "x " * 2**22}
    assert sanitise(large) == {"_truncated": True, "_originalSize": len(orjson.dumps(large))}


def test_an_error_message_is_cut_behind_its_secrets() -> None:
    token = "ghp_" + "a" * 36
    cleaned = sanitise_text("x " * 1_020 + token)
    assert len(cleaned.encode()) <= 2_048
    assert "ghp" not in cleaned
    assert cleaned.endswith("…")
    assert sanitise_text("é" * 2_000, limit_bytes=101) == "é" * 49 + "…"


def test_half_a_secret_at_the_window_of_a_long_message_does_not_show() -> None:
    token = "ghp_" + "a" * 36
    for shift in range(45):
        text = f"{'ghp_' + 'b' * 40} " * 1 + f"password={'y' * (32_700 + shift)} {token}"
        assert "ghp_" not in sanitise_text(text)


def test_a_preview_shows_the_beginning_of_anything() -> None:
    assert preview("plain text") == "plain text"
    assert preview({"a": [1, None]}) == '{"a":[1,null]}'
    assert preview({"token": "abc", "b": 1}) == '{"token":"[REDACTED]","b":1}'
    shown = preview({"content": [{"text": "word " * 100_000}]})
    assert shown.startswith('{"content":[{"text":"word word')
    assert len(shown) <= 240
    assert shown.endswith("…")
    assert preview(list(range(10_000)), limit_chars=20) == "[0,1,2,3,4,5,6,7,8,…"


def test_a_preview_does_not_forget_the_name_of_a_pair() -> None:
    value = {"value": "hunter2", **{str(number): number for number in range(300)}, "name": "password"}
    assert "hunter2" not in preview(value)


def test_credentials_in_base64_with_any_alphabet_are_known() -> None:
    for pair in (b"user:pass", b"\xff\xfe:\xfb\xef\xbe", b"a:b"):
        assert sanitise_text("Basic " + b64encode(pair).decode()) == "Basic " + REDACTED
