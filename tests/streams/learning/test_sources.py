"""What training knows beside sessions: the catalog of a tenant."""

from __future__ import annotations

from pml.streams.learning.sources import known_from
from tests.processors.discovery.catalog_records import capability, edge, renamed, server


def test_a_tenants_catalog_says_what_may_be_called_and_what_capabilities_call() -> None:
    weekly = capability("b", "send the weekly report", "files:read")
    records = [
        server("files", "read"),
        capability("a", "send the report", "files:read"),
        weekly,
        renamed(weekly, "weekly"),
        edge("contains", "cap_b", "files:read"),
        edge("contains", "cap_b", "cap_a"),
        edge("contains", "cap_a", "files:read"),
        edge("sequence", "files:read", "cap_a"),
        edge("contains", "cap_b", "files:read", tenant="others"),
        edge("contains", "cap_c", "files:read", tenant="others"),
    ]
    known = known_from({(record.kind, record.id): record for record in records}, "local")
    assert known.contained == {"cap_a": ["files:read"], "cap_b": ["cap_a", "files:read"]}
    assert set(known.listed) == {"files:read", "cap_a", "cap_b"} == known.texts.keys()
    assert known.schemas.keys() == {"files:read"}
    assert known_from({}, "local").contained == {}
