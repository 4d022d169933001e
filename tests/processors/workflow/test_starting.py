"""How large a workflow may be."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.workflow.starting import DEFINITION_BYTES_MAX, safe_definition
from pml.schemas.canonical import canonical_json
from pml.schemas.errors import WorkflowInvalid
from pml.schemas.workflow import Workflow


def definition(text_bytes: int) -> dict[str, Any]:
    """What is kept of a workflow with so many bytes of text, in pieces that are not cut."""
    pieces = [min(10_000, text_bytes - begin) for begin in range(0, text_bytes, 10_000)]
    tasks = [
        {"id": f"n{number:02}", "tool": "files:parse", "arguments": {"text": "x" * size}}
        for number, size in enumerate(pieces)
    ]
    return safe_definition(Workflow.model_validate({"tasks": tasks}))


def test_a_definition_is_kept_whole_up_to_256_kib() -> None:
    around = len(canonical_json(definition(250_001))) - 250_001
    whole = 256 * 1_024 - around
    assert len(canonical_json(definition(whole))) == DEFINITION_BYTES_MAX == 256 * 1_024
    with pytest.raises(WorkflowInvalid, match="at most 262144"):
        definition(whole + 1)
