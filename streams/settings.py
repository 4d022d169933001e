"""Every setting, its default and where it may come from (CONTRACT.md, Configuration)."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveFloat,
    PositiveInt,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from pml.schemas.catalog import SpeculationMode
from pml.schemas.codec import explain
from pml.schemas.errors import ConfigurationError
from pml.schemas.topics import DAY_MS, HOUR_MS, RESULT_BYTES_MAX, Topics
from pml.schemas.workflow import TASKS_MAX, Approve, OnTimeout
from pml.streams.settings_sources import PREFIX, files, sources

MIB = 1024 * 1024
KEY_BYTES = 32
WORDLLAMA = "wordllama"
# Outcomes and calls rest 25 h; one hour is left for whoever is behind (DESIGN §2, rule 2).
RETENTION_S = 25 * HOUR_MS // 1000
WAIT_MAX_S = DAY_MS // 1000
Port = Field(default=0, ge=0, le=65_535)


class Group(BaseModel):
    """A table of `pml.toml`: a name that is not known is a mistake somebody wants to hear of."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class KafkaSettings(Group):
    """The broker; without `bootstrap_servers` it is the embedded one, on `port` (0: any free one)."""

    bootstrap_servers: str | None = None
    port: int = Port
    topic_prefix: str = Field(default="pml.", pattern=r"^[A-Za-z0-9._-]{0,100}$")
    replication_factor: int = Field(default=1, ge=1, le=9)
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    sasl_username: str | None = None
    sasl_password: SecretStr | None = None
    ssl_cafile: Path | None = None
    ssl_certfile: Path | None = None
    ssl_keyfile: Path | None = None
    ssl_key_password: SecretStr | None = None
    session_timeout_s: float = Field(default=10, ge=1, le=300)
    heartbeat_s: float = Field(default=2, gt=0, le=60)
    group_instance_id: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> KafkaSettings:
        if "SASL" in self.security_protocol and not (self.sasl_username and self.sasl_password):
            raise ValueError(f"{self.security_protocol} needs sasl_username and sasl_password")
        if self.ssl_keyfile and not self.ssl_certfile:
            raise ValueError("ssl_keyfile needs ssl_certfile")
        if self.heartbeat_s * 3 > self.session_timeout_s:
            raise ValueError("session_timeout_s must be at least three times heartbeat_s")
        return self


