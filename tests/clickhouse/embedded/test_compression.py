from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.clickhouse.embedded.compression import accepted, compressor, decompressed
from pml.clickhouse.embedded.errors import ClickHouseError

ENCODINGS = ["lz4", "zstd", "gzip", "deflate"]


def _packed(encoding: str, chunks: list[bytes]) -> bytes:
    packer = compressor(encoding)
    return b"".join([*(packer.compress(chunk) for chunk in chunks), packer.flush()])


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(chunks=st.lists(st.binary(max_size=200), max_size=5))
def test_what_is_packed_comes_back(encoding: str, chunks: list[bytes]) -> None:
    assert decompressed(_packed(encoding, chunks), encoding, 10_000) == b"".join(chunks)


@pytest.mark.parametrize("encoding", ["lz4", "zstd", "gzip"])
def test_frames_may_follow_one_another(encoding: str) -> None:
    body = _packed(encoding, [b"one"]) + _packed(encoding, [b"two"])
    assert decompressed(body, encoding, 100) == b"onetwo"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_small_body_never_becomes_a_large_one(encoding: str) -> None:
    bomb = _packed(encoding, [b"\0" * 1_000_000])
    assert len(bomb) < 10_000
    with pytest.raises(ClickHouseError) as error:
        decompressed(bomb, encoding, 100_000)
    assert error.value.status == 413


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_broken_and_cut_bodies_are_refused(encoding: str) -> None:
    whole = _packed(encoding, [b"some text that is long enough"])
    for body in (b"nonsense", whole[:-3]):
        with pytest.raises(ClickHouseError) as error:
            decompressed(body, encoding, 1000)
        assert error.value.number == 271


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(ClickHouseError) as error:
        decompressed(b"x", "br", 1000)
    assert error.value.number == 89


def test_the_first_known_encoding_is_chosen() -> None:
    assert accepted("br;q=1.0, ZSTD;q=0.5, lz4") == "zstd"
    assert accepted("br, identity") is None
    assert accepted("") is None
