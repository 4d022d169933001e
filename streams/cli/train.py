"""`pml train`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pml.schemas.errors import ConfigurationError, PMLError
from pml.schemas.identifiers import DEFAULT_TENANT
from pml.streams.cli.backtest_report import print_line
from pml.streams.cli.dependent_options import only_with
from pml.streams.cli.export import moment
from pml.streams.cli.output import Json, note, print_json, print_table, stderr_console
from pml.streams.cli.session import load_settings, open_store, person, run_async
from pml.streams.cli.train_report import (
    COLUMNS,
    gained,
    learner_rows,
    print_manifest,
    print_passing,
    print_served,
)
from pml.streams.cli.train_watch import (
    MEMORY_MB,
    TIME_LIMIT,
    Every,
    Keep,
    MemoryLimit,
    NewTraces,
    TimeLimit,
    watch_trainings,
)

if TYPE_CHECKING:
    from pml.processors.memory.embedding import Embedding
    from pml.streams.learning.phases import Phases
    from pml.streams.learning.sources import Source
    from pml.streams.learning.training import Trained
    from pml.streams.settings import Settings

STORE = "clickhouse"
NOT_DONE = {
    "priorities": "how much each run has to teach could not be written, the next training does it",
    "backtest": "what was kept aside could not be played",
}
# That of `pml.streams.learning.training`, which takes a second to import.
TEST_SHARE = 0.2
# Those of `pml.processors.learning.learners`, which takes a second to import.
Learner = Literal[
    "popularity",
    "success_prior",
    "markov_1",
    "markov_2",
    "discounting",
    "cosine",
    "nearest",
    "ranker",
    "boosted",
    "attention",
    "attention_head",
    "attention_prioritised",
]
Split = Literal["groups", "time"]
Span = tuple[str | None, str | None]
Moment = Annotated[str | None, typer.Option(metavar="TIME", help="RFC 3339; without a zone it is UTC.")]
Data = Annotated[
    str, typer.Option(metavar="WHERE", help="clickhouse, a file of `pml export`, a folder of data sets.")
]
Tenant = Annotated[str, typer.Option(help="Whose sessions; it serves nobody else.")]
Seed = Annotated[int, typer.Option(min=0, help="What splits and resamples are drawn with.")]
TestShare = Annotated[float, typer.Option(min=0, max=0.9, help="Share of the groups kept for the end.")]
KeptApart = Annotated[
    Split, typer.Option(help="What is kept for the end: groups drawn with the seed, or the latest.")
]
Wanted = Annotated[Learner | None, typer.Option(help="Keep this one, however good it is; without: the best.")]
WithAttention = Annotated[
    bool, typer.Option("--with-attention", help="Compare the attention model, too; takes longer.")
]
OutcomeScore = Annotated[
    str | None,
    typer.Option(metavar="SCORE", help="What says how good a run was: NAME, NAME>=NUMBER, NAME=CATEGORY."),
]
Promote = Annotated[
    bool | None,
    typer.Option(help="Let it serve at once; of a file, which has no values for arguments, only if asked."),
]
Plot = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Draw the learning curve as PNG; takes longer.")
]
Watch = Annotated[bool, typer.Option("--watch", help="Train again and again, until Ctrl-C.")]


def train(
    *,
    data: Data = STORE,
    since: Moment = None,
    until: Moment = None,
    tenant: Tenant = DEFAULT_TENANT,
    seed: Seed = 0,
    test: TestShare = TEST_SHARE,
    split: KeptApart = "groups",
    learner: Wanted = None,
    with_attention: WithAttention = False,
    outcome_score: OutcomeScore = None,
    promote: Promote = None,
    plot: Plot = None,
    watch: Watch = False,
    every: Every = None,
    new_traces: NewTraces = None,
    memory_mb: MemoryLimit = None,
    time_limit: TimeLimit = None,
    keep: Keep = None,
    json: Json = False,
) -> None:
    """Train a model of what comes next in a session, beside every simple way to guess it.

    Something learned serves only where it is surely better than the best baseline on sessions that it had
    not seen; else that baseline serves. On a folder of data sets the table is printed and nothing is kept.

    Examples: pml train · pml train --since 2026-11-01 --no-promote --plot curve.png ·
    pml train --data traces.npz --json · pml train --data "$PML_DATASETS" --json ·
    pml train --watch --every 6h --new-traces 500
    """
    span = moment(since, "--since"), moment(until, "--until")
    asked = _Asked(
        data, span, tenant, seed, test, split, learner, with_attention, outcome_score, drawn=plot is not None
    )
    limits = {"memory_mb": memory_mb, "time_limit": time_limit, "keep": keep}
    only_with("--watch", watch, every=every, new_traces=new_traces, **limits)
    if outcome_score is not None:
        _check_outcome(outcome_score, data)
    if watch:
        watch_trainings(
            asked.again(),
            tenant=tenant,
            schedule=(every, new_traces),
            limits=(memory_mb or MEMORY_MB, time_limit or TIME_LIMIT),
            keep=keep,
            promote=asked.promotes(promote),
            json=json,
        )
    elif asked.of_data_sets:
        asked.check_of_data_sets(promote)
        _judge_sets(load_settings(), Path(data), seed, with_attention=with_attention, as_json=json)
    else:
        asked.check_file()
        _check_plot(plot)
        _kept(load_settings(), asked, plot, promote=promote, as_json=json)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is learned of, and how; the options of `pml train` by their names."""

    data: str
    span: Span
    tenant: str
    seed: int
    test: float
    split: Split
    learner: Learner | None
    with_attention: bool
    outcome_score: str | None
    drawn: bool

    @property
    def of_data_sets(self) -> bool:
        return self.data != STORE and Path(self.data).is_dir()

    def promotes(self, wanted: bool | None) -> bool:
        """A file has no values: what is learned of it names no arguments, so nothing would begin."""
        return self.data == STORE if wanted is None else wanted

    def check_file(self) -> None:
        """Say at once of a file that it is not there: what learns of it takes a second to import.

        Raises:
            ConfigurationError: it cannot be read.
            typer.BadParameter: a file has no selection.
        """
        if self.data == STORE:
            return
        if any(self.span):
            raise typer.BadParameter("a file has what it was exported with; --since and --until go there")
        try:
            with Path(self.data).open("rb"):
                return
        except OSError as error:
            raise ConfigurationError(f"{self.data} cannot be read: {error.strerror or error}") from None

    def check_of_data_sets(self, promote: bool | None) -> None:
        """
        Raises:
            typer.BadParameter: an option that says nothing about data sets.
        """
        given = {
            "--since": self.span[0] is not None,
            "--until": self.span[1] is not None,
            "--tenant": self.tenant != DEFAULT_TENANT,
            "--test": self.test != TEST_SHARE,
            "--split": self.split != "groups",
            "--learner": self.learner is not None,
            "--plot": self.drawn,
            "--promote": bool(promote),
        }
        if named := [name for name, is_given in given.items() if is_given]:
            raise typer.BadParameter(
                f"{', '.join(named)}: of a folder of data sets every learner is compared, on folds of each "
                "set, and nothing is kept or drawn"
            )

    def again(self) -> list[str]:
        """The options of each training of a watch.

        Raises:
            typer.BadParameter: a watch can not do this.
        """
        if self.drawn or self.of_data_sets:
            raise typer.BadParameter("--plot and data sets do not go with --watch")
        since, until = self.span
        given = {"--data": self.data, "--since": since, "--until": until, "--tenant": self.tenant}
        given |= {"--learner": self.learner, "--outcome-score": self.outcome_score}
        options = [f"{name}={value}" for name, value in given.items() if value is not None]
        options += ["--with-attention"] * self.with_attention
        return [*options, f"--seed={self.seed}", f"--test={self.test}", f"--split={self.split}"]


