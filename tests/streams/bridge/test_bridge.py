"""The bridge over a real broker and real MCP servers: calls in, outcomes out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import median

import pytest
import pytest_asyncio

from pml.schemas.catalog import CatalogRecord, PermissionRecord, ServerTools, SpeculationSwitch
from pml.schemas.codec import encode
from pml.schemas.identifiers import session_key
from pml.schemas.times import to_rfc3339
from pml.streams.clock import now_ms
from pml.streams.connection import partition_for
from tests.fixtures.patience import PATIENCE_S
from tests.streams.bridge.running import PERMISSIONS, World, bridge, cancel, run, until, world

TRACE = f"00-{'1' * 32}-{'2' * 16}-01"
pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pml(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """One bridge for all tests of this module; each has calls of its own.

    It speculates also where it hears nothing for two seconds, as it may on a machine that does other things
    as well: what comes of that is tested at the gate.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("pml.streams.bridge.gate.CONTACT_MAX_S", PATIENCE_S)
        async with world(kafka, tmp_path_factory.mktemp("bridge")) as made, bridge(made):
            yield made


async def test_a_call_is_run_and_answered_with_its_id_as_idempotency_key(pml: World) -> None:
    call = run("trouble:echo", arguments={"text": "hello"}, traceparent=TRACE)
    await pml.send(call)
    outcome = await pml.answer(call.call_id)
    assert (outcome.status, outcome.error) == ("ok", None)
    assert outcome.result is not None
    assert outcome.result.structured == {"result": "hello"}
    assert outcome.started_at is not None
    assert outcome.duration_ms > 0
    assert outcome.traceparent == call.traceparent
    (entry,) = pml.events.entries("echo", call.call_id)
    assert entry["meta"]["pml/call-id"] == call.call_id
    assert entry["meta"]["pml/speculative"] is False
    assert entry["meta"]["traceparent"] == call.traceparent
    assert await pml.claims(call) == [], "a safe call needs no claim"


async def test_an_unsafe_call_runs_under_a_claim_that_counts(pml: World) -> None:
    call = run("trouble:count")
    offset = await pml.send(call)
    assert (await pml.answer(call.call_id)).status == "ok"
    (claim,) = await pml.claims(call)
    assert claim.call_offset == offset
    assert pml.happened("count", call) == 1


async def test_a_repeated_call_attaches_to_the_one_that_runs_or_is_answered(pml: World) -> None:
    slow, unsafe = run("trouble:slow", arguments={"seconds": 0.5}), run("trouble:count")
    for call in (slow, unsafe, slow, unsafe):
        await pml.send(call)
    await pml.answers([slow.call_id, unsafe.call_id])
    for call in (slow, unsafe):
        await pml.send(call)
    marker = run("trouble:echo", arguments={"text": "x"})
    await pml.send(marker)
    await pml.answer(marker.call_id)
    assert pml.happened("slow", slow) == pml.happened("count", unsafe) == 1
    assert len(await pml.outcomes(slow)) == len(await pml.outcomes(unsafe)) == 1


async def test_a_slow_call_holds_the_watermark_and_not_the_others(pml: World) -> None:
    session = "ses_of_its_own"
    number = partition_for(session_key("local", session))
    slow = run("trouble:slow", arguments={"seconds": 30}, session_id=session)
    held = await pml.send(slow)
    quick = [run("trouble:echo", arguments={"text": str(n)}, session_id=session) for n in range(20)]
    for call in quick:
        await pml.send(call)
    await pml.answers([call.call_id for call in quick])
    await asyncio.sleep(1)  # longer than the time between two commits
    assert await pml.committed(number) <= held
    last = await pml.send(cancel(slow))
    assert (await pml.answer(slow.call_id)).status == "cancelled"
    async with asyncio.timeout(PATIENCE_S):
        while await pml.committed(number) <= last:
            await asyncio.sleep(0.05)