class ClickHouseSettings(Group):
    """The store; without `url` it is the embedded one, on `port` (0: any free one)."""

    url: SecretStr | None = None
    port: int = Port
    database: str = Field(default="pml", pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")


class TimeoutSettings(Group):
    """How long things may take; a workflow or a permission entry may say otherwise."""

    task_s: float = Field(default=30, gt=0, le=WAIT_MAX_S)
    queue_s: float = Field(default=60, gt=0, le=WAIT_MAX_S)
    run_s: float = Field(default=300, gt=0, le=WAIT_MAX_S)
    session_ttl_s: float = Field(default=86_400, gt=0, le=7 * WAIT_MAX_S)
    results_ttl_s: float = Field(default=3_600, gt=0, le=WAIT_MAX_S)
    decision_s: float = Field(default=60, gt=0, le=WAIT_MAX_S)
    approval_s: float = Field(default=300, gt=0, le=WAIT_MAX_S)

    @model_validator(mode="after")
    def _within_retention(self) -> TimeoutSettings:
        """A run may read its first result until its end, and a result rests only so long."""
        pauses = max(self.decision_s, self.approval_s)
        longest = max(self.task_s, self.results_ttl_s) + self.queue_s + self.run_s + pauses
        if longest > RETENTION_S:
            raise ValueError(
                "run_s + queue_s + the larger of task_s and results_ttl_s + the larger of decision_s and "
                f"approval_s is {longest:.0f} s; results "
                f"rest {RETENTION_S} s, so keep the sum below that"
            )
        return self


class DecisionSettings(Group):
    """What happens where an agent does not decide in time; a workflow may say otherwise."""

    on_timeout: OnTimeout = "abort"


class ApprovalSettings(Group):
    """With `four_eyes` nobody approves calls of a run that they submitted; `approve`: when they are asked."""

    four_eyes: bool = False
    approve: Approve = "before"


class SpeculationSettings(Group):
    """What may run before it is asked for (DESIGN §4)."""

    mode: SpeculationMode = "on"
    budget: Literal["off", "low", "normal", "high"] = "normal"
    depth: int = Field(default=1, ge=1, le=3)
    ttl_s: float = Field(default=300, gt=0, le=WAIT_MAX_S)
    cache_bytes: int = Field(default=16 * MIB, ge=1024, le=1024 * MIB)
    verify: float = Field(default=0.01, ge=0, le=1)
    predictions: Literal["on", "off"] = "off"

    @field_validator("mode", "budget", "predictions", mode="before")
    @classmethod
    def _truth(cls, value: Any, info: Any) -> Any:
        if not isinstance(value, bool):
            return value
        names = {"budget": ("off", "normal")}
        return names.get(info.field_name, ("off", "on"))[value]


class MemorySettings(Group):
    """Episodes: how long and how many of a tenant are kept, and whether the past moves a confidence."""

    influence: Literal["on", "off"] = "off"
    retention_days: int = Field(default=30, ge=1, le=90)
    episodes_max: int = Field(default=10_000, ge=100, le=100_000)

    @field_validator("influence", mode="before")
    @classmethod
    def _truth(cls, value: Any) -> Any:
        return ("off", "on")[value] if isinstance(value, bool) else value


class CapabilitySettings(Group):
    """Learned capabilities; `match_threshold`: how sure it must be that an intent means one for it to run."""

    match_threshold: float = Field(default=0.70, ge=0, le=1)


class DiscoverySettings(Group):
    """What texts are compared by: `wordllama`, or the name of a model of sentence-transformers."""

    model: str = Field(default=WORDLLAMA, min_length=1, max_length=500)


class LearningSettings(Group):
    """Where models rest that were trained; without `models_folder` in the folder `models` of `data_dir`.

    `drift`: whether a served model that does worse than its best baseline is rolled back by itself.
    `outcome_score`: what says how good a run was, NAME, NAME>=NUMBER or NAME=CATEGORY; empty: its end.
    `tenants_at_hand`: of how many tenants a bridge keeps what predicts in memory.
    """

    models_folder: Path | None = None
    tenants_at_hand: int = Field(default=32, ge=1, le=4_096)
    drift: Literal["on", "off"] = "on"
    outcome_score: str = ""

    @field_validator("drift", mode="before")
    @classmethod
    def _truth(cls, value: Any) -> Any:
        return ("off", "on")[value] if isinstance(value, bool) else value


class BridgeSettings(Group):
    """The calls of MCP servers."""

    concurrency: PositiveInt = 64
    server_concurrency: PositiveInt = 8
    start_timeout_s: PositiveFloat = 30
    result_max_bytes: int = Field(default=RESULT_BYTES_MAX, ge=1024, le=RESULT_BYTES_MAX)
    partition_in_flight_max: PositiveInt = 256
    session_in_flight_max: PositiveInt = 64


class SandboxSettings(Group):
    """Programs that are no DAG: what one may take, and how many are kept where they wait."""

    step_timeout_s: float = Field(default=10, gt=0, le=20)
    memory_mb: int = Field(default=128, ge=32, le=4_096)
    output_max_bytes: int = Field(default=MIB, ge=1024, le=4 * MIB)
    calls_max: int = Field(default=TASKS_MAX, ge=1, le=TASKS_MAX)
    live_max: int = Field(default=8, ge=1, le=256)
    idle_s: PositiveFloat = 60


class OrchestratorSettings(Group):
    """Chunks, queues and caches of the orchestrator (DESIGN §2, rule 3)."""

    chunk_records: int = Field(default=200, ge=1, le=1_000)
    chunk_bytes: int = Field(default=16 * MIB, ge=MIB)
    append_timeout_s: PositiveFloat = 8
    write_behind_s: PositiveFloat = 0.5
    payload_cache_bytes: int = Field(default=256 * MIB, ge=MIB)
    queue_bytes: int = Field(default=64 * MIB, ge=MIB)
    instance_id: str | None = None


class SinkSettings(Group):
    """How events go to ClickHouse; a partition holds at most one batch in memory."""

    batch_rows: int = Field(default=5_000, ge=1, le=100_000)
    batch_bytes: int = Field(default=4 * MIB, ge=MIB, le=64 * MIB)
    batch_wait_ms: PositiveInt = 250


class MetricsSettings(Group):
    """Prometheus: on loopback, at `port` or the next free one of the nine after it (0: any free one)."""

    port: int = Port


class GatewaySettings(Group):
    """The HTTP door: on loopback without a token, elsewhere only with one (`pml token create`).

    `hosts` are the names that it answers to besides those of loopback, `origins` web pages that may call.
    """

    host: str = "127.0.0.1"
    port: int = Port
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    body_bytes_max: int = Field(default=10 * MIB, ge=1024, le=64 * MIB)
    requests_per_s: PositiveFloat = 50
    burst: PositiveInt = 200

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in {"127.0.0.1", "::1", "localhost"}


ToolChoice = Literal["proxy", "pml", "both"]
"""Which tools MCP clients see: those of the servers behind PML, PML's own, or both."""


class McpSettings(Group):
    """The door for agents."""

    tools: ToolChoice = "both"
    elicitation: Literal["off", "stdio", "on"] = "stdio"


class LogSettings(Group):
    """What a worker writes to stderr; `auto` is console on a terminal, JSON lines elsewhere."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "json", "console"] = "auto"


class Settings(BaseSettings):
    """All settings: arguments, `PML_…` variables, their aliases, `…_FILE` secrets, `pml.toml`, defaults.

    Relative paths of `pml.toml` are relative to it, all others to the working directory.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
        validate_default=True,
    )

    data_dir: Path = Path(".pml")
    mcp_servers: Path = Path("mcp-servers.yaml")
    mcp_permissions: Path = Path("mcp-permissions.yaml")
    kafka: KafkaSettings = KafkaSettings()
    clickhouse: ClickHouseSettings = ClickHouseSettings()
    timeouts: TimeoutSettings = TimeoutSettings()
    decisions: DecisionSettings = DecisionSettings()
    approvals: ApprovalSettings = ApprovalSettings()
    speculation: SpeculationSettings = SpeculationSettings()
    memory: MemorySettings = MemorySettings()
    capabilities: CapabilitySettings = CapabilitySettings()
    discovery: DiscoverySettings = DiscoverySettings()
    learning: LearningSettings = LearningSettings()
    bridge: BridgeSettings = BridgeSettings()
    sandbox: SandboxSettings = SandboxSettings()
    orchestrator: OrchestratorSettings = OrchestratorSettings()
    sink: SinkSettings = SinkSettings()
    metrics: MetricsSettings = MetricsSettings()
    gateway: GatewaySettings = GatewaySettings()
    mcp: McpSettings = McpSettings()
    log: LogSettings = LogSettings()

    @field_validator("data_dir", "mcp_servers", "mcp_permissions")
    @classmethod
    def _absolute(cls, path: Path) -> Path:
        return path.expanduser().absolute()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings, *sources(settings_cls, env_settings))

    @classmethod
    def load(cls, **values: Any) -> Settings:
        """The settings in force; `values` win over everything else.

        Raises:
            ConfigurationError: a value or a name is wrong, or a file that is named cannot be read.
        """
        try:
            return cls(**values)
        except SettingsError as error:
            raise ConfigurationError(
                f'a setting is wrong: {error}; a list is written as JSON, such as ["a.example"]'
            ) from None
        except ValidationError as error:
            read = ", ".join(str(path) for path in files()) or "no pml.toml"
            raise ConfigurationError(
                f"a setting is wrong: {explain(error)} (read: {PREFIX}… variables, {read}); "
                "`pml config` shows where values come from"
            ) from None

    @property
    def topics(self) -> Topics:
        """The topic names under this prefix."""
        return Topics(self.kafka.topic_prefix)

    @property
    def models_folder(self) -> Path:
        """Where models rest that were trained."""
        return (self.learning.models_folder or self.data_dir / "models").expanduser().absolute()

    @property
    def embedded_broker(self) -> bool:
        """Whether `pml up` starts a broker of its own."""
        return self.kafka.bootstrap_servers is None

    @property
    def embedded_store(self) -> bool:
        """Whether `pml up` starts a store of its own."""
        return self.clickhouse.url is None

    def group(self, role: str) -> str:
        """The consumer group or Faust app id of a role: `pml.bridge`."""
        return self.kafka.topic_prefix + role

    def environment(self) -> dict[str, str]:
        """The variables that give a child process these settings."""
        return dict(_variables(self.model_dump(exclude_unset=True), PREFIX))

    def make_data_dir(self) -> Path:
        """The data folder, made for its owner alone: full results of tools rest below it."""
        self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self.data_dir

    def installation_key(self) -> bytes:
        """The 32 bytes that key all hashes of values; made once, readable by the owner only.

        Raises:
            ConfigurationError: the file cannot be written or holds something else.
        """
        path = self.data_dir / "installation.key"
        try:
            if not path.exists():
                self.make_data_dir()
                _make_key(path)
            key = path.read_bytes()
        except OSError as error:
            raise ConfigurationError(
                f"{path} cannot be read or made: {error.strerror}; "
                "let whoever runs PML own it, and write into its folder"
            ) from None
        if len(key) != KEY_BYTES:
            raise ConfigurationError(f"{path} must hold {KEY_BYTES} bytes; restore it from a backup")
        return key


def _make_key(path: Path) -> None:
    """Write aside, then link: whoever comes second reads the first one's whole key."""
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=".installation-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(os.urandom(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        os.link(aside, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(aside)


def _variables(values: dict[str, Any], prefix: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, dict):
            pairs += _variables(value, f"{prefix}{name.upper()}__")
        elif value is not None:
            plain = value.get_secret_value() if isinstance(value, SecretStr) else value
            # A list is read as JSON.
            text = json.dumps(plain) if isinstance(plain, list | tuple) else str(plain)
            pairs.append((prefix + name.upper(), text))
    return pairs
