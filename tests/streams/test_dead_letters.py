import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from pml.schemas.errors import UndecodableRecord
from pml.streams.connection import producer_options
from pml.streams.dead_letter_reader import NoSuchLetter, read_letter, read_letters
from pml.streams.dead_letters import dead_letter, dead_letter_headers
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