@dataclass(frozen=True, slots=True)
class _Made:
    """A model that is now kept: its manifest, its backtest (None: there is none), and what could not be done
    beside it: `priorities` or `backtest` with code and message of the error."""

    manifest: Mapping[str, Any]
    backtest: Mapping[str, Any] | None
    not_done: Mapping[str, Mapping[str, str]]

    def say(self, *, promoted: bool, as_json: bool) -> None:
        """Print it, and warn of what could not be done."""
        for name, error in self.not_done.items():
            note(f"{NOT_DONE[name]}: {error['message']}")
        if as_json:
            told = {"backtest": self.backtest, "not_done": self.not_done, "promoted": promoted}
            print_json({**self.manifest, **told})
            return
        print_manifest(self.manifest)
        if "backtest" not in self.not_done:
            print_line(self.backtest, (self.manifest.get("test") or {}).get("sessions", 0))


def _kept(
    settings: Settings, asked: _Asked, plot: Path | None, *, promote: bool | None, as_json: bool
) -> None:
    """Train a model, keep it, and say what became of it; `promote` as a person said it, None: nothing.

    Raises:
        BrokerUnavailable, StoreUnavailable, QueryError, ConfigurationError
    """
    from pml.streams.learning.promotion import kept_back

    made = _trained(settings, asked, with_catalog=bool(promote) or asked.data == STORE)
    try:
        promoted, became = run_async(_published(settings, asked, made, promote))
    except PMLError as error:
        if not as_json:  # the error is the one document
            made.say(promoted=False, as_json=False)
        raise kept_back(error, made.manifest["model_id"]) from None
    made.say(promoted=promoted, as_json=as_json)
    if not as_json:
        note(became)
    if plot is not None:
        _draw(made.manifest, plot)


