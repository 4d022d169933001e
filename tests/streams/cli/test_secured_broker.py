"""A stack beside a broker that takes nothing but TLS, set up as an operator does: by variables and files."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import Result

from pml.schemas.topics import Topics
from tests.fixtures.patience import PATIENCE_S
from tests.fixtures.project import CHAIN, Project, project, wait_until
from tests.fixtures.secured_broker import (
    KEY_PASSWORD,
    KNOWN,
    KNOWN_PASSWORD,
    PASSWORD,
    USER,
    Authority,
    SecuredBroker,
)

__all__ = ["project"]

# aiokafka does not wait for TLS's good-bye when it closes, and a command's event loop ends at that moment.
pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

Pml = Callable[..., Result]
COMMANDS = (
    ("status",),
    ("doctor",),
    ("migrate",),
    ("metrics",),
    ("events", "dump"),
    ("dlq", "list"),
    ("tools", "list"),
    ("speculation", "off"),
)
SECRET_OF = {"mutual": "ssl_key_password"}
SECRETS = (PASSWORD, KNOWN_PASSWORD, KEY_PASSWORD, "not-the-password")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    secured = SecuredBroker(tmp_path_factory.mktemp("secured"))
    asyncio.run(secured.start())
    yield secured
    asyncio.run(secured.stop())


@pytest.fixture(autouse=True)
def _sockets_end_here() -> Iterator[None]:
    """What a closed event loop left is collected before another test would be blamed for it."""
    yield
    gc.collect()


def with_password(broker: SecuredBroker, folder: Path, mechanism: str) -> dict[str, str]:
    """What docs/guide/secured-kafka.md tells, for a user with a password."""
    (folder / "password").write_text(f"{PASSWORD}\n")
    return {
        "KAFKA_BOOTSTRAP_SERVERS": broker.password_address,
        "PML_KAFKA__SECURITY_PROTOCOL": "SASL_SSL",
        "PML_KAFKA__SASL_MECHANISM": mechanism,
        "PML_KAFKA__SASL_USERNAME": USER,
        "PML_KAFKA__SASL_PASSWORD_FILE": str(folder / "password"),
        "PML_KAFKA__SSL_CAFILE": str(broker.authority.file),
    }


def with_certificate(broker: SecuredBroker, folder: Path) -> dict[str, str]:
    """The same for a client certificate whose key is encrypted."""
    certificate, key = broker.authority.issue(USER, KEY_PASSWORD)
    (folder / "key-password").write_text(KEY_PASSWORD)
    return {
        "KAFKA_BOOTSTRAP_SERVERS": broker.mutual_address,
        "PML_KAFKA__SECURITY_PROTOCOL": "SSL",
        "PML_KAFKA__SSL_CAFILE": str(broker.authority.file),
        "PML_KAFKA__SSL_CERTFILE": str(certificate),
        "PML_KAFKA__SSL_KEYFILE": str(key),
        "PML_KAFKA__SSL_KEY_PASSWORD_FILE": str(folder / "key-password"),
    }


def variables(way: str, broker: SecuredBroker, folder: Path) -> dict[str, str]:
    return with_certificate(broker, folder) if way == "mutual" else with_password(broker, folder, way)


def completes(pml: Pml, run_id: str) -> None:
    """A workflow runs to its end, a part of it early, and all projections see it."""
    submitted = answer(pml, "submit", "chain.yaml", "--wait", "--run-id", run_id)
    assert submitted["status"] == "completed", submitted
    assert submitted["results"]["read"]["served_by"] in ("speculation", "joined")
    assert answer(pml, "metrics", "--wait")["hits"] >= 1
    wait_until(lambda: all(not part["lag"] for part in answer(pml, "status")["parts"]), "the sink")
    logged = pml("events", "dump", "--session", run_id, "--json").stdout.splitlines()
    stored = answer(pml, "query", f"SELECT count() AS events FROM events WHERE run_id = '{run_id}'")
    assert stored == [{"events": len(logged)}]


def answer(pml: Pml, *arguments: str) -> Any:
    done = pml(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return orjson.loads(done.stdout)


def everything_written(project: Project) -> str:
    """All logs and the stack file; not the user's own files of secrets."""
    files = [path for path in project.data_dir.rglob("*") if path.is_file() and path.suffix != ".key"]
    return "\n".join(path.read_text(errors="replace") for path in files)


