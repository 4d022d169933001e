"""The core of a run: what follows from an input (`decide`), the state it folds to (`evolve`)."""

from pml.processors.workflow.calls import call_needs, calls
from pml.processors.workflow.catalog import Catalog, Policy
from pml.processors.workflow.deadlines import deadline, deadline_command
from pml.processors.workflow.decide import decide
from pml.processors.workflow.evolve import evolve
from pml.processors.workflow.inputs import (
    Address,
    Deadline,
    GoneCall,
    Input,
    Payloads,
    Step,
    Unreadable,
    payload_of,
)
from pml.processors.workflow.needs import needs
from pml.processors.workflow.oversize import fail_too_large
from pml.processors.workflow.record import (
    MissingDefinition,
    decode_session,
    definition_name,
    definition_record,
    encode_session,
)
from pml.processors.workflow.state import Session

__all__ = [
    "Address",
    "Catalog",
    "Deadline",
    "GoneCall",
    "Input",
    "MissingDefinition",
    "Payloads",
    "Policy",
    "Session",
    "Step",
    "Unreadable",
    "call_needs",
    "calls",
    "deadline",
    "deadline_command",
    "decide",
    "decode_session",
    "definition_name",
    "definition_record",
    "encode_session",
    "evolve",
    "fail_too_large",
    "needs",
    "payload_of",
]
