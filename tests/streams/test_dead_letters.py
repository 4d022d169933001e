import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiokafka import AIOKafkaProducer
from starlette.testclient import TestClient

from pml.schemas.errors import UndecodableRecord
from pml.streams.connection import producer_options
from pml.streams.dead_letter_reader import (
    DeadLetter,
    NoSuchLetter,
    read_letter,
    read_letters,
    read_tenant_letters,
)
from pml.streams.dead_letters import dead_letter, dead_letter_headers
from pml.streams.gateway.app import make_app
from pml.streams.gateway.tokens import TokenFile
from pml.streams.settings import Settings
from pml.streams.sources import opened
from pml.streams.topics import ensure_topics


@dataclass(frozen=True)
class Received:
    topic: str = "pml.commands"
    partition: int = 4
    offset: int = 17
    key: bytes | None = b"local/ses_1"
    value: bytes | None = b"\xff\x00 not JSON"
    headers: tuple[tuple[str, bytes], ...] = (("traceparent", b"00-1"),)


def test_headers_say_where_it_lay_and_why_it_stopped() -> None:
    headers = dict(dead_letter_headers(Received(), "decode", UndecodableRecord("é" * 3_000), 1_000))
    message = headers.pop("pml-dlq-message")
    assert len(message) == 2_048
    assert set(message.decode()) == {"é"}
    assert headers == {
        "pml-dlq-topic": b"pml.commands",
        "pml-dlq-partition": b"4",
        "pml-dlq-offset": b"17",
        "pml-dlq-at": b"1970-01-01T00:00:01.000000Z",
        "pml-dlq-stage": b"decode",
        "pml-dlq-code": b"UNDECODABLE",
    }


@pytest.mark.integration
async def test_a_dead_letter_rests_with_its_bytes_untouched(kafka: str, tmp_path: Path) -> None:
    prefix = f"d{uuid.uuid4().hex[:8]}."
    settings = Settings.load(data_dir=tmp_path, kafka={"bootstrap_servers": kafka, "topic_prefix": prefix})
    await ensure_topics(settings)
    producer = AIOKafkaProducer(**producer_options(settings))
    async with opened(producer, settings):
        for offset in range(3):
            error = UndecodableRecord(f"broken {offset}")
            await dead_letter(producer, settings.topics, Received(offset=offset), "decode", error)
    assert [letter.summary()["offset"] for letter in await read_letters(settings, 2)] == [1, 2]
    letter = await read_letter(settings, 1)
    assert (letter.key, letter.value) == (b"local/ses_1", b"\xff\x00 not JSON")
    told = letter.as_dict()
    assert told["headers"] == {"traceparent": "00-1"}
    assert told["value"] == "base64:/wAgbm90IEpTT04="
    assert told["message"] == "broken 1"
    with pytest.raises(NoSuchLetter, match="pml dlq list"):
        await read_letter(settings, 99)


def letter(value: bytes | None, key: bytes | None = None, **headers: bytes) -> DeadLetter:
    named = tuple((name.replace("_", "-"), told) for name, told in headers.items())
    return DeadLetter(0, key, value, named)


ACME = b'{"type": "run.start", "tenant": "acme", "data": 5}'


@pytest.mark.parametrize(
    ("found", "tenant"),
    [
        (letter(ACME), "acme"),
        (letter(ACME, b"acme/ses_1", pml_tenant=b"acme"), "acme"),
        (letter(ACME, b"\xff"), "acme"),
        (letter(ACME, b"globex/ses_1"), None),
        (letter(ACME, b"acme/ses_1", pml_tenant=b"globex"), None),
        (letter(ACME, pml_tenant=b"\xff"), None),
        (letter(None, b"acme/ses_1"), None),
        (letter(b"", b"acme/ses_1", pml_tenant=b"acme"), None),
        (letter(b"\xff\x00", b"acme/ses_1", pml_tenant=b"acme"), None),
        (letter(ACME[:-1], b"acme/ses_1"), None),
        (letter(b'["tenant", "acme"]', b"acme/ses_1"), None),
        (letter(b'{"tenant": 5}', b"acme/ses_1"), None),
        (letter(b'{"tenant": {"tenant": "acme"}}'), None),
        # A record of the catalog: its key has the form of a session's, and begins with its kind.
        (letter(b'{"kind": "model", "id": "globex", "data": {"tenant": "acme"}}', b"model/globex"), None),
    ],
)
def test_a_letter_is_of_the_tenant_that_it_names_itself(found: DeadLetter, tenant: str | None) -> None:
    assert found.tenant == tenant