async def test_cancelling_ends_a_safe_call_and_not_an_unsafe_one(pml: World) -> None:
    safe, unsafe = (
        run("trouble:slow", arguments={"seconds": 60}),
        run("trouble:count", arguments={"seconds": 1}),
    )
    await pml.send(safe)
    await pml.send(unsafe)
    await until(lambda: pml.happened("slow", safe) and pml.happened("count", unsafe))
    await pml.send(cancel(safe))
    await pml.send(cancel(unsafe))
    assert (await pml.answer(safe.call_id)).status == "cancelled"
    assert (await pml.answer(unsafe.call_id)).status == "ok"
    await until(lambda: pml.happened("slow cancelled", safe))


async def test_a_call_past_its_deadline_is_not_started(pml: World) -> None:
    call = run("trouble:count", deadline_at=to_rfc3339(now_ms() - 1))
    await pml.send(call)
    outcome = await pml.answer(call.call_id)
    assert (outcome.status, outcome.started_at) == ("not_started", None)
    assert not pml.happened("count", call)


async def test_a_safe_call_that_takes_too_long_fails_with_timeout(pml: World) -> None:
    call = run("trouble:slow", arguments={"seconds": 60}, timeout_ms=300)
    await pml.send(call)
    outcome = await pml.answer(call.call_id)
    assert outcome.error is not None
    assert (outcome.status, outcome.error.type, outcome.error.retryable) == ("error", "TIMEOUT", True)
    await until(lambda: pml.happened("slow cancelled", call))


async def test_an_unsafe_call_that_takes_too_long_is_not_interrupted_and_answers_late(pml: World) -> None:
    call = run("trouble:count", arguments={"seconds": 1}, timeout_ms=200)
    await pml.send(call)
    assert (await pml.answer(call.call_id)).error is not None
    async with asyncio.timeout(PATIENCE_S):
        while len(outcomes := await pml.outcomes(call)) < 2:
            await asyncio.sleep(0.05)
    assert [outcome.status for outcome in outcomes] == ["error", "ok"]
    assert pml.happened("count ended", call) == 1


async def test_a_guess_at_a_server_that_was_removed_may_be_joined(kafka: str, tmp_path: Path) -> None:
    """Both records in one batch, as a bridge finds them that was started again without the server."""
    async with world(kafka, tmp_path, servers=["trouble"]) as pml:
        guess, other = run("removed:tool", speculative=True), run("trouble:echo", arguments={"text": "x"})
        for call in (guess, guess.model_copy(update={"speculative": False}), other):
            await pml.send(call)
        async with bridge(pml):
            answers = await pml.answers([guess.call_id, other.call_id])
    assert answers[guess.call_id].error.code == "UNKNOWN_SERVER"
    assert answers[other.call_id].status == "ok"


@pytest.mark.parametrize(
    ("tool", "status", "code", "kind"),
    [
        ("absent:anything", "not_started", "SERVER_UNAVAILABLE", "NETWORK"),
        ("nobody:anything", "error", "UNKNOWN_SERVER", "NOT_FOUND"),
        ("trouble:die", "error", "CONNECTION_LOST", "NETWORK"),
        ("raw:big_integer", "error", "RESULT_UNREADABLE", "VALIDATION"),
    ],
)
async def test_what_goes_wrong_is_answered(pml: World, tool: str, status: str, code: str, kind: str) -> None:
    bad, good = run(tool), run("trouble:echo", arguments={"text": "x"})
    await pml.send(bad)
    await pml.send(good)
    outcome = await pml.answer(bad.call_id)
    assert outcome.error is not None
    assert (outcome.status, outcome.error.code, outcome.error.type) == (status, code, kind)
    assert outcome.error.retryable is (kind == "NETWORK")
    assert (await pml.answer(good.call_id)).status in ("ok", "error")


