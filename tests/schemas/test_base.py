"""Models that are made ready when they are first used: each can be."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages

import pytest
from pydantic import BaseModel

import pml.schemas
from pml.schemas.base import Model, Record


def below(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for each in model.__subclasses__():
        yield each
        yield from below(each)


def of_schemas() -> list[type[BaseModel]]:
    for module in walk_packages(pml.schemas.__path__, "pml.schemas."):
        import_module(module.name)
    found = {each for base in (Model, Record) for each in below(base)}
    return sorted((each for each in found if each.__module__.startswith("pml.schemas.")), key=str)


def test_there_are_models() -> None:
    assert len(of_schemas()) > 100


@pytest.mark.parametrize("model", of_schemas(), ids=lambda model: model.__name__)
def test_a_model_can_be_made_ready(model: type[BaseModel]) -> None:
    model.model_rebuild()
    assert model.__pydantic_complete__
