"""What is said of trained models: `<model_id>.json` in their folder. Nothing here needs what models need."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self

import orjson
import structlog
from pydantic import model_validator

from pml.schemas.base import Record
from pml.schemas.catalog import Count, Share
from pml.schemas.errors import ConfigurationError, PMLError
from pml.schemas.identifiers import DEFAULT_TENANT
from pml.schemas.times import from_rfc3339

_ID = re.compile(r"mdl_[0-9a-f]{12}")
_ID_DIGITS = 12
# Among the arrays: whose they are.
TENANT = "tenant"
# In `data`: which key short values were hashed with.
HASHED_WITH = "hashed_with"
_DIGEST_BYTES = 16

Manifest = dict[str, Any]
log = structlog.get_logger("pml.models")


class NoSuchModel(PMLError):
    """No model of that id lies in the folder."""

    code = "NOT_FOUND"


class ModelDamaged(PMLError):
    """The bytes of a model are not those that it is named by, or its manifest is not what was written."""

    code = "MODEL_DAMAGED"


class _Mean(Record):
    mean: Share


class _Judged(Record):
    hit_1: _Mean


class _Data(Record):
    questions: Count
    tenant: str | None = None


class _Needed(Record):
    """What lists, promotions and trainings read of a manifest; the rest is for people."""

    model_id: str
    blake2b: str
    created_at: str
    serves: str
    baseline: str
    validation: dict[str, _Judged]
    served: _Judged | None = None
    data: _Data

    @model_validator(mode="after")
    def _checked(self) -> Self:
        from_rfc3339(self.created_at)
        if not {self.serves, self.baseline} <= self.validation.keys():
            raise ValueError("what serves and the best baseline must have been judged")
        return self


def read_manifest(folder: Path, model_id: str) -> Manifest:
    """What is said of a model.

    Raises:
        NoSuchModel: it is not in the folder.
        ModelDamaged: its manifest cannot be read, lacks what others need of it, or is another model's.
    """
    if not _ID.fullmatch(model_id):
        raise NoSuchModel(f"{model_id!r} is no id of a model; `pml model list` shows those there are")
    file = manifest_file(folder, model_id)
    try:
        found: Manifest = orjson.loads(file.read_bytes())
        needed = _Needed.model_validate(found, strict=True)
    except OSError as error:
        raise missing_model(folder, model_id, error) from None
    except ValueError:
        raise damaged(file) from None
    if not needed.model_id == model_id == model_name(needed.blake2b):
        raise damaged(file)
    return found


def read_sound(folder: Path, model_id: str) -> Manifest:
    """What is said of a model whose bytes are those that it is named by.

    Raises:
        NoSuchModel: it is not in the folder, or only one of its files is.
        ModelDamaged: one of them is not what was written, or not whose its manifest says.
    """
    manifest = read_manifest(folder, model_id)
    try:
        if arrays_digest(folder, model_id) != manifest["blake2b"]:
            raise damaged(arrays_file(folder, model_id))
        tenant = _written_tenant(arrays_file(folder, model_id))
    except OSError as error:
        raise missing_model(folder, model_id, error) from None
    if tenant != tenant_of(manifest):
        raise of_another_tenant(model_id)
    return manifest


def _written_tenant(file: Path) -> str | None:
    """Whose a model is by its arrays; None where they do not say.

    Raises:
        OSError: it cannot be read.
    """
    from pml.streams.learning.npz import opened_arrays

    try:
        with file.open("rb") as stream:
            return str(opened_arrays(stream)[TENANT])
    except (ValueError, KeyError):
        return None


def of_another_tenant(model_id: str) -> ModelDamaged:
    """Its arrays are not those of the tenant that its manifest names."""
    return ModelDamaged(f"{model_id} is not the tenant's that its manifest names: train it again")


def warn_of(error: PMLError) -> None:
    """Write into the log that a model is passed over, and why."""
    log.warning("a model is passed over", reason=error.message)


def list_manifests(folder: Path, passed_over: Callable[[PMLError], None] = warn_of) -> list[Manifest]:
    """Those of all models of a folder, the newest first; none where there is no folder.

    Args:
        passed_over: is told of each that cannot be read; nobody knows whose it is, so it stops no tenant.
    """
    read: list[Manifest] = []
    for model_id in sorted(file.stem for file in folder.glob("mdl_*.json") if _ID.fullmatch(file.stem)):
        try:
            read.append(read_manifest(folder, model_id))
        except PMLError as error:
            passed_over(error)
    return sorted(read, key=lambda manifest: from_rfc3339(manifest["created_at"]), reverse=True)


def tenant_of(manifest: Mapping[str, Any]) -> str:
    """Whose sessions a model was trained on, and whom alone it serves: it knows their values."""
    return manifest.get("data", {}).get("tenant") or DEFAULT_TENANT


def hashed_with(manifest: Mapping[str, Any]) -> str | None:
    """The digest of the key that short values were hashed with, for who reads looks; None: of none."""
    found = manifest.get("data", {}).get(HASHED_WITH)
    return found if isinstance(found, str) else None


def digest_of(told: bytes) -> str:
    """What bytes are known by: those of a model, or a key that nobody is to read."""
    return hashlib.blake2b(told, digest_size=_DIGEST_BYTES).hexdigest()


def arrays_digest(folder: Path, model_id: str) -> str:
    """The same of what lies in the folder; the whole file is read, but never all of it at once.

    Raises:
        OSError: it cannot be read.
    """
    with arrays_file(folder, model_id).open("rb") as stream:
        return hashlib.file_digest(stream, partial(hashlib.blake2b, digest_size=_DIGEST_BYTES)).hexdigest()


def model_name(digest: str) -> str:
    """The id of a model whose bytes have this hash."""
    return f"mdl_{digest[:_ID_DIGITS]}"


def arrays_file(folder: Path, model_id: str) -> Path:
    """Where a model itself lies."""
    return folder / f"{model_id}.npz"


def manifest_file(folder: Path, model_id: str) -> Path:
    """Where lies what is said of it; a model is there as soon as this file is."""
    return folder / f"{model_id}.json"


def missing_model(folder: Path, model_id: str, error: OSError) -> PMLError:
    """The error to raise where a file of a model cannot be read."""
    if isinstance(error, FileNotFoundError):
        return NoSuchModel(f"{folder} has no model {model_id}; `pml model list` shows those there are")
    return ConfigurationError(f"{folder} cannot be read: {error.strerror or error}")


def damaged(file: Path) -> ModelDamaged:
    """The error to raise where a file of a model is another than was written."""
    return ModelDamaged(f"{file} is not what was written: train again, or restore it from a backup")


def put(file: Path, told: bytes) -> None:
    """Write aside and then rename: nobody reads half of it."""
    handle, aside = tempfile.mkstemp(dir=file.parent, prefix=".model-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(told)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(aside, file)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise
