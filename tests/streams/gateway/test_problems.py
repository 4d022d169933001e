"""What a client hears of an error: whose fault it is, and nothing that is only for the operator."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from structlog.testing import capture_logs

from pml.schemas.errors import ConfigurationError, PMLError, UndecodableRecord, WorkflowInvalid
from pml.streams.gateway.app import make_app
from pml.streams.gateway.problems import status_of
from pml.streams.gateway.tokens import TokenFile
from pml.streams.local.kafka import BrokerInUse
from pml.streams.settings import Settings
from tests.streams.gateway.test_app import NOWHERE, client, nobody, token


def coded(code: str) -> PMLError:
    error = PMLError("it is so")
    error.code = code
    return error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (UndecodableRecord("the body is wrong"), HTTPStatus.BAD_REQUEST),
        (WorkflowInvalid("WORKFLOW_INVALID", "it is wrong"), HTTPStatus.UNPROCESSABLE_ENTITY),
        (coded("BAD_REQUEST"), HTTPStatus.BAD_REQUEST),
        (ConfigurationError("a file is wrong"), HTTPStatus.INTERNAL_SERVER_ERROR),
        (BrokerInUse("a folder is held"), HTTPStatus.INTERNAL_SERVER_ERROR),
    ],
)
def test_what_is_wrong_with_a_setting_is_not_the_clients_fault(error: PMLError, status: HTTPStatus) -> None:
    assert status_of(error) is status


@pytest.mark.parametrize("path", ["/v1/runs", "/mcp"])
@pytest.mark.parametrize("known", [True, False])
def test_a_broken_file_of_tokens_is_the_servers_fault(tmp_path: Path, path: str, *, known: bool) -> None:
    headers = token(tmp_path, "runs:read") if known else {}
    file = TokenFile(tmp_path).path
    file.write_bytes(b'[{"token_id": "x"')
    with client(tmp_path) as door, capture_logs() as logged:
        answer = door.post(path, headers=headers, json={})

    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    told = answer.json()
    assert (told["code"], told["retryable"], told["details"]) == ("CONFIGURATION", False, {})
    assert str(tmp_path) not in answer.text
    assert file.name not in answer.text
    (line,) = [line for line in logged if line["log_level"] == "error"]
    assert (line["code"], str(file) in line["reason"]) == ("CONFIGURATION", True)


def test_a_broken_file_of_permissions_is_the_servers_fault(tmp_path: Path) -> None:
    file = tmp_path / "permissions.yaml"
    file.write_text("tools: 5\n")
    settings = Settings(data_dir=tmp_path, kafka={"bootstrap_servers": NOWHERE}, mcp_permissions=file)
    with TestClient(make_app(settings, nobody, lambda: None), "http://127.0.0.1") as door:
        answer = door.get("/v1/tools")

    assert (answer.status_code, answer.json()["code"]) == (500, "CONFIGURATION")
    assert file.name not in answer.text
