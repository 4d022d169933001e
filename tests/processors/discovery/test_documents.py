"""What a tool and a capability say of themselves, whatever their schemas hold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pml.processors.discovery.documents import SCHEMA_FIELDS, capability_document, tool_document
from pml.processors.discovery.words import TEXT_CHARACTERS

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["properties", "required", "a"]), inner)
    ),
)


def test_a_tool_is_its_name_its_description_and_its_inputs() -> None:
    schema = {
        "properties": {
            "repo_path": {"type": "string", "description": "Where it lies"},
            "filter": {"properties": {"since": {"description": "Not before"}}},
            "items": {"type": "array", "items": {"properties": {"sku": {}}}},
        },
        "required": ["repo_path"],
    }
    found = tool_document("git:git_log", "Shows commits", schema, {"properties": {"commits": {}}})
    assert (
        found.text
        == "git git log. Shows commits. repo path Where it lies. filter. items. since Not before. sku"
    )
    assert (found.kind, found.takes, found.gives) == ("tool", ("repo_path",), ("commits",))


def test_a_capability_is_its_name_its_intent_and_its_tools() -> None:
    found = capability_document(
        "cap_1", "releaseNotes", "Write release notes", tools=["git:git_log", "git:git_log"]
    )
    assert found.text == "release notes. Write release notes. git git log. git git log"
    assert (found.kind, found.tools) == ("capability", ("git:git_log",))


@given(json_values, json_values)
def test_a_schema_may_be_anything(given_schema: object, output: object) -> None:
    found = tool_document("a:b", "told", given_schema, output)  # type: ignore[arg-type]
    assert found.text.startswith("a b. told")


def test_a_long_schema_is_cut() -> None:
    schema = {"properties": {f"field{number}": {"description": "x" * 500} for number in range(1_000)}}
    found = tool_document("a:b", "", schema, schema)
    assert len(found.text) <= TEXT_CHARACTERS
    assert len(found.gives) == SCHEMA_FIELDS
