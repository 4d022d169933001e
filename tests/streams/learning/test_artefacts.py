"""A model is named by its bytes, stays as it is, and is refused where it is not what was written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from pml.processors.learning.model import NextModel, fitted
from pml.processors.memory.embedding import HashedNgrams
from pml.schemas.errors import ConfigurationError
from pml.streams.learning import artefacts
from pml.streams.learning.artefacts import ModelUnfit
from pml.streams.learning.manifests import (
    Manifest,
    ModelDamaged,
    NoSuchModel,
    arrays_digest,
    arrays_file,
    list_manifests,
    read_manifest,
    read_sound,
    tenant_of,
)
from tests.processors.learning.small_sessions import drawn_sessions
from tests.streams.learning.kept_models import about

EMBEDDING = HashedNgrams()


def model(seed: int = 1, learner: str = "markov_1") -> NextModel:
    return fitted(drawn_sessions(6, seed, by_request=False), EMBEDDING, 1, learner)


def said(tenant: str = "local", **more: Any) -> Manifest:
    """What is said of one before it is written."""
    return {**about(tenant), **more}


def test_what_was_written_is_loaded_and_named_by_its_bytes(tmp_path: Path) -> None:
    model_id = artefacts.write(tmp_path / "models", model(), said(created_at="2026-11-23T09:00:00Z", seed=1))
    found, manifest = artefacts.load(tmp_path / "models", model_id, EMBEDDING)
    assert found.candidates(["files:read"], "") == model().candidates(["files:read"], "")
    assert (manifest["model_id"], manifest["seed"]) == (model_id, 1)
    assert manifest["blake2b"].startswith(model_id.removeprefix("mdl_"))
    assert sorted(file.name for file in (tmp_path / "models").iterdir()) == [
        f"{model_id}.json",
        f"{model_id}.npz",
    ]


def test_the_same_model_keeps_its_first_manifest_and_others_are_listed_newest_first(tmp_path: Path) -> None:
    assert list_manifests(tmp_path / "none") == []
    first = artefacts.write(tmp_path, model(), said(created_at="2026-11-23T09:00:00Z"))
    assert artefacts.write(tmp_path, model(), said(created_at="2026-11-23T11:00:00Z")) == first
    later = artefacts.write(tmp_path, model(2), said(created_at="2026-11-23T10:00:00Z"))
    assert [each["model_id"] for each in list_manifests(tmp_path)] == [later, first]


def test_tenants_whose_sessions_are_alike_have_models_of_their_own(tmp_path: Path) -> None:
    whose = {name: artefacts.write(tmp_path, model(), said(name)) for name in ("one", "two")}
    assert whose["one"] != whose["two"]
    assert {name: tenant_of(read_manifest(tmp_path, model_id)) for name, model_id in whose.items()} == {
        "one": "one",
        "two": "two",
    }


def test_a_manifest_that_names_another_tenant_is_damaged(tmp_path: Path) -> None:
    model_id = artefacts.write(tmp_path, model(), said("one"))
    file = tmp_path / f"{model_id}.json"
    file.write_bytes(file.read_bytes().replace(b'"one"', b'"two"'))
    with pytest.raises(ModelDamaged, match="tenant"):
        artefacts.load(tmp_path, model_id, EMBEDDING)
    with pytest.raises(ModelDamaged, match="tenant"):
        read_sound(tmp_path, model_id)  # whoever promotes it


def test_arrays_that_name_no_tenant_are_nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artefacts, "TENANT", "another_array")
    model_id = artefacts.write(tmp_path, model(), said("one"))
    monkeypatch.undo()
    with pytest.raises(ModelDamaged, match="tenant"):
        artefacts.load(tmp_path, model_id, EMBEDDING)
    with pytest.raises(ModelDamaged, match="tenant"):
        read_sound(tmp_path, model_id)


def test_a_model_that_goes_while_it_is_looked_at_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def digest(folder: Path, model_id: str) -> str:
        found = arrays_digest(folder, model_id)
        arrays_file(folder, model_id).unlink()
        return found

    model_id = artefacts.write(tmp_path, model(), said("one"))
    monkeypatch.setattr("pml.streams.learning.manifests.arrays_digest", digest)
    with pytest.raises(NoSuchModel):
        read_sound(tmp_path, model_id)


def test_another_byte_is_another_model(tmp_path: Path) -> None:
    model_id = artefacts.write(tmp_path, model(), said())
    file = tmp_path / f"{model_id}.npz"
    told = bytearray(file.read_bytes())
    told[len(told) // 2] ^= 1
    file.write_bytes(told)
    with pytest.raises(ModelDamaged, match="not what was written"):
        artefacts.load(tmp_path, model_id, EMBEDDING)
    file.unlink()
    with pytest.raises(NoSuchModel, match="pml model list"):
        artefacts.load(tmp_path, model_id, EMBEDDING)


DAMAGES: dict[str, dict[str, Any]] = {
    "no time": {"created_at": "yesterday"},
    "nothing that serves": {"serves": "nobody"},
    "nothing judged": {"validation": None},
    "no rate": {"validation": {"ranker": {"hit_1": {}}, "markov_1": {"hit_1": {}}}},
    "no rate of what serves": {"served": {"hit_1": {}}},
    "no questions": {"data": {}},
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_manifest_that_lacks_what_others_need_is_damaged(damage: dict[str, Any], tmp_path: Path) -> None:
    model_id = artefacts.write(tmp_path, model(), said())
    file = tmp_path / f"{model_id}.json"
    file.write_bytes(orjson.dumps(orjson.loads(file.read_bytes()) | damage))
    with pytest.raises(ModelDamaged, match="train again"):
        read_manifest(tmp_path, model_id)


@pytest.mark.parametrize("told", [b"{", b"[]", orjson.dumps({"model_id": "mdl_000000000000"})])
def test_a_manifest_of_something_else_is_damaged(told: bytes, tmp_path: Path) -> None:
    model_id = artefacts.write(tmp_path, model(), said())
    (tmp_path / f"{model_id}.json").write_bytes(told)
    with pytest.raises(ModelDamaged):
        read_manifest(tmp_path, model_id)


@pytest.mark.parametrize("model_id", ["mdl_000000000000", "../secret", "mdl_", ""])
def test_what_is_not_there_is_said(model_id: str, tmp_path: Path) -> None:
    with pytest.raises(NoSuchModel):
        artefacts.load(tmp_path, model_id, EMBEDDING)


def test_a_model_of_another_embedding_cannot_serve(tmp_path: Path) -> None:
    model_id = artefacts.write(tmp_path, model(), said())
    other = HashedNgrams()
    other.name = "another"
    with pytest.raises(ModelUnfit, match="train it again"):
        artefacts.load(tmp_path, model_id, other)


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        artefacts.write(tmp_path / "file", model(), {})


@pytest.mark.parametrize("suffix", [".npz", ".json"])
@pytest.mark.parametrize("told", [None, b"", b"{}"])
def test_what_is_damaged_or_gone_is_written_anew(suffix: str, told: bytes | None, tmp_path: Path) -> None:
    model_id = artefacts.write(tmp_path, model(), said(created_at="2026-11-23T09:00:00Z"))
    file = (tmp_path / model_id).with_suffix(suffix)
    file.unlink() if told is None else file.write_bytes(told)
    assert artefacts.write(tmp_path, model(), said(created_at="2026-11-23T11:00:00Z")) == model_id
    _, manifest = artefacts.load(tmp_path, model_id, EMBEDDING)
    first = suffix == ".npz"
    assert manifest["created_at"] == f"2026-11-23T{'09' if first else '11'}:00:00Z"


@pytest.mark.parametrize("field", ["blake2b", "tenant"])
def test_a_manifest_of_other_bytes_or_of_another_tenant_is_written_anew(field: str, tmp_path: Path) -> None:
    model_id = artefacts.write(tmp_path, model(), said("one"))
    file = tmp_path / f"{model_id}.json"
    told = orjson.loads(file.read_bytes())
    of_others = {
        "blake2b": {"blake2b": told["blake2b"][:12] + "0" * 20},
        "tenant": {"data": {"tenant": "two"}},
    }
    file.write_bytes(orjson.dumps(told | of_others[field]))
    with pytest.raises(ModelDamaged):
        artefacts.load(tmp_path, model_id, EMBEDDING)
    assert artefacts.write(tmp_path, model(), said("one")) == model_id
    assert tenant_of(artefacts.load(tmp_path, model_id, EMBEDDING)[1]) == "one"
