"""The HTTP door, as far as nothing has to run behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from pml.streams.gateway.app import ROUTES, make_app
from pml.streams.gateway.tokens import SCOPES, Scope, TokenFile
from pml.streams.settings import GatewaySettings, Settings

NOW = "2026-01-01T00:00:00.000000Z"
# Nothing listens there: whatever passes the door ends with BROKER_UNAVAILABLE or STORE_UNAVAILABLE.
NOWHERE = "127.0.0.1:1"
NEEDED: dict[tuple[str, str], Scope] = {
    (method, path): "runs:write" if method == "POST" else "runs:read" for method, path, _ in ROUTES
} | {
    ("POST", "/v1/discover"): "runs:read",
    ("POST", "/v1/approvals/{approval_id}/approve"): "approvals:write",
    ("POST", "/v1/approvals/{approval_id}/reject"): "approvals:write",
    ("GET", "/v1/dead-letters"): "dlq:admin",
    ("GET", "/v1/dead-letters/{letter_id}"): "dlq:admin",
}


class Nobody:
    """A producer that nothing may reach."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was called")


@asynccontextmanager
async def nobody() -> AsyncIterator[Nobody]:
    yield Nobody()


def client(tmp_path: Path, **gateway: Any) -> TestClient:
    settings = Settings(
        data_dir=tmp_path,
        kafka={"bootstrap_servers": NOWHERE},
        clickhouse={"url": f"http://{NOWHERE}"},
        gateway=GatewaySettings(**gateway),
    )
    app = make_app(settings, nobody, lambda: None)
    return TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)


@pytest.fixture
def door(tmp_path: Path) -> Iterator[TestClient]:
    with client(tmp_path) as opened:
        yield opened


def token(tmp_path: Path, *scopes: Scope, principal: str = "person:ada") -> dict[str, str]:
    made = TokenFile(tmp_path).create("acme", principal, scopes, NOW)
    return {"authorization": f"Bearer {made}"}


def filled(path: str) -> str:
    return path.format(run_id="run_1", task="n1", approval_id="apr_1", letter_id="1")


@pytest.mark.parametrize(("method", "path"), NEEDED, ids=" ".join)
def test_every_route_needs_its_scope(tmp_path: Path, method: str, path: str) -> None:
    needed = NEEDED[method, path]
    others = token(tmp_path, *(scope for scope in SCOPES if scope != needed))
    with client(tmp_path) as door:
        answer = door.request(method, filled(path), headers=others)

    assert answer.status_code == 403
    assert answer.json()["code"] == "NOT_ALLOWED"
    assert needed in answer.json()["detail"]


@pytest.mark.parametrize(("method", "path"), NEEDED, ids=" ".join)
def test_where_there_is_a_token_nobody_comes_in_without_one(tmp_path: Path, method: str, path: str) -> None:
    token(tmp_path, *SCOPES)
    with client(tmp_path) as door:
        for headers in ({}, {"authorization": "Bearer pml_x_y"}, {"authorization": "Basic eDp5"}):
            answer = door.request(method, filled(path), headers=headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")


def test_off_loopback_nobody_comes_in_without_a_token(tmp_path: Path) -> None:
    with client(tmp_path, host="0.0.0.0") as door:
        assert door.get("/v1/runs").status_code == 401


def test_on_loopback_whoever_comes_may_run_and_not_approve(door: TestClient) -> None:
    assert door.post("/v1/approvals/apr_1/approve").status_code == 403
    assert door.get("/v1/dead-letters").status_code == 403
    assert door.get("/v1/runs").json()["code"] == "STORE_UNAVAILABLE"


def test_a_name_that_is_not_ours_is_refused(door: TestClient) -> None:
    answer = door.get("/healthz", headers={"host": "evil.example"})

    assert (answer.status_code, answer.json()["code"]) == (421, "HOST_NOT_ALLOWED")


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://evil.example", 403),
        ("null", 403),
        ("http://localhost:3000", 200),
        ("https://ok.example", 200),
    ],
)
def test_web_pages_of_elsewhere_may_not_call(tmp_path: Path, origin: str, status: int) -> None:
    with client(tmp_path, origins=("https://ok.example",)) as door:
        assert door.get("/healthz", headers={"origin": origin}).status_code == status


