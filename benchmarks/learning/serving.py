"""`python -m benchmarks.learning.serving`: what one question costs where there are many tools.

Asked is the model that serves, whole: request and history in words, its candidates with confidence out. The
baseline is the same model, made of the same sessions, where there are fewer tools.
"""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any

import numpy as np
import orjson
import typer
from rich.console import Console

from benchmarks.figures import Figure, percentile
from benchmarks.machine import OthersWatch
from benchmarks.plan import Plan, planned
from benchmarks.report import WIDTH, Result, show
from pml.processors.learning.model import NextModel, fitted
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.traces import TraceSet
from pml.processors.learning.vocabulary import UNKNOWN, Vocabulary
from pml.streams.discovery.wordllama_embedding import WordLlamaEmbedding

NAME = "serving_scale"
SEED, ROUNDS = 1, 3
LEARNER = "boosted"
# The model of 100,000 tools takes more than nine minutes to train; what scoring takes there `attention` says.
TOOLS = (1_000, 10_000)
SESSIONS, CALLS, TOOLS_CALLED = 200, 4, 300
QUESTIONS = 300
SYLLABLES = (
    "ba", "co", "di", "fu", "ga", "ki", "lo", "mer", "nu", "pa", "ri", "sto", "ta", "vel", "wi", "zo",
)  # fmt: skip
WORDS, WORDS_EACH = 1_500, 4


def main(
    seed: Annotated[int, typer.Option(min=0, help="What tools and sessions are drawn with.")] = SEED,
    rounds: Annotated[int, typer.Option(min=1, help="How often the questions are asked.")] = ROUNDS,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of the table.")] = False,
) -> None:
    """Time questions to the model that serves, among 1,000 and among 10,000 tools.

    Examples: python -m benchmarks.learning.serving
    """
    others = OthersWatch()
    with planned(NAME, rounds, seed) as plan:
        models: dict[int, tuple[NextModel, Sessions]] = {}
        facts: dict[str, Any] = {"learner": LEARNER, "fitting_s": {}}
        for count in TOOLS:
            plan.say(f"a model of {count:,} tools")
            began = time.perf_counter()
            models[count] = _model(count, plan.seed_of(0))
            facts["fitting_s"][str(count)] = round(time.perf_counter() - began, 1)
        figures = _measured(plan, models)
        result = Result.of(NAME, figures, plan, others, facts)
    result.write()
    if json:
        sys.stdout.buffer.write(orjson.dumps(result.as_dict()) + b"\n")
        return
    show([result], Console(width=None if sys.stdout.isatty() else WIDTH))


def drawn_sessions(tools: int, seed: int) -> Sessions:
    """Sessions that call 300 of so many tools; each request says what its calls do.

    The sessions are the same however many other tools there are.
    """
    draws = np.random.default_rng(seed)
    words = ["".join(draws.choice(SYLLABLES, 3)) for _ in range(WORDS)]
    told = [" ".join(draws.choice(words, WORDS_EACH)) for _ in range(TOOLS_CALLED)]
    called = draws.integers(0, TOOLS_CALLED, (SESSIONS, CALLS))
    more = np.random.default_rng(seed + 1)
    told += [" ".join(more.choice(words, WORDS_EACH)) for _ in range(tools - TOOLS_CALLED)]
    names = [f"server_{number % 100}:tool_{number}" for number in range(tools)]
    vocabulary = Vocabulary.of(names)
    texts = tuple(f"please {' and '.join(told[each] for each in session)}" for session in called.tolist())
    return Sessions(
        vocabulary,
        _traces(vocabulary.ids([names[each] for each in called.ravel().tolist()])),
        texts,
        dict(zip(names, told, strict=True)),
        listed=names,
    )


def _traces(items: Any) -> TraceSet:
    rows = np.repeat(np.arange(SESSIONS), CALLS)
    return TraceSet(
        items=items,
        success=np.ones(len(items), dtype=np.float32),
        offsets=np.arange(SESSIONS + 1) * CALLS,
        outcomes=np.ones(SESSIONS, dtype=np.float32),
        weights=np.ones(SESSIONS, dtype=np.float32),
        groups=np.arange(SESSIONS),
        times_ms=np.arange(SESSIONS) * 1_000,
        texts=rows,
        end_texts=np.arange(SESSIONS),
    )


def _model(tools: int, seed: int) -> tuple[NextModel, Sessions]:
    sessions = drawn_sessions(tools, seed)
    return fitted(sessions, WordLlamaEmbedding(), seed, LEARNER), sessions


def _measured(plan: Plan, models: dict[int, tuple[NextModel, Sessions]]) -> list[Figure]:
    taken: dict[int, list[list[float]]] = {count: [] for count in TOOLS}
    for number in range(plan.rounds):
        for count in TOOLS if number % 2 else TOOLS[::-1]:
            plan.say(f"round {number + 1} of {plan.rounds}: {count:,} tools")
            taken[count].append(_asked(*models[count], plan.seed_of(number)))
    return [_figure(taken, count, share) for count in TOOLS[1:] for share in (50, 99)]


def _figure(taken: dict[int, list[list[float]]], count: int, share: int) -> Figure:
    values, baseline = (
        tuple(percentile(each, share) for each in taken[tools]) for tools in (count, TOOLS[0])
    )
    return Figure(f"{count:,} tools beside {TOOLS[0]:,}, p{share}", "ms", values, baseline)


def _asked(model: NextModel, sessions: Sessions, seed: int) -> list[float]:
    """Milliseconds of each question: a history that a session had, and a request that none had."""
    draws = np.random.default_rng(seed)
    names = (UNKNOWN, *sessions.vocabulary.names)
    taken = []
    for number in range(QUESTIONS):
        session, calls = int(draws.integers(SESSIONS)), int(draws.integers(1, CALLS))
        start = int(sessions.traces.offsets[session])
        history = [str(names[item]) for item in sessions.traces.items[start : start + calls].tolist()]
        request = f"{sessions.texts[session]}, number {number}"
        began = time.perf_counter()
        found = model.candidates(history, request)
        taken.append(1e3 * (time.perf_counter() - began))
        if not found:
            raise AssertionError("a question without any candidate was answered for nothing")
    return taken[1:]


if __name__ == "__main__":
    typer.run(main)
