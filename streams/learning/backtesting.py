"""`pml backtest`: what a model, a threshold or a budget would have predicted of sessions that went on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pml.clickhouse.client import Store
from pml.clickhouse.training.played_sessions import read_played_sessions
from pml.clickhouse.training.selection import LATEST
from pml.clickhouse.training.session_values import Stretch, count_runs
from pml.processors.discovery.library import Library
from pml.processors.memory.embedding import Embedding
from pml.processors.speculation.backtest import Backtest, Terms, ToolAccount, backtests, best_threshold
from pml.processors.speculation.budget import BUDGETS, BudgetName
from pml.processors.speculation.played import PlayedRun, paces
from pml.processors.workflow.catalog import Catalog
from pml.schemas.errors import PMLError
from pml.schemas.prediction import PredictAnswer, PredictRequest
from pml.schemas.times import to_rfc3339
from pml.streams.catalog_topic import Records
from pml.streams.learning.artefacts import load
from pml.streams.learning.manifests import tenant_of
from pml.streams.learning.serving import Served, answered, as_served
from pml.streams.orchestrator.role import policy
from pml.streams.settings import Settings

# What each of these would have come to is said beside the threshold that is asked for.
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 20))
# A threshold at which more of what begins is wasted is not named as one to choose.
WASTE_MOST = 0.35
REALLY_BEGUN = """
SELECT
    concat(tool_server, ':', tool_name) AS tool, count() AS begun, countIf(fate = 'served') AS hits,
    sumIf(tool_ms, fate != 'served') AS wasted_ms, sumIf(saved_ms, fate = 'served') AS saved_ms
FROM speculations
WHERE kind = 'prediction' AND tenant = {tenant:String}
    AND ended_at >= parseDateTime64BestEffort({since:String}, 6, 'UTC')
    AND ended_at < parseDateTime64BestEffort({until:String}, 6, 'UTC')