async def test_records_that_cannot_be_read_become_dead_letters_and_the_next_call_runs(pml: World) -> None:
    key = b"local/ses_1"
    number = partition_for(key)
    poison = {
        "UNDECODABLE": [b"\xff\xfe", b"[]", None, b'{"type": "call.run", "version": 1}'],
        "UNKNOWN_TYPE_OR_VERSION": [b'{"type": "call.walk"}', b'{"type": "call.run", "version": 99}'],
    }
    for values in poison.values():
        for value in values:
            await pml.send_raw(pml.topics.tool_calls, value, key)
    misplaced = run("trouble:count")
    await pml.send_raw(pml.topics.tool_calls, encode(misplaced), key, partition=(number + 1) % 12)
    good = run("trouble:echo", arguments={"text": "x"})
    await pml.send(good)
    assert (await pml.answer(good.call_id)).status == "ok"
    async with asyncio.timeout(PATIENCE_S):
        while len(letters := await pml.read(pml.topics.dead_letters)) < 7:
            await asyncio.sleep(0.05)
    codes = [dict(letter.headers)["pml-dlq-code"].decode() for letter in letters]
    assert sorted(codes) == ["MISPLACED"] + ["UNDECODABLE"] * 4 + ["UNKNOWN_TYPE_OR_VERSION"] * 2
    assert {letter.value for letter in letters} >= {b"\xff\xfe", None}
    assert not pml.happened("count", misplaced)


async def test_the_catalog_says_what_there_is(pml: World) -> None:
    catalog = await pml.catalog()
    assert set(catalog) == {"tool/trouble", "tool/single", "tool/raw", "tool/absent", "permission/file"}
    trouble, absent = catalog["tool/trouble"], catalog["tool/absent"]
    assert trouble is not None
    assert absent is not None
    assert isinstance(trouble.data, ServerTools)
    assert isinstance(absent.data, ServerTools)
    assert (trouble.data.status, trouble.data.concurrency) == ("listed", 8)
    assert (absent.data.status, absent.data.tools) == ("unavailable", ())
    assert "does not exist" in str(absent.data.error)
    count = next(tool for tool in trouble.data.tools if tool.name == "count")
    assert count.hints.read_only is False


async def published_permissions(pml: World) -> set[str]:
    record = (await pml.catalog())["permission/file"]
    assert record is not None
    assert isinstance(record.data, PermissionRecord)
    return set(record.data.file.tools)


async def test_a_changed_permissions_file_is_published(pml: World) -> None:
    pml.write_permissions({"version": 1, "tools": {"raw:good": {"scope": "minimal", "approval": "auto"}}})
    async with asyncio.timeout(PATIENCE_S):
        while "raw:good" not in await published_permissions(pml):
            await asyncio.sleep(0.05)
    guess = run("raw:good", speculative=True)
    await pml.send(guess)
    assert (await pml.answer(guess.call_id)).status == "ok"
    pml.write_permissions(PERMISSIONS)
    async with asyncio.timeout(PATIENCE_S):
        while "trouble:*" not in await published_permissions(pml):
            await asyncio.sleep(0.05)


async def test_a_broken_permissions_file_leaves_the_last_good_one(pml: World) -> None:
    (pml.folder / "mcp-permissions.yaml").write_text("tools: [")
    await asyncio.sleep(1)  # several looks at the file
    guess = run("trouble:echo", arguments={"text": "x"}, speculative=True)
    await pml.send(guess)
    assert (await pml.answer(guess.call_id)).status == "ok"
    pml.write_permissions(PERMISSIONS)


@pytest.mark.parametrize(
    ("tool", "effect", "code"),
    [
        ("trouble:count", "write", "EFFECT"),
        ("trouble:count", "read", "EFFECT"),
        ("raw:good", "read", "APPROVAL_REQUIRED"),
        ("absent:x", "read", "TOOL_NOT_APPROVED"),
    ],
)
async def test_a_speculative_call_that_is_not_allowed_is_refused(
    pml: World, tool: str, effect: str, code: str
) -> None:
    guess = run(tool, speculative=True, effect=effect)
    await pml.send(guess)
    outcome = await pml.answer(guess.call_id)
    assert outcome.error is not None
    assert (outcome.status, outcome.error.code) == ("refused", code)
    assert not pml.happened("count", guess)