def _draw(manifest: Mapping[str, Any], plot: Path) -> None:
    """
    Raises:
        ConfigurationError: the file cannot be written.
    """
    from pml.streams.learning.curve_plot import draw_curve

    draw_curve(manifest, plot)
    note(f"drawn in {plot}")


def _check_plot(plot: Path | None) -> None:
    """Say before a training that its picture could not be written.

    Raises:
        ConfigurationError: so it is.
    """
    from pml.streams.learning.curve_plot import check_writable

    if plot is not None:
        check_writable(plot)


async def _published(
    settings: Settings, asked: _Asked, made: _Made, promote: bool | None
) -> tuple[bool, str]:
    """Whether the model serves from now on, and what is said of it.

    One that fell, or whose backtest could not be made, serves only if a person says so.

    Raises:
        BrokerUnavailable, UndecodableRecord, UnknownMessage, NoSuchModel, ModelDamaged, ModelsBusy
    """
    from pml.streams.learning.promotion import promote as published
    from pml.streams.learning.retraining import publish_earned

    model_id = made.manifest["model_id"]
    if promote:
        await published(settings, model_id, person())
    elif asked.promotes(promote):
        serves, why = await publish_earned(settings, {**made.manifest, "not_done": made.not_done}, person())
        if not serves:
            return False, f"{model_id} is not promoted: {why}"
    else:
        return False, f"`pml model promote {model_id}` lets it serve"
    return True, f"{model_id} serves from now on"


def _trained(settings: Settings, asked: _Asked, *, with_catalog: bool) -> _Made:
    """A model that is now kept. What is made beside it decides nothing about it: an hour of training needs
    neither store nor broker, and they may be away when it ends.

    Raises:
        BrokerUnavailable, StoreUnavailable, QueryError, ConfigurationError
    """
    from pml.streams.learning.sources import with_looks
    from pml.streams.learning.training import Wish, train

    latest = asked.split == "time"
    wish = Wish(asked.seed, asked.test, asked.drawn, asked.learner, asked.with_attention, latest)
    outcome = settings.learning.outcome_score if asked.outcome_score is None else asked.outcome_score
    found: Mapping[str, Any] | None = None
    not_done: dict[str, Mapping[str, str]] = {}
    with _progress() as phases:
        with phases.phase("reading"):
            source = _read(
                settings, asked.data, (asked.tenant, *asked.span), outcome, with_catalog=with_catalog
            )
            if wish.asks_attention and source.values:
                source = with_looks(source, settings.installation_key())
        embedding = _embedding(settings, phases)
        trained = train(source, embedding, settings.models_folder, wish, phases)
        with _noting(not_done, "priorities"):
            _write_priorities(settings, source, phases)
        if source.values and trained.held_out:
            with _noting(not_done, "backtest"):
                found = _backtested(settings, trained, asked.span, embedding, phases)
    return _Made(trained.manifest, found, not_done)


@contextmanager
def _noting(not_done: dict[str, Mapping[str, str]], name: str) -> Iterator[None]:
    """What raises in it is noted by that name, and goes no further."""
    try:
        yield
    except PMLError as error:
        not_done[name] = {"code": error.code, "message": error.message}


def _check_outcome(told: str, data: str) -> None:
    """
    Raises:
        ConfigurationError: it cannot be read.
        typer.BadParameter: there are no scores.
    """
    from pml.clickhouse.training.outcome_score import OutcomeScore

    OutcomeScore.parse(told)
    if data != STORE:
        raise typer.BadParameter("scores are in ClickHouse: --outcome-score goes without --data")


