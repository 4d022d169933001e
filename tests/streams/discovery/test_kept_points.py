"""Points of tools in a file: asked for once, made anew where the file is not ours."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pml.processors.discovery.documents import Document, capability_document, tool_document
from pml.processors.discovery.index import DiscoveryIndex
from pml.processors.memory.embedding import HashedNgrams, Vectors
from pml.streams.discovery.kept_points import FILE, KeptPoints, bring_to


class Counting(HashedNgrams):
    """Keeps what it was asked for."""

    def __init__(self, name: str = "one") -> None:
        self.name = name
        self.texts: list[str] = []

    def embed(self, texts: object) -> Vectors:
        self.texts += texts  # type: ignore[arg-type]
        return super().embed(texts)  # type: ignore[arg-type]


def tools(*names: str) -> dict[str, Document]:
    return {f"s:{name}": tool_document(f"s:{name}", f"does {name}") for name in names}


def test_a_second_start_asks_the_model_for_what_is_new_alone(tmp_path: Path) -> None:
    KeptPoints(tmp_path, Counting()).bring_to(tools("read", "write"))
    model = Counting()
    kept = KeptPoints(tmp_path, model)
    kept.bring_to(tools("read", "send"))
    assert model.texts == ["s send. does send"]
    assert np.array_equal(kept.of(["s:read"])[0], Counting().embed(["s read. does read"])[0])


def test_another_model_makes_them_anew(tmp_path: Path) -> None:
    KeptPoints(tmp_path, Counting()).bring_to(tools("read"))
    model = Counting("other")
    KeptPoints(tmp_path, model).bring_to(tools("read"))
    assert model.texts == ["s read. does read"]


@pytest.mark.parametrize("content", [b"", b"nonsense\n", b'{"format": "pml-discovery-1"}\n'])
def test_a_file_that_is_not_ours_is_written_anew(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    KeptPoints(tmp_path, Counting()).bring_to(tools("read"))
    model = Counting()
    KeptPoints(tmp_path, model).bring_to(tools("read"))
    assert model.texts == []


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / FILE).mkdir()
    for folder in (tmp_path / "file", tmp_path / "absent", tmp_path):
        kept = KeptPoints(folder, Counting())
        kept.bring_to(tools("read"))
        assert len(kept.of(["s:read"])) == 1
    assert not (tmp_path / "absent").exists()


def test_an_index_is_changed_where_it_differs(tmp_path: Path) -> None:
    kept = KeptPoints(tmp_path, HashedNgrams())
    model = Counting()
    index = DiscoveryIndex(model)
    own = {"cap_1": capability_document("cap_1", "tidy", "tidy up")}
    for wanted in (tools("read", "write"), tools("read") | own, tools("read") | own, own):
        kept.bring_to({name: found for name, found in wanted.items() if found.kind == "tool"})
        changed = bring_to(index, wanted, kept)
        assert {document.id: document for document in index.documents} == wanted
    assert changed
    assert not bring_to(index, wanted, kept)
    assert model.texts == ["tidy. tidy up"]
