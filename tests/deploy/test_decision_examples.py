"""The examples that wait for somebody: they can run, and they do wait."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pml.deploy.examples import world
from pml.processors.speculation.guard import requires_validation
from pml.processors.workflow.check import checked_graph
from pml.schemas.catalog import ServerTools
from pml.schemas.permissions import PermissionFile
from pml.schemas.workflow import Workflow

EXAMPLES = Path(world.__file__).parent
PERMISSIONS = PermissionFile.model_validate(
    yaml.safe_load((EXAMPLES / "mcp-permissions.yaml").read_text(encoding="utf-8"))
)
SERVERS = {"files": ServerTools(server="files", status="unavailable")}


@pytest.mark.parametrize("path", sorted((EXAMPLES / "decisions").glob("*.yaml")), ids=lambda path: path.stem)
def test_an_example_waits_for_somebody(path: Path) -> None:
    graph = checked_graph(Workflow.model_validate(yaml.safe_load(path.read_text(encoding="utf-8"))), SERVERS)
    asks = [node.tool for node in graph.nodes.values() if requires_validation(node.tool, PERMISSIONS)]
    assert graph.options.per_layer_validation or asks == ["files:delete_file"]
    assert len(graph.layers) > 1
