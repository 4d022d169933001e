"""The files of a small made-up product, the same text each time: what the demo's workflows read."""

from __future__ import annotations

import json
from typing import Any

import yaml

_RESOURCES = (
    *("berths", "bookings", "cargo", "carriers", "containers", "cranes", "customers", "customs", "depots"),
    *("documents", "drivers", "gates", "holds", "inspections", "invoices", "manifests", "moves", "pilots"),
    *("quays", "reefers", "seals", "slots", "stowage", "surcharges", "tariffs", "trucks", "vessels"),
    *("voyages", "yards", "zones"),
)
_OPERATIONS = {
    "create": "POST",
    "read": "GET",
    "list": "GET",
    "update": "PATCH",
    "replace": "PUT",
    "archive": "POST",
    "restore": "POST",
    "watch": "GET",
    "export": "GET",
    "audit": "GET",
}
_DEPRECATED_EVERY = 7

_PACKAGE = {
    "name": "quayside",
    "version": "2.4.0",
    "license": "Apache-2.0",
    "engines": {"python": ">=3.11"},
    "dependencies": {"orjson": "3.13.0", "starlette": "1.10.2", "uvicorn": "0.54.1"},
}
_INCIDENT = {
    "id": "INC-0412",
    "title": "Berth calendar showed stale slots",
    "service": "berth-planner",
    "resource": "berths",
    "started": "14:05",
    "timezone": "Europe/Amsterdam",
    "runbook": "docs/guide/04-operations.md",
    "severity": 2,
}
_SERVICE = {"name": "berth-planner", "bind": "127.0.0.1:8080", "log_level": "info", "debug": False}
_DATABASE = {
    "service": "berth-planner",
    "host": "db.quayside.internal",
    "password_file": "/run/secrets/database",
    "tls": True,
}
_DEPLOY = {"service": "berth-planner", "replicas": 3, "image": "quayside/berth-planner:2.4.0"}
_THIRD_PARTY = [
    {"name": "orjson", "version": "3.13.0", "license": "Apache-2.0"},
    {"name": "starlette", "version": "1.10.2", "license": "BSD-3-Clause"},
    {"name": "uvicorn", "version": "0.54.1", "license": "BSD-3-Clause"},
]
_BROKEN_JSON = """\
{
  "name": "berth-planner-v1",
  "host": "old.quayside.internal"
  "port": 8081
}
"""


def files() -> dict[str, str]:
    """Every file of the product by its path: about 320, 1.2 MB."""
    return {**project(), **_reference()}


def project() -> dict[str, str]:
    """The files without the reference pages: about 25."""
    return {**_TEXTS, **_documents(), **_guide()}


def _documents() -> dict[str, str]:
    return {
        "package.json": _json(_PACKAGE),
        "config/database.json": _json(_DATABASE),
        "config/legacy.json": _BROKEN_JSON,
        "config/service.json": _json(_SERVICE),
        "config/deploy.yaml": yaml.safe_dump(_DEPLOY, sort_keys=False),
        "incidents/latest.json": _json(_INCIDENT),
        "third-party.json": _json(_THIRD_PARTY),
    }


def _guide() -> dict[str, str]:
    titles = ("Start", "Concepts", "Configuration", "Operations", "Security", "Upgrading")
    return {f"docs/guide/{n:02}-{t.lower()}.md": _guide_page(n, t) for n, t in enumerate(titles, 1)}


def _guide_page(number: int, title: str) -> str:
    resources = _RESOURCES[number - 1 :: 6]
    parts = [f"## {number}.{n} {r.capitalize()}\n\n{_about(r)}\n" for n, r in enumerate(resources, 1)]
    return "\n".join([f"# {title}\n", *parts])


def _reference() -> dict[str, str]:
    pages = [(resource, operation) for resource in _RESOURCES for operation in _OPERATIONS]
    return {f"docs/reference/{r}/{o}.md": _reference_page(r, o, place) for place, (r, o) in enumerate(pages)}


def _reference_page(resource: str, operation: str, place: int) -> str:
    fields = [_RESOURCES[(place + step * 7) % len(_RESOURCES)] for step in range(12)]
    rows = [f"| `{f}_id` | string | {'yes' if n % 3 else 'no'} | {_about(f)} |" for n, f in enumerate(fields)]
    errors = [f"- `{code}`: {_about(fields[code % 12])}" for code in (400, 401, 403, 404, 409, 422, 429)]
    deprecated = ["> Deprecated since 2.3: use the bulk interface.", ""]
    return "\n".join(
        [
            *(f"# {operation.capitalize()} {resource}", ""),
            *(deprecated if place % _DEPRECATED_EVERY == 3 else []),
            *(f"`{_OPERATIONS[operation]} /v1/{resource}`", "", _about(resource), ""),
            *("## Fields", "", "| field | type | required | meaning |", "|---|---|---|---|", *rows, ""),
            *("## Errors", "", *errors, ""),
        ]
    )


def _about(resource: str) -> str:
    neighbour = _RESOURCES[(_RESOURCES.index(resource) + 11) % len(_RESOURCES)]
    return (
        f"{resource.capitalize()} belong to one terminal and are numbered within it. A change is checked "
        f"against the {neighbour} that it concerns, and is refused where one of them is held."
    )


def _json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"


_TEXTS = {
    "README.md": """\
# Quayside

Bookings, berths and gates of a container terminal, as one service.

| part | port | owner |
|---|---|---|
| berth-planner | 8080 | Ada |
| gate | 8082 | Grace |

Licensed under the Apache-2.0 license. Documentation: `docs/index.md`.
""",
    "CHANGELOG.md": """\
# Changelog

## 2.4.0

- Berths can be reserved for a voyage that is not confirmed yet.
- BREAKING: `PUT /v1/holds` needs a reason.

## 2.3.0

- Single-item exports are deprecated; use the bulk interface.

## 2.2.1

- Gate events keep their order when a reader reconnects.
""",
    "LICENSE": """\
Copyright 2026 The Quayside Authors
SPDX-License-Identifier: Apache-2.0

Licensed under the Apache License, Version 2.0; see https://www.apache.org/licenses/LICENSE-2.0
""",
    "changelog.d/0131.feature.md": "Bookings move to another voyage without losing their slot.\n",
    "changelog.d/0134.fix.md": "The berth calendar no longer shows slots of the day before.\n",
    "changelog.d/0137.breaking.md": "BREAKING: `GET /v1/tariffs` answers whole cents.\n",
    "docs/index.md": "# Quayside\n\nGuide and reference of the terminal's booking service.\n",
    "notes/ada.md": "# Ada\n\n- Done: calendar cache keyed by day\n- TODO: alert on stale calendars\n",
    "notes/grace.md": "# Grace\n\n- TODO: migrate tariffs to cents\n- TODO: tell the carriers\n",
    "notes/linus.md": "# Linus\n\n- Blocked: customs sandbox is down\n- TODO: retry customs\n",
}