@pytest.fixture
def settings(kafka: str, tmp_path: Path) -> Settings:
    prefix = f"d{uuid.uuid4().hex[:8]}."
    return Settings.load(data_dir=tmp_path, kafka={"bootstrap_servers": kafka, "topic_prefix": prefix})


async def buried(settings: Settings, *tenants: str | None) -> None:
    """A dead letter of each tenant; None: one that cannot be read."""
    await ensure_topics(settings)
    producer = AIOKafkaProducer(**producer_options(settings))
    async with opened(producer, settings):
        for tenant in tenants:
            value = b"\xff" if tenant is None else orjson.dumps({"type": "run.start", "tenant": tenant})
            record = Received(key=f"{tenant or 'acme'}/ses_1".encode(), value=value)
            await dead_letter(producer, settings.topics, record, "decode", UndecodableRecord("broken"))


@pytest.mark.integration
@pytest.mark.parametrize(
    ("limit", "stride", "most", "expected"),
    [(2, 2, 3, [[5, 6], [3], [0]]), (1, 4, 100, [[6], [5], [3], [0]]), (9, 2, 100, [[0, 3, 5, 6]])],
)
async def test_the_letters_of_a_tenant_are_found_among_those_of_others(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, *, limit: int, stride: int, most: int, expected: Any
) -> None:
    monkeypatch.setattr("pml.streams.dead_letter_reader.STRIDE", stride)
    monkeypatch.setattr("pml.streams.dead_letter_reader.LOOKED_AT_MAX", most)
    await buried(settings, "acme", "globex", "globex", "acme", None, "acme", "acme", "globex")

    pages: list[list[int]] = []
    before = None
    while not pages or before is not None:
        page = await read_tenant_letters(settings, "acme", limit, before)
        pages.append([found.id for found in page.letters])
        before = page.before

    assert pages == expected
    assert [found.id for found in await read_letters(settings, 10)] == list(range(8))
    assert (await read_letter(settings, 3, "acme")).id == 3
    for another in (1, 4):
        with pytest.raises(NoSuchLetter) as absent:
            await read_letter(settings, another, "acme")
        with pytest.raises(NoSuchLetter) as never:
            await read_letter(settings, 99, "acme")
        assert absent.value.message == never.value.message.replace("99", str(another))


@pytest.mark.integration
async def test_the_http_door_gives_a_token_the_letters_of_its_tenant_alone(settings: Settings) -> None:
    await buried(settings, "globex", "acme", None)
    allowed = {
        tenant: TokenFile(settings.data_dir).create(tenant, "agent:a", ["dlq:admin"], "now")
        for tenant in ("acme", "globex", "local")
    }
    seen: dict[str, list[int]] = {}
    opened_by: dict[str, list[int]] = {}
    with TestClient(make_app(settings, nothing, lambda: None), "http://127.0.0.1") as door:
        for tenant, token in allowed.items():
            headers = {"authorization": f"Bearer {token}"}
            listed = door.get("/v1/dead-letters", headers=headers).json()
            assert listed["next_cursor"] is None
            seen[tenant] = [item["id"] for item in listed["items"]]
            answers = {place: door.get(f"/v1/dead-letters/{place}", headers=headers) for place in range(3)}
            opened_by[tenant] = [place for place, answer in answers.items() if answer.status_code == 200]
            assert {answer.json().get("code") for answer in answers.values()} == (
                {"UNDECODABLE", "NOT_FOUND"} if seen[tenant] else {"NOT_FOUND"}
            )

    assert seen == opened_by == {"acme": [1], "globex": [0], "local": []}


@asynccontextmanager
async def nothing() -> AsyncIterator[None]:
    yield None
