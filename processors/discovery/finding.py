"""What was found, as whoever asked is told of it: with schemas, code and what it takes."""

from __future__ import annotations

from pml.processors.discovery.index import Found, Page
from pml.processors.discovery.library import Library, workflow_of
from pml.schemas.discovery import DiscoverAnswer, Discovered
from pml.schemas.identifiers import split_tool


def answer_of(page: Page, library: Library, tenant: str, whole: bool) -> DiscoverAnswer:
    """A page of what a tenant may find; `whole` says that the catalog was read to its end."""
    behind = page.offset + len(page.items)
    return DiscoverAnswer(
        items=tuple(told(found, library, tenant) for found in page.items),
        total=page.total,
        next_offset=behind if page.items and behind < page.total else None,
        complete=whole,
    )


def told(found: Found, library: Library, tenant: str) -> Discovered:
    """One tool or capability with all that is needed to call it."""
    name = found.document.id
    return (
        _tool(name, found, library) if found.document.kind == "tool" else _own(name, found, library, tenant)
    )


def _tool(name: str, found: Found, library: Library) -> Discovered:
    tool = library.tool(name)
    return Discovered(
        type="tool",
        id=name,
        name=split_tool(name)[1],
        score=found.score,
        description=tool.description,
        needs_approval=library.needs_approval(name),
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
    )


def _own(name: str, found: Found, library: Library, tenant: str) -> Discovered:
    capability = library.capability(tenant, name)
    called, tools = library.name_of(tenant, name), library.tools_of(tenant, name)
    whole = workflow_of(capability, called).model_dump(mode="json", exclude_none=True)
    return Discovered(
        type="capability",
        id=name,
        name=called,
        score=found.score,
        description=capability.intent or "",
        needs_approval=any(library.needs_approval(tool) for tool in tools),
        parameters=capability.parameters,
        tools=tools,
        language=capability.language,
        code=capability.code,
        definition={part: whole[part] for part in ("tasks", "decisions", "result") if whole.get(part)},
        runs=capability.runs,
        successes=capability.successes,
    )
