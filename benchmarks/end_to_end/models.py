"""The models that are compared: what `pml train` makes of sessions, and the best baseline beside it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from benchmarks.end_to_end.play import SERVER, Play, told_tools
from benchmarks.servers.recorded import tool
from pml.processors.learning.known_sessions import as_sequences
from pml.processors.learning.learners import BASELINES
from pml.schemas.catalog import CatalogRecord, ServerTools
from pml.schemas.identifiers import DEFAULT_TENANT
from pml.streams.bridge.listing import catalog_tool
from pml.streams.catalog_topic import Records
from pml.streams.discovery.wordllama_embedding import WordLlamaEmbedding
from pml.streams.learning.phases import Phases
from pml.streams.learning.sources import Known, Source, known_from
from pml.streams.learning.training import Trained, Wish, train
from pml.streams.settings import Settings

# How the sides are called in the tables.
BASELINE, RANKER = SIDES = ("baseline", "ranker")


def catalog_of(play: Play) -> Records:
    """What the catalog says of the recorded server, once it has listed its tools."""
    tools = sorted((catalog_tool(tool(each)) for each in told_tools(play)), key=lambda each: each.name)
    listed = ServerTools(server=SERVER, status="listed", tools=tuple(tools))
    record = CatalogRecord(kind=ServerTools.KIND, id=SERVER, data=listed)
    return {record.key: record}


def trained_sides(settings: Settings, play: Play) -> dict[str, Trained]:
    """What serves on each side: the best of all learners, and the best baseline."""
    learned = partial(_trained, settings, play, known_from(catalog_of(play), DEFAULT_TENANT))
    ranker = learned()
    return {BASELINE: learned(ranker.manifest["baseline"]), RANKER: ranker}


def _trained(settings: Settings, play: Play, known: Known, learner: str | None = None) -> Trained:
    """What `pml train` makes of sessions and the catalog; none are kept aside: others are played.

    It judges by the groups of the data set, as `pml train --data` does: what is played is of others.
    `learner`: the baseline that serves, None: the best of all learners.
    """
    sessions = as_sequences(play.learned_of, known.texts)
    source = Source(
        replace(sessions, traces=replace(sessions.traces, groups=play.groups), listed=known.listed),
        {"from": "benchmark"},
        play.learned_of,
        known.schemas,
        names=[each.name for each in play.learned_of],
    )
    wish = Wish(seed=play.seed, test_share=0.0, learner=learner)
    if learner is not None:
        # Who learns was compared before, and need not learn again for it.
        wish = replace(wish, usual=BASELINES)
    return train(source, WordLlamaEmbedding(), settings.models_folder, wish, Phases())