GROUP BY tool
"""


class NothingToReplay(PMLError):
    """No session of the stretch has a run."""

    code = "NOTHING_TO_REPLAY"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of a backtest.

    Attributes:
        threshold: None: what holds in the default context now.
        budget: None: that of the settings.
        since: None: when the model was made, so that it has seen none of it.
        until: up to, but without.
        held_out: id and epoch of the sessions that are played: nothing was learned of them; None: all.
    """

    model_id: str
    threshold: float | None = None
    budget: BudgetName | None = None
    since: str | None = None
    until: str | None = None
    held_out: Set[tuple[str, int]] | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What a backtest found: beside it what was really begun in that stretch because it was predicted.

    `known`: runs that ended before the model was made, so that it may have been trained on them. `held_out`:
    all are of sessions that its training kept aside; what was really begun in them alone is not said.
    `left_out`: earlier runs of the stretch, where it has more than can be read; `since` is then where those
    that were read begin.
    `thresholds`: what others would have come to.
    """

    model_id: str
    learner: str
    made_at: str
    since: str
    until: str
    threshold: float
    budget: BudgetName
    known: int
    found: Backtest
    really: Mapping[str, ToolAccount]
    held_out: bool = False
    left_out: int = 0
    thresholds: Mapping[float, ToolAccount] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """What `--json` prints and what is kept beside the model."""
        really = ToolAccount()
        for account in self.really.values():
            really.add(account)
        found = self.found
        names = sorted({*found.tools, *self.really})
        head = {name: getattr(self, name) for name in ("model_id", "learner", "made_at", "since", "until")}
        return {
            **head,
            "threshold": self.threshold,
            "budget": self.budget,
            "sessions": found.sessions,
            "runs": found.runs,
            "known_runs": self.known,
            "held_out": self.held_out,
            "left_out_runs": self.left_out,
            "asked": found.asked,
            "right": found.right,
            "withheld": dict(sorted(found.withheld.items())),
            "unknown": found.unknown,
            "total": {**_row(found.total), "really": _row(really)},
            "tools": [
                {
                    "tool": name,
                    **_row(found.tools.get(name, ToolAccount())),
                    "really": _row(self.really.get(name, ToolAccount())),
                }
                for name in names
            ],
            "thresholds": [
                {"threshold": threshold, **_row(account)} for threshold, account in self.thresholds.items()
            ],
            "best_threshold": best_threshold(self.thresholds, WASTE_MOST),
            "waste_most": WASTE_MOST,
        }


def _row(account: ToolAccount) -> dict[str, Any]:
    told = asdict(account)
    return {**told, "wasted": account.wasted} | {
        name: round(told[name], 1) for name in ("saved_ms", "wasted_ms")
    }


def run_backtest(
    settings: Settings,
    store: Store,
    records: Records,
    wanted: Wanted,
    *,
    embedding: Embedding,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Report:
    """Hold a model of the folder against what went on.

    Args:
        records: those of the catalog: tools, permissions, capabilities and thresholds as they are now.
        progress: called with the sessions that were looked at, and how many there are.

    Raises:
        NoSuchModel, ModelDamaged: it cannot be loaded.
        NothingToReplay: there is no session in that stretch.
        StoreUnavailable, QueryError
    """
    model, manifest = load(settings.models_folder, wanted.model_id, embedding)
    made_at, tenant = manifest["created_at"], tenant_of(manifest)
    since, until = wanted.since or made_at, wanted.until or LATEST
    stretch = Stretch(tenant, since, until)
    counted = 0 if wanted.held_out is not None else count_runs(store, stretch)
    sessions = read_played_sessions(store, stretch, wanted.held_out)
    if not sessions:
        raise NothingToReplay(_nothing(wanted, made_at))
    left_out = counted - sum(map(len, sessions)) if wanted.held_out is None else 0
    if wanted.held_out is not None or left_out > 0:
        since = to_rfc3339(min(session[0].started_ms for session in sessions))
    catalog = _catalog(settings, records)
    threshold = wanted.threshold
    if threshold is None:
        threshold = catalog.threshold(tenant, "", "", "").value
    budget = wanted.budget or catalog.policy.budget_name
    terms = Terms(threshold, BUDGETS[budget], catalog, paces(sessions))
    answer = _answering(records, tenant, as_served(settings, model, manifest))
    done = iter(range(1, len(sessions) + 1))
    each = [terms, *(replace(terms, threshold=other) for other in THRESHOLDS)]
    found, *others = backtests(sessions, answer, each, lambda: progress(next(done), len(sessions)))
    return Report(
        model_id=wanted.model_id,
        learner=model.learner,
        made_at=made_at,
        since=since,
        until=until,
        threshold=threshold,
        budget=budget,
        known=_known(sessions, made_at) if wanted.held_out is None else 0,
        found=found,
        really=_really(store, tenant, since, until) if wanted.held_out is None else {},
        held_out=wanted.held_out is not None,
        left_out=max(0, left_out),
        thresholds={other: of.total for other, of in zip(THRESHOLDS, others, strict=True)},
    )


def _nothing(wanted: Wanted, made_at: str) -> str:
    if wanted.since is None:
        return (
            f"no run of a named session has ended since {wanted.model_id} was made ({made_at}); --since "
            "chooses an earlier time, but what the model was trained on says little about it"
        )
    return "no run of a named session ended in that time; choose another with --since and --until"


def _catalog(settings: Settings, records: Records) -> Catalog:
    found = Catalog(policy(settings))
    for record in records.values():
        found = found.with_record(record)
    return found


def _answering(records: Records, tenant: str, served: Served) -> Callable[[PredictRequest], PredictAnswer]:
    library = Library()
    for record in records.values():
        library.take(record)
    return lambda request: answered(library, tenant, request, served)


def _known(sessions: Sequence[Sequence[PlayedRun]], made_at: str) -> int:
    return sum(to_rfc3339(run.ended_ms) < made_at for session in sessions for run in session)


def _really(store: Store, tenant: str, since: str, until: str) -> dict[str, ToolAccount]:
    given = {"tenant": tenant, "since": since, "until": until}
    return {
        row["tool"]: ToolAccount(
            begun=int(row["begun"]),
            hits=int(row["hits"]),
            saved_ms=float(row["saved_ms"]),
            wasted_ms=float(row["wasted_ms"]),
        )
        for row in store.query(REALLY_BEGUN, given).as_dicts()
    }
