"""Tokens: told once, kept as a hash, taken away at once."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from pml.schemas.errors import ConfigurationError
from pml.streams.gateway.tokens import NoSuchToken, Scope, TokenFile

NOW = "2026-01-01T00:00:00.000000Z"


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "data")


def made(tokens: TokenFile, principal: str = "agent:a", *scopes: Scope) -> str:
    return tokens.create("acme", principal, scopes or ("runs:read",), NOW)


def test_a_token_is_known_by_its_secret_and_by_nothing_else(tokens: TokenFile) -> None:
    token = made(tokens)
    other = made(tokens)

    found = tokens.verified(token)

    assert found is not None
    assert (found.tenant, found.principal, found.scopes) == ("acme", "agent:a", ("runs:read",))
    mixed = "_".join([*token.split("_")[:2], other.split("_", 2)[2]])
    for wrong in ("", "pml", token[:-1], token + "x", mixed, token.replace("pml_", "", 1)):
        assert tokens.verified(wrong) is None


def test_the_file_holds_no_secret_and_is_its_owners_alone(tokens: TokenFile) -> None:
    secret = made(tokens).split("_", 2)[2]

    assert secret.encode() not in tokens.path.read_bytes()
    assert tokens.path.stat().st_mode & 0o777 == 0o600


def test_another_process_sees_what_was_made_and_revoked(tokens: TokenFile) -> None:
    other = TokenFile(tokens.path.parent)
    token = made(tokens)
    found = other.verified(token)
    assert found is not None

    tokens.revoke(found.token_id)

    assert other.verified(token) is None
    assert tokens.all() == ()


def test_only_a_person_may_approve(tokens: TokenFile) -> None:
    with pytest.raises(ConfigurationError, match="person:NAME"):
        made(tokens, "agent:a", "approvals:write")

    assert tokens.verified(made(tokens, "person:ada", "approvals:write")) is not None


def test_what_is_not_there_cannot_be_revoked(tokens: TokenFile) -> None:
    with pytest.raises(NoSuchToken, match="pml token list"):
        tokens.revoke("nothing")


@pytest.mark.parametrize("content", [b"{", b"[1]", b'{"a": 1}', orjson.dumps([{"token_id": "x"}])])
def test_a_file_that_is_broken_lets_nobody_in(tokens: TokenFile, content: bytes) -> None:
    token = made(tokens)
    tokens.path.write_bytes(content)

    with pytest.raises(ConfigurationError, match="cannot be read"):
        tokens.verified(token)


def test_a_file_that_cannot_be_looked_for_lets_nobody_in(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ConfigurationError, match="cannot be read"):
        TokenFile(tmp_path / "file").all()


def test_a_hash_that_is_none_fits_no_secret(tokens: TokenFile) -> None:
    token = made(tokens)
    kept = orjson.loads(tokens.path.read_bytes())
    tokens.path.write_bytes(orjson.dumps([{**kept[0], "secret_hash": "é"}]))

    assert tokens.verified(token) is None