def test_a_body_is_bounded_with_and_without_a_length(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(3):
            yield b"x" * 500

    with client(tmp_path, body_bytes_max=1024) as door:
        for body in (b"x" * 1025, pieces()):
            answer = door.post("/v1/runs", content=body)
            assert (answer.status_code, answer.json()["code"]) == (413, "TOO_LARGE")


def test_a_caller_may_send_so_many_at_once(tmp_path: Path) -> None:
    with client(tmp_path, requests_per_s=0.001, burst=3) as door:
        statuses = [door.get("/healthz").status_code for _ in range(4)]

    assert statuses == [200, 200, 200, 429]


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/v1/runs", b"{", "UNDECODABLE"),
        ("/v1/runs", b"[]", "UNDECODABLE"),
        ("/v1/runs", b"{}", "UNDECODABLE"),
        ("/v1/runs", b'{"workflow": {}, "more": 1}', "UNDECODABLE"),
        ("/v1/runs", b'{"intent": "", "context": {}}', "UNDECODABLE"),
        ("/v1/discover", b"{}", "UNDECODABLE"),
        ("/v1/discover", b'{"intent": "x", "limit": 51}', "UNDECODABLE"),
        ("/v1/discover", b'{"intent": "x", "filter": {"kind": "tool"}}', "UNDECODABLE"),
        ("/v1/runs", b'{"workflow": {}, "code": {"source": "a"}}', "UNDECODABLE"),
        ("/v1/runs", b'{"code": {"source": ""}}', "UNDECODABLE"),
        ("/v1/runs?wait_s=51", b'{"workflow": {}}', "UNDECODABLE"),
        ("/v1/runs?wait_s=nan", b'{"workflow": {}}', "UNDECODABLE"),
        ("/v1/runs/run_1/continue", b'{"checkpoint": 1}', "WORKFLOW_INVALID"),
        ("/v1/runs/%20/abort", b"", "UNDECODABLE"),
        ("/v1/runs/%20/score", b'{"name": "q", "number": 1}', "UNDECODABLE"),
        ("/v1/runs/run_1/score", b"{}", "WORKFLOW_INVALID"),
        ("/v1/runs/run_1/score", b'{"name": "q", "number": 1, "boolean": true}', "WORKFLOW_INVALID"),
        ("/v1/runs/run_1/score", b'{"name": "q", "number": 1e999}', "UNDECODABLE"),
    ],
)
def test_a_request_of_the_wrong_shape_is_told_so(door: TestClient, path: str, body: bytes, code: str) -> None:
    answer = door.post(path, content=body)

    assert answer.status_code in {400, 422}
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == code


def test_paths_and_methods_that_are_not_there(door: TestClient) -> None:
    assert door.get("/v1/nothing").json()["code"] == "NOT_FOUND"
    assert door.delete("/v1/runs").json()["code"] == "METHOD_NOT_ALLOWED"


def test_a_defect_tells_nothing_of_itself(door: TestClient) -> None:
    answer = door.post("/v1/runs", json={"workflow": {"tasks": []}})

    assert answer.status_code == 500
    assert answer.json()["code"] == "INTERNAL"
    assert "start_run" not in answer.text


def test_it_says_that_it_lives_and_whether_it_is_ready(door: TestClient) -> None:
    assert door.get("/healthz").json() == {"status": "alive"}
    assert door.get("/readyz").status_code == 200


def test_the_document_describes_every_route_and_resolves(door: TestClient) -> None:
    found = door.get("/openapi.json").json()

    described = {(method.upper(), path) for path, item in found["paths"].items() for method in item}
    assert described == {(method, path) for method, path, _ in ROUTES}
    for reference in references(found):
        place: Any = found
        for part in reference.removeprefix("#/").split("/"):
            place = place[part]
    ids = [item["operationId"] for methods in found["paths"].values() for item in methods.values()]
    assert len(set(ids)) == len(ids)
    assert all(item["summary"] for methods in found["paths"].values() for item in methods.values())


def test_the_document_says_what_may_be_sent_beside_a_request(door: TestClient) -> None:
    found = door.get("/openapi.json").json()["paths"]
    headers = {
        (method.upper(), path): {item["name"] for item in operation["parameters"] if item["in"] == "header"}
        for path, methods in found.items()
        for method, operation in methods.items()
    }

    with_key = {route for route, names in headers.items() if names == {"Idempotency-Key"}}
    assert with_key == {route for route in headers if route[0] == "POST"} - {("POST", "/v1/discover")}
    assert headers["GET", "/v1/runs/{run_id}/events"] == {"Last-Event-ID"}
    assert "204" in found["/v1/runs/{run_id}/events"]["get"]["responses"]


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def test_figures_are_those_of_prometheus(door: TestClient) -> None:
    answer = door.get("/metrics")

    assert answer.headers["content-type"].startswith("text/plain")
    assert "# TYPE" in answer.text


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"host": "["}, "HOST_NOT_ALLOWED"),
        ({"host": "[::1"}, "HOST_NOT_ALLOWED"),
        ({"origin": "http://["}, "ORIGIN_NOT_ALLOWED"),
    ],
)
def test_what_is_no_address_is_not_ours(door: TestClient, headers: dict[str, str], code: str) -> None:
    answer = door.get("/healthz", headers=headers)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == code


@pytest.mark.parametrize("number", ["²", "٣", "1" * 5_000, "-2", "1.0"])
def test_what_is_a_number_elsewhere_is_refused(tmp_path: Path, number: str) -> None:
    """A superscript is a digit, and no number; so many digits are read by nobody."""
    text, allowed = quote(number), token(tmp_path, "runs:read", "dlq:admin")
    for path in (f"/v1/runs?limit={text}", f"/v1/dead-letters?cursor={text}", f"/v1/dead-letters/{text}"):
        with client(tmp_path) as door:
            answer = door.get(path, headers=allowed)
        assert (answer.status_code, answer.json()["code"]) == (400, "UNDECODABLE"), path.split("?")[0]


def test_a_length_of_the_body_is_a_number(door: TestClient) -> None:
    answer = door.get("/healthz", headers=[(b"content-length", "²".encode("latin-1"))])
    assert (answer.status_code, answer.json()["code"]) == (413, "TOO_LARGE")
