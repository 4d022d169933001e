"""What a model is told about tools of other servers."""

from __future__ import annotations

from pml.streams.mcp_server.instructions import INSTRUCTIONS
from pml.streams.settings import ToolChoice

PROXIED = """\
Tools named `<server>__<tool>` are those of other servers. PML calls them, records the call, and answers as
their server does, or at once where it was run early. An error with `code` is PML's own: STILL_RUNNING and
APPROVAL_PENDING say where the result will be; do not call the tool again.
"""


def instructions_for(choice: ToolChoice) -> str:
    """What is told where clients see these tools."""
    return {"proxy": PROXIED, "pml": INSTRUCTIONS, "both": f"{INSTRUCTIONS}\n{PROXIED}"}[choice]