@pytest.mark.parametrize("way", ["SCRAM-SHA-512", "mutual"])
def test_every_client_reaches_a_broker_that_wants_to_know_who_it_is(  # noqa: PLR0917
    way: str,
    broker: SecuredBroker,
    project: Project,
    clickhouse_url: str,
    database: str,
    pml: Pml,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prefix = f"{way.lower()}."
    project.environment |= variables(way, broker, project.folder) | {
        "PML_KAFKA__TOPIC_PREFIX": prefix,
        "CLICKHOUSE_URL": clickhouse_url,
        "PML_CLICKHOUSE__DATABASE": database,
    }
    project.pml("up", "--detach")
    for name, value in project.environment.items():
        monkeypatch.setenv(name, value)
    completes(pml, "run_1")
    assert {f"{prefix}events", f"{prefix}metrics-totals-changelog"} <= broker.topics()

    told = [pml("doctor"), pml("status"), pml("config")]
    assert [each.exit_code for each in told] == [0, 0, 0], [each.output for each in told]
    assert f"{len(Topics(prefix).specs())} as they must be" in told[0].stdout
    secret = answer(pml, "config")[f"kafka.{SECRET_OF.get(way, 'sasl_password')}"]
    assert secret["value"] == "********"
    assert secret["origin"].endswith("_PASSWORD_FILE")
    if "PML_KAFKA__SASL_MECHANISM" in project.environment:
        monkeypatch.setenv("PML_KAFKA__SASL_MECHANISM", "PLAIN")
        completes(pml, "run_2")
    told_and_written = "".join(each.output for each in told) + everything_written(project)
    assert not [secret for secret in SECRETS if secret in told_and_written]


@dataclass(frozen=True)
class Mistake:
    """A wrong setting, and what the sentence about it must name."""

    name: str
    told: str
    way: str = "SCRAM-SHA-512"
    changed: dict[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()


MISTAKES = (
    Mistake(
        "wrong password", "kafka.sasl_password", changed={"PML_KAFKA__SASL_PASSWORD": "not-the-password"}
    ),
    Mistake("wrong plain password", "kafka.sasl_password", "PLAIN", {"PML_KAFKA__SASL_USERNAME": "nobody"}),
    Mistake("other mechanism", "kafka.sasl_mechanism", "SCRAM-SHA-256"),
    Mistake("unknown authority", "kafka.ssl_cafile", changed={"PML_KAFKA__SSL_CAFILE": "other/ca.pem"}),
    Mistake("no authority", "kafka.ssl_cafile", removed=("PML_KAFKA__SSL_CAFILE",)),
    Mistake("no TLS", "is PLAINTEXT", changed={"PML_KAFKA__SECURITY_PROTOCOL": "PLAINTEXT"}),
    Mistake("no password", "is SSL", changed={"PML_KAFKA__SECURITY_PROTOCOL": "SSL"}),
    Mistake(
        "no certificate",
        "kafka.ssl_certfile",
        "mutual",
        removed=("PML_KAFKA__SSL_CERTFILE", "PML_KAFKA__SSL_KEYFILE"),
    ),
)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_told_in_one_sentence_without_the_secret(
    mistake: Mistake, broker: SecuredBroker, tmp_path: Path, pml: Pml, monkeypatch: pytest.MonkeyPatch
) -> None:
    Authority(tmp_path / "other", "another authority")
    (tmp_path / "chain.yaml").write_text(CHAIN)
    for name, value in (variables(mistake.way, broker, tmp_path) | mistake.changed).items():
        if name not in mistake.removed:
            monkeypatch.setenv(name, value)
    refused = pml("submit", "chain.yaml")
    assert refused.exit_code == 4, refused.output
    assert len(refused.stderr.splitlines()) == 1
    assert mistake.told in refused.stderr
    assert not [secret for secret in SECRETS if secret in refused.output]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_tells_of_a_wrong_password(
    command: tuple[str, ...], broker: SecuredBroker, tmp_path: Path, pml: Pml, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = with_password(broker, tmp_path, "PLAIN") | {"PML_KAFKA__SASL_PASSWORD": "not-the-password"}
    for name, value in wrong.items():
        monkeypatch.setenv(name, value)
    refused = pml(*command)
    assert refused.exit_code == (1 if command == ("doctor",) else 4), refused.output
    assert "refuses the user pml or its password" in " ".join(refused.output.split())
    assert not [secret for secret in SECRETS if secret in refused.output]


@pytest.mark.parametrize("user", ["wrong password", "without rights"])
def test_a_worker_that_is_refused_ends_with_one_sentence(
    user: str, broker: SecuredBroker, project: Project
) -> None:
    project.environment |= with_password(broker, project.folder, "PLAIN")
    if user == "wrong password":
        project.environment["PML_KAFKA__SASL_PASSWORD"] = "not-the-password"
    else:
        project.environment |= {"PML_KAFKA__SASL_USERNAME": KNOWN, "PML_KAFKA__SASL_PASSWORD": KNOWN_PASSWORD}
    with project.start("worker", "metrics") as worker:
        output, errors = worker.communicate(timeout=PATIENCE_S)
    assert worker.returncode == 4, errors
    *_, last = errors.splitlines()
    assert last.startswith("pml: the broker ")
    assert "Traceback" not in errors
    assert not [secret for secret in SECRETS if secret in output + errors]


def test_a_user_without_rights_is_told_so(
    broker: SecuredBroker, tmp_path: Path, pml: Pml, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"PML_KAFKA__SASL_USERNAME": KNOWN, "PML_KAFKA__SASL_PASSWORD": KNOWN_PASSWORD}
    for name, value in (with_password(broker, tmp_path, "SCRAM-SHA-512") | known).items():
        monkeypatch.setenv(name, value)
    (tmp_path / "chain.yaml").write_text(CHAIN)
    refused = pml("submit", "chain.yaml")
    assert (refused.exit_code, len(refused.stderr.splitlines())) == (4, 1), refused.output
    assert f"does not let {KNOWN} do this" in refused.stderr