def _judge_sets(settings: Settings, folder: Path, seed: int, *, with_attention: bool, as_json: bool) -> None:
    from pml.streams.learning.set_table import judge_sets
    from pml.streams.learning.training import Wish

    wish = Wish(seed, with_attention=with_attention)
    with _progress() as phases:
        rows = judge_sets(folder, _embedding(settings, phases), wish, phases)
    if as_json:
        print_json({"seed": seed, "sets": rows, "phases_s": phases.as_dict()})
        return
    for row in rows:
        told = f"{row['set']}: {row['questions']:,} questions, {row['unseen']:.0%} of what came never seen"
        print_table(COLUMNS, learner_rows(row), f"{told}; visible was {row['visible']}")
        print_passing(row)
        print_served(row)
        typer.echo("")
    summary = [
        (row["set"], row["serves"], row["baseline"], gained(row["gain"]), gained(row["served"]["gain"]))
        for row in rows
    ]
    print_table(("set", "serves", "best baseline", "hit@1 more than that", "as served"), summary)


def _read(
    settings: Settings,
    data: str,
    chosen: tuple[str, str | None, str | None],
    outcome: str,
    *,
    with_catalog: bool,
) -> Source:
    """
    Raises:
        BrokerUnavailable, StoreUnavailable, ConfigurationError
    """
    from pml.clickhouse.training.selection import EARLIEST, LATEST, Selection
    from pml.streams.catalog_topic import read_catalog
    from pml.streams.learning.sources import Known, from_file, from_store, known_from

    tenant, since, until = chosen
    known = known_from(run_async(read_catalog(settings)), tenant) if with_catalog else Known()
    if data != STORE:
        return from_file(Path(data), known, tenant)
    with open_store(settings) as store:
        return from_store(store, Selection(tenant, since or EARLIEST, until or LATEST), known, outcome)


def _write_priorities(settings: Settings, source: Source, phases: Phases) -> None:
    """Say of each run of the store how much it has to teach.

    Raises:
        StoreUnavailable, QueryError
    """
    from datetime import UTC, datetime

    from pml.clickhouse.training.trace_priorities import write_priorities
    from pml.processors.learning.path_success import run_priorities

    runs = source.runs
    if runs is None:
        return
    with phases.phase("priorities"), open_store(settings) as store:
        found = run_priorities(runs.paths, runs.outcomes, runs.groups)
        write_priorities(store, runs.names, found, datetime.now(UTC))


def _backtested(
    settings: Settings, trained: Trained, span: Span, embedding: Embedding, phases: Phases
) -> Mapping[str, Any] | None:
    """What it would have begun in the sessions that were kept aside, laid beside it; None: there are none.

    Raises:
        BrokerUnavailable, StoreUnavailable, QueryError, ConfigurationError
    """
    from pml.clickhouse.training.selection import EARLIEST
    from pml.streams.catalog_topic import read_catalog
    from pml.streams.learning.backtesting import NothingToReplay, Wanted, run_backtest
    from pml.streams.learning.kept_backtests import keep_backtest

    since, until = span
    model_id = trained.manifest["model_id"]
    wanted = Wanted(model_id, since=since or EARLIEST, until=until, held_out=trained.held_out)
    records = run_async(read_catalog(settings))
    with phases.phase("backtest"), open_store(settings) as store:
        try:
            report = run_backtest(settings, store, records, wanted, embedding=embedding).as_dict()
        except NothingToReplay:
            return None
    keep_backtest(settings.models_folder, report)
    return report


def _embedding(settings: Settings, phases: Phases) -> Embedding:
    from pml.streams.discovery.finder import load_embedding

    with phases.phase("loading the embedding"):
        return load_embedding(settings.discovery.model)


@contextmanager
def _progress() -> Iterator[Phases]:
    """A bar for each phase, on stderr."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed

    from pml.streams.learning.phases import Phases

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Elapsed(),
    )
    with Progress(*columns, console=stderr_console(), transient=True) as progress:
        bar = progress.add_task("training", total=None)
        yield Phases(
            lambda name, steps: progress.reset(bar, description=name, total=steps),
            lambda: progress.advance(bar),
        )
