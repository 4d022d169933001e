"""What clients of before 2026-07-28 take: schemas and structured content are objects there. Pure."""

from __future__ import annotations

from typing import Any

from mcp_types import CallToolResult, Tool


def tool_before_2026(tool: Tool) -> Tool:
    """A tool in the words of those versions; an output schema that they do not have is left out."""
    changes: dict[str, Any] = {}
    if not is_object(tool.input_schema):
        changes["input_schema"] = {**tool.input_schema, "type": "object"}
    if tool.output_schema is not None and not is_object(tool.output_schema):
        changes["output_schema"] = None
    return tool.model_copy(update=changes) if changes else tool


def answer_before_2026(answer: CallToolResult) -> CallToolResult:
    """An answer in the words of those versions: other structured content lies under `result`."""
    structured = answer.structured_content
    if structured is None or isinstance(structured, dict):
        return answer
    return answer.model_copy(update={"structured_content": {"result": structured}})


def is_object(schema: dict[str, Any]) -> bool:
    """Whether a schema is written as those versions want it."""
    return schema.get("type") == "object"