async def test_the_only_slot_of_a_server_goes_to_the_real_call(pml: World) -> None:
    guess = run("single:slow", arguments={"seconds": 60}, speculative=True)
    await pml.send(guess)
    await until(lambda: pml.happened("slow", guess))
    real = run("single:echo", arguments={"text": "x"})
    await pml.send(real)
    assert (await pml.answer(real.call_id)).status == "ok"
    outcome = await pml.answer(guess.call_id)
    assert outcome.error is not None
    assert (outcome.status, outcome.error.code) == ("cancelled", "GAVE_WAY")


async def test_a_joined_speculation_keeps_its_slot_and_survives_the_switch(pml: World) -> None:
    guess = run("single:slow", arguments={"seconds": 2}, speculative=True)
    await pml.send(guess)
    await until(lambda: pml.happened("slow", guess))
    await pml.send(guess.model_copy(update={"speculative": False}))
    real = run("single:echo", arguments={"text": "x"})
    await pml.send(real)
    # Records of a partition are taken in their order; the switch comes by another topic.
    behind = run("absent:x")
    await pml.send(behind)
    assert (await pml.answer(behind.call_id)).status == "not_started"
    await switch(pml, "off")
    assert (await pml.answer(guess.call_id)).status == "ok"
    assert (await pml.answer(real.call_id)).status == "ok"
    assert pml.happened("slow", guess) == 1
    await switched_on_again(pml)


async def switch(pml: World, mode: str) -> None:
    record = CatalogRecord(
        kind="switch", id="speculation", data=SpeculationSwitch.model_validate({"mode": mode})
    )
    await pml.send_raw(pml.topics.catalog, encode(record), record.key)


async def switched_on_again(pml: World) -> None:
    await switch(pml, "on")
    async with asyncio.timeout(PATIENCE_S):
        while True:
            guess = run("trouble:echo", arguments={"text": "x"}, speculative=True)
            await pml.send(guess)
            if (await pml.answer(guess.call_id)).status == "ok":
                return


async def seconds_to_switch_off(pml: World) -> float:
    running = run("single:slow", arguments={"seconds": 60}, speculative=True)
    waiting = run("single:slow", arguments={"seconds": 60}, speculative=True)
    await pml.send(running)
    await until(lambda: pml.happened("slow", running))
    await pml.send(waiting)
    began_s = time.monotonic()
    await switch(pml, "off")
    found = await pml.answers([running.call_id, waiting.call_id])
    took_s = time.monotonic() - began_s
    assert (found[running.call_id].status, found[waiting.call_id].status) == ("cancelled", "refused")
    later = run("trouble:echo", arguments={"text": "x"}, speculative=True)
    await pml.send(later)
    assert (await pml.answer(later.call_id)).status == "refused"
    await switched_on_again(pml)
    return took_s


async def test_switched_off_means_that_nothing_speculative_runs_within_two_seconds(pml: World) -> None:
    """Mostly: a machine that stands still now and then is no slow switch."""
    assert median([await seconds_to_switch_off(pml) for _ in range(5)]) < 2


async def test_a_broken_catalog_record_becomes_a_dead_letter_and_other_kinds_are_passed_over(
    pml: World,
) -> None:
    before = len(await pml.read(pml.topics.dead_letters))
    foreign = b'{"kind": "omen", "id": "m", "version": 7, "data": {}}'
    await pml.send_raw(pml.topics.catalog, foreign, b"omen/m")
    broken = b'{"kind": "switch", "id": "x", "data": {"mode": "?"}}'
    await pml.send_raw(pml.topics.catalog, broken, b"switch/x")
    async with asyncio.timeout(PATIENCE_S):
        while len(letters := await pml.read(pml.topics.dead_letters)) == before:
            await asyncio.sleep(0.05)
    assert [letter.key for letter in letters[before:]] == [b"switch/x"]
    await switched_on_again(pml)
