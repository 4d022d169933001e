"""Trained models as files: `<model_id>.npz`, named by its own bytes, and `<model_id>.json` about it."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from pml.processors.learning.model import NextModel
from pml.processors.memory.embedding import Embedding
from pml.schemas.errors import ConfigurationError, PMLError
from pml.streams.learning.manifests import (
    TENANT,
    Manifest,
    ModelDamaged,
    NoSuchModel,
    arrays_digest,
    arrays_file,
    damaged,
    digest_of,
    manifest_file,
    missing_model,
    model_name,
    of_another_tenant,
    put,
    read_manifest,
    tenant_of,
)
from pml.streams.learning.npz import opened_arrays

FORMAT_VERSION = 1
# What is read into memory where it serves.
BYTES_MAX = 512 * 1024 * 1024


class ModelUnfit(PMLError):
    """A model of another embedding, release or tenant, or one that is too large."""

    code = "MODEL_UNFIT"


def write(folder: Path, model: NextModel, manifest: Mapping[str, Any]) -> str:
    """Keep a model; its id. The same model of a tenant has the same id, and the manifest that was there first
    stays. A file that is damaged or gone is written anew.

    Args:
        folder: is made where it is not there.
        manifest: what to say of it, JSON-serialisable.

    Raises:
        ModelUnfit: it is too large.
        ConfigurationError: the folder cannot be written.
    """
    told = model_bytes(model, tenant_of(manifest))
    if len(told) > BYTES_MAX:
        raise ModelUnfit(
            f"the model has {len(told)} bytes, more than {BYTES_MAX}: train it on a shorter time"
        )
    digest = digest_of(told)
    model_id = model_name(digest)
    about = {"format_version": FORMAT_VERSION, "model_id": model_id, "blake2b": digest, "bytes": len(told)}
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _arrays_lie(folder, model_id, digest):
            put(arrays_file(folder, model_id), told)
        if not _manifest_lies(folder, model_id, digest, tenant_of(manifest)):
            # Last: a model is there as soon as its manifest is.
            put(
                manifest_file(folder, model_id),
                orjson.dumps({**manifest, **about}, option=orjson.OPT_INDENT_2),
            )
    except OSError as error:
        raise ConfigurationError(f"{folder} cannot be written: {error.strerror or error}") from None
    return model_id


def _arrays_lie(folder: Path, model_id: str, digest: str) -> bool:
    try:
        return arrays_digest(folder, model_id) == digest
    except FileNotFoundError:
        return False


def _manifest_lies(folder: Path, model_id: str, digest: str, tenant: str) -> bool:
    try:
        found = read_manifest(folder, model_id)
    except (NoSuchModel, ModelDamaged):
        return False
    return (found["blake2b"], tenant_of(found)) == (digest, tenant)


def load(folder: Path, model_id: str, embedding: Embedding) -> tuple[NextModel, Manifest]:
    """A model and its manifest, its bytes compared with its name.

    Raises:
        NoSuchModel: it is not in the folder.
        ModelDamaged: it is not what was written, or not whose its manifest says.
        ModelUnfit: it was fitted with another embedding, or by a release whose models this one cannot read.
    """
    manifest, file = read_manifest(folder, model_id), arrays_file(folder, model_id)
    if _size(file) > BYTES_MAX:
        raise ModelUnfit(f"{file} has more than {BYTES_MAX} bytes")
    try:
        told = file.read_bytes()
    except OSError as error:
        raise missing_model(folder, model_id, error) from None
    if digest_of(told) != manifest["blake2b"]:
        raise damaged(file)
    try:
        arrays = dict(opened_arrays(io.BytesIO(told)))
        if str(arrays.pop(TENANT, "")) != tenant_of(manifest):
            raise of_another_tenant(model_id)
        return NextModel.from_arrays(arrays, embedding), manifest
    except ValueError as error:
        raise ModelUnfit(f"{model_id} cannot serve: {error}", model_id=model_id) from None


def model_bytes(model: NextModel, tenant: str) -> bytes:
    """The arrays of a model as npz, and whose it is; the same model of a tenant always gives the same bytes.

    Tenants whose sessions are alike train the same arrays, and each has a model of its own.
    """
    stream = io.BytesIO()
    arrays: dict[str, Any] = {TENANT: np.array(tenant), **model.to_arrays()}
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
