"""The answer to an intent: what runs, what it lacks, or what there is instead."""

from __future__ import annotations

from typing import Any

from pml.processors.discovery.index import DiscoveryIndex
from pml.processors.discovery.library import Library
from pml.processors.discovery.match_answer import SUGGESTIONS, match_answer
from pml.processors.memory.embedding import HashedNgrams
from pml.schemas.catalog import CatalogRecord
from pml.schemas.matching import MatchAnswer, MatchRequest
from pml.schemas.structure import StructureParameter
from tests.processors.discovery.catalog_records import capability, renamed, server

FILES = server("files", "read_file", "write_file", "list_folder")
MAIL = server("mail", "send_mail", "find_address")
REPORT = capability(
    "report",
    "mail the weekly report",
    "files:read_file",
    "mail:send_mail",
    parameters=(
        StructureParameter(name="path", required=False, default="report.md"),
        StructureParameter(name="to"),
    ),
)


def asked(intent: str, *records: CatalogRecord, tenant: str = "local", **fields: Any) -> MatchAnswer:
    library, index = Library(), DiscoveryIndex(HashedNgrams())
    for record in (FILES, MAIL, *records):
        library.take(record)
    shelf = library.shelf(tenant)
    index.put(shelf.documents.values())
    index.remember(shelf.pasts)
    index.rate(shelf.standings)
    request = MatchRequest(tenant=tenant, intent=intent, **{"context": (), **fields})
    return match_answer(library, index, tenant, request, fields.get("threshold", 0.7))


def test_what_is_meant_comes_with_its_workflow_and_defaults() -> None:
    answer = asked("mail the weekly report", REPORT, context=("to",))
    assert (answer.capability_id, answer.name, answer.missing, answer.reason) == (
        "cap_report",
        "report",
        (),
        None,
    )
    assert answer.confidence > answer.threshold == 0.7
    assert answer.workflow is not None
    assert [task.tool for task in answer.workflow.tasks] == ["files:read_file", "mail:send_mail"]
    assert answer.workflow.context == {"path": "report.md"}
    assert [taken.name for taken in answer.parameters] == ["path", "to"]
    assert answer.suggestions == ()


def test_what_the_context_lacks_is_named() -> None:
    answer = asked("mail the weekly report", REPORT, context=("path",))
    assert (answer.capability_id, answer.missing) == ("cap_report", ("to",))
    assert answer.reason == "report takes to, which the context does not give"


def test_what_is_not_meant_for_certain_is_suggested() -> None:
    answer = asked("list what is in a folder", REPORT)
    assert (answer.capability_id, answer.workflow) == (None, None)
    assert answer.confidence < answer.threshold
    assert answer.reason is not None
    assert "report, with confidence" in answer.reason
    assert len(answer.suggestions) == SUGGESTIONS
    assert answer.suggestions[0].id == "files:list_folder"
    assert answer.suggestions[0].name == "list_folder"


def test_the_threshold_decides() -> None:
    assert asked("mail the weekly report", REPORT, context=("to",), threshold=1.0).workflow is None
    assert asked("list a folder", REPORT, context=("to",), threshold=0.0).workflow is not None


def test_drafts_other_tenants_and_what_cannot_be_called_are_not_meant() -> None:
    draft = capability("draft", "mail the weekly report", "mail:send_mail", status="draft")
    foreign = capability("foreign", "mail the weekly report", "mail:send_mail", tenant="other")
    gone = capability("gone", "mail the weekly report", "post:send")
    answer = asked("mail the weekly report", draft, foreign, gone)
    assert (answer.confidence, answer.capability_id) == (0.0, None)
    assert answer.reason is not None
    assert {suggestion.type for suggestion in answer.suggestions} == {"tool"}


def test_a_capability_that_was_renamed_is_called_so() -> None:
    answer = asked("mail the weekly report", REPORT, renamed(REPORT, "friday"), context=("to",))
    assert answer.name == "friday"
    assert answer.workflow is not None
    assert answer.workflow.name == "friday"
