"""What the catalog offers to whom: nothing that cannot be called, nothing of another tenant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.discovery.library import Library, workflow_of
from pml.schemas.catalog import CatalogRecord, ModelRecord
from pml.schemas.structure import StructureParameter
from pml.schemas.workflow import Task
from tests.processors.discovery.catalog_records import capability, edge, permissions, renamed, server

FILES = server("files", "read", "write")


def library(*records: CatalogRecord) -> Library:
    made = Library()
    for record in records:
        made.take(record)
    return made


def found(made: Library, tenant: str = "local") -> set[str]:
    return set(made.shelf(tenant).documents)


def test_tools_of_a_listed_server_are_for_every_tenant() -> None:
    assert found(library(FILES), "anybody") == {"files:read", "files:write"}


def test_a_capability_is_for_its_tenant_alone() -> None:
    made = library(FILES, capability("a", "tidy up", "files:read", tenant="ann"))
    assert "cap_a" in found(made, "ann")
    assert found(made, "bob") == {"files:read", "files:write"}
    assert made.shelf("bob").pasts == ()
    assert made.shelf("bob").standings == {}


def test_drafts_are_found_by_nobody() -> None:
    draft = capability("a", "tidy up", "files:read", status="draft")
    assert "cap_a" not in found(library(FILES, draft))


def test_what_cannot_be_called_is_not_offered() -> None:
    made = library(FILES, capability("a", "tidy up", "files:read"))
    assert "cap_a" in found(made)
    made.take(server("files", status="unavailable"))
    assert found(made) == set()
    made.take(server("files", "write"))
    assert found(made) == {"files:write"}
    made.take(FILES)
    assert "cap_a" in found(made)


def test_a_server_that_is_gone_takes_its_tools_with_it() -> None:
    made = library(FILES)
    made.drop("tool", "files")
    assert found(made) == set()


def test_a_capability_needs_those_that_it_calls() -> None:
    inner = capability("inner", "read", "files:read")
    outer = capability("outer", "read twice", tasks=(Task(id="n1", capability="cap_inner"),))
    made = library(FILES, outer)
    assert "cap_outer" not in found(made)
    made.take(inner)
    assert {"cap_outer", "cap_inner"} <= found(made)
    assert made.tools_of("local", "cap_outer") == ("files:read",)


def test_capabilities_that_call_each_other_are_offered_to_nobody() -> None:
    one = capability("one", "x", tasks=(Task(id="n1", capability="cap_two"),))
    two = capability("two", "y", tasks=(Task(id="n1", capability="cap_one"),))
    assert found(library(FILES, one, two)) == {"files:read", "files:write"}


def test_a_capability_is_called_as_a_person_calls_it() -> None:
    record = capability("a", "tidy up", "files:read")
    made = library(FILES, renamed(record, "spring_cleaning"), record)
    assert made.name_of("local", "cap_a") == "spring_cleaning"
    assert made.shelf("local").documents["cap_a"].name == "spring cleaning"
    made.drop("capability_name", record.id)
    assert made.name_of("local", "cap_a") == "a"
    made.drop("capability", record.id)
    assert "cap_a" not in found(made)


def test_the_version_moves_only_for_whom_something_changed() -> None:
    made = library(FILES)
    ann, bob = made.version("ann"), made.version("bob")
    made.take(capability("a", "tidy up", "files:read", tenant="ann"))
    assert (made.version("ann") != ann, made.version("bob") == bob) == (True, True)
    made.take(permissions())
    assert made.version("bob") == bob
    made.take(server("other", "x"))
    assert made.version("bob") != bob


def test_a_person_is_asked_where_the_file_says_so_or_nothing() -> None:
    made = library(
        FILES, permissions(files__read={"approval": "auto"}, files__write={"scope": "x", "approval": "hil"})
    )
    assert [made.needs_approval(f"files:{name}") for name in ("read", "write", "other")] == [
        False,
        True,
        True,
    ]


def test_what_was_used_lately_and_well_stands_higher() -> None:
    made = library(
        FILES,
        capability("new", "x", "files:read", runs=9, successes=9, used_at="2026-03-01T00:00:00Z"),
        capability("old", "x", "files:read", runs=9, successes=9, used_at="2026-01-30T00:00:00Z"),
        capability("bad", "x", "files:read", runs=9, successes=1, used_at="nonsense"),
    )
    standings = made.shelf("local").standings
    assert standings["cap_new"].recency == 1.0
    assert standings["cap_old"].recency == pytest.approx(0.5)
    assert standings["cap_bad"].recency == 0.0
    assert standings["cap_new"].success == pytest.approx(10 / 11)
    assert standings["cap_bad"].success == pytest.approx(2 / 11)


def test_edges_are_for_their_tenant_alone_and_make_ranks() -> None:
    fields = [{"from_field": name, "to_field": "content"} for name in ("text", "title")]
    told = edge("provides", "files:read", "files:write", tenant="ann", successes=1, fields=fields)
    made = library(FILES, told)
    (link,) = made.shelf("ann").links
    assert (link.type, link.source, link.target) == ("provides", "files:read", "files:write")
    (kept,) = made.edges("ann")
    assert (kept.successes, [each.from_field for each in kept.fields]) == (1, ["text", "title"])
    standings = made.shelf("ann").standings
    assert standings["files:write"].page_rank == 1.0 > standings["files:read"].page_rank > 0
    assert (made.shelf("bob").links, dict(made.shelf("bob").standings)) == ((), {})
    made.drop("edge", told.id)
    assert (made.shelf("ann").links, dict(made.shelf("ann").standings)) == ((), {})


def test_an_edge_is_news_for_its_tenant() -> None:
    made = library(FILES)
    ann, bob = made.version("ann"), made.version("bob")
    made.take(edge("provides", "files:read", "files:write", tenant="ann"))
    assert (made.version("ann") != ann, made.version("bob") == bob) == (True, True)


def test_an_edge_to_a_name_that_a_person_gave_leads_to_its_capability() -> None:
    record = capability("a", "tidy up", "files:read")
    made = library(
        FILES, record, renamed(record, "spring-cleaning"), edge("contains", "cap_b", "spring-cleaning")
    )
    assert [link.target for link in made.links("local")] == ["cap_a"]
    assert [each.target for each in made.edges("local")] == ["cap_a"]


def test_every_intent_that_it_was_good_for_is_a_past() -> None:
    made = library(FILES, capability("a", "tidy up", "files:read", intents=("clean the house",)))
    assert [(past.intent, past.capability) for past in made.shelf("local").pasts] == [
        ("tidy up", "cap_a"),
        ("clean the house", "cap_a"),
    ]


def test_the_workflow_of_a_capability_has_its_defaults_as_context() -> None:
    taken = (
        StructureParameter(name="path", required=False, default="a.txt"),
        StructureParameter(name="who", required=True),
    )
    record = capability("a", "tidy up", "files:read", parameters=taken)
    workflow = workflow_of(record.data, "mine")  # type: ignore[arg-type]
    assert (workflow.name, workflow.intent, workflow.context) == ("mine", "tidy up", {"path": "a.txt"})
    assert [task.tool for task in workflow.tasks] == ["files:read"]


records = st.one_of(
    st.builds(
        server,
        st.sampled_from(["files", "mail"]),
        st.sampled_from(["read", "write"]),
        status=st.sampled_from(["listed", "unavailable"]),
    ),
    st.builds(
        capability,
        st.sampled_from(["a", "b"]),
        st.sampled_from(["tidy up", "send a mail"]),
        st.sampled_from(["files:read", "mail:write"]),
        tenant=st.sampled_from(["ann", "bob"]),
        status=st.sampled_from(["draft", "learned"]),
    ),
    st.tuples(st.sampled_from(["tool", "capability"]), st.sampled_from(["files", "mail", "ann/cap_a"])),
)


@given(st.lists(records, max_size=20))
def test_only_the_newest_record_of_each_key_counts(given_: list[object]) -> None:
    """As a twin that keeps the newest of each key and begins anew."""
    made, newest = Library(), dict[tuple[str, str], CatalogRecord]()
    for record in given_:
        if isinstance(record, CatalogRecord):
            made.take(record)
            newest[record.kind, record.id] = record
        else:
            kind, name = record  # type: ignore[misc]
            made.drop(kind, name)
            newest.pop((kind, name), None)
    twin = library(*newest.values())
    for tenant in ("ann", "bob"):
        assert made.shelf(tenant) == twin.shelf(tenant)


def promoted(tenant: str, model_id: str) -> CatalogRecord:
    data = ModelRecord(
        model_id=model_id,
        learner="ranker" if model_id else "",
        hit_1=0.5,
        baseline="markov_1",
        baseline_hit_1=0.4,
        promoted_at="2026-01-01T00:00:00.000000Z",
    )
    return CatalogRecord(kind=ModelRecord.KIND, id=tenant, data=data)


def test_a_model_predicts_for_whom_it_was_promoted_until_it_has_fallen() -> None:
    made = library(promoted("bob", "mdl_b"), promoted("ann", "mdl_a"), promoted("eve", ""))
    assert made.predicted == ("ann", "bob")
    made.take(promoted("bob", ""))
    made.drop(ModelRecord.KIND, "ann")
    assert made.predicted == ()
