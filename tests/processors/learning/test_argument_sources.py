"""Arguments of the next call are guessed from what named them in ended sessions, or not at all."""

from __future__ import annotations

import orjson
import pytest

from pml.processors.learning.argument_sources import ArgumentSources, Past

SCHEMAS = {
    "shop:search": {"properties": {"query": {"type": "string"}}, "required": ["query"]},
    "shop:get": {
        "properties": {
            "item_id": {"type": "integer"},
            "mode": {"type": "string"},
            "note": {"type": "string"},
        },
        "required": ["item_id", "mode"],
    },
    "shop:say": {"properties": {"thought": {"type": "string"}}, "required": ["thought"]},
}


def session(number: int) -> list[Past]:
    found = {"items": [{"id": number * 10}, {"id": number * 10 + 1}]}
    return [
        Past("shop:search", {"query": f"thing {number}"}, found),
        Past("shop:get", {"item_id": number * 10, "mode": "full"}, {"colour": "red"}),
        Past("shop:say", {"thought": f"free words number {number * 7}"}, None),
    ]


@pytest.fixture(scope="module")
def learned() -> ArgumentSources:
    sessions = [session(number) for number in range(12)]
    requests = [[f"look for 'thing {number}'"] * 3 for number in range(12)]
    return ArgumentSources.fit(sessions, requests, SCHEMAS)


def test_a_field_of_the_last_result_and_a_habit_become_the_arguments(learned: ArgumentSources) -> None:
    past = [Past("shop:search", {"query": "other"}, {"items": [{"id": 77}, {"id": 78}]})]
    best, *others = learned.guesses("shop:get", past, "look for 'other'")
    assert best.arguments == {"item_id": 77, "mode": "full"}
    assert best.confidence > 0.8
    assert best.sources["item_id"].startswith("result shop:search items[].id")
    assert best.sources["mode"] == "constant"
    assert all(other.confidence <= best.confidence for other in others)


def ordered(number: int) -> list[Past]:
    """Two calls, for a customer whose number the client knows."""
    told = {"customer": number * 3 + 1_000, "shop": {"currency": "EUR"}}
    calls = [("shop:search", {"query": "it"}), ("shop:order", {"customer_id": told["customer"], "in": "EUR"})]
    return [Past(name, arguments, None, told) for name, arguments in calls]


def test_what_the_client_tells_beside_a_call_becomes_the_arguments_of_the_next() -> None:
    sessions = [ordered(number) for number in range(12)]
    fitted = ArgumentSources.fit(sessions, [[""] * 2] * 12, {})
    told = ArgumentSources.from_arrays(fitted.to_arrays())
    for sources in (fitted, told):
        best, *_ = sources.guesses("shop:order", ordered(99)[:1], "")
        assert best.arguments["customer_id"] == 1_297
        assert best.confidence > 0.8
        assert best.sources["customer_id"].startswith("argument context customer")
    # What is known now is what was told with the latest call.
    later = [*ordered(99)[:1], Past("shop:search", {"query": "it"}, None, {"customer": 5})]
    assert fitted.guesses("shop:order", later, "")[0].arguments["customer_id"] == 5
    silent = [*ordered(99)[:1], Past("shop:search", {"query": "it"}, None)]
    assert all("customer_id" not in each.arguments for each in fitted.guesses("shop:order", silent, ""))


KEY, PLAIN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8", "tulip-4711-of-everybody"


@pytest.mark.parametrize(
    ("first", "parameter", "secret"),
    [
        (Past("crm:find", {}, None, {"crm_token": "@"}), "pin", PLAIN),
        (Past("crm:find", {}, None, {"pin": "@"}), "pin", PLAIN),
        (Past("crm:find", {"crm_token": "@"}, None), "pin", PLAIN),
        (Past("crm:find", {}, {"credentials": {"code": "@"}}), "q", PLAIN),
        (Past("crm:find", {}, {"pin": "@"}), "pin", PLAIN),
        (Past("bank:login", {"password": "@"}, None), "pin", PLAIN),
        (Past("crm:find", {"note": "@"}, None), "q", KEY),
        (Past("crm:find", {"db_pass": "@"}, None), "q", PLAIN),
        (Past("crm:find", {}, [{"name": "Authorization", "value": "@"}]), "q", PLAIN),
        (Past("crm:find", {}, {"text": '{"password": "@"}'}), "q", PLAIN),
        (Past("cap_1", {"pin": "@"}, None), "pin", PLAIN),
    ],
)
def test_a_secret_is_given_to_nobody_else_however_alike_the_log_has_them(
    first: Past, parameter: str, secret: str
) -> None:
    """The log redacts what is told and what is given: there both are equal. Who asks has the secret."""

    def told(value: str) -> Past:
        written = orjson.dumps([first.arguments, first.result, first.context])
        return Past(first.name, *orjson.loads(written.replace(b"@", value.encode())))

    logged = [told("[REDACTED]"), Past("bank:balance", {parameter: "[REDACTED]"}, None)]
    sources = ArgumentSources.fit([logged] * 20, [["", ""]] * 20, {})
    for guess in sources.guesses("bank:balance", [told(secret)], ""):
        assert secret not in str(guess.arguments)


def test_a_secret_of_one_capability_is_none_of_anothers() -> None:
    logged = [Past("cap_1", {"pin": "[REDACTED]"}, None), Past("cap_2", {"pin": "[REDACTED]"}, None)]
    sources = ArgumentSources.fit([logged] * 20, [["", ""]] * 20, {})
    for guess in sources.guesses("cap_2", [Past("cap_1", {"pin": PLAIN}, None)], ""):
        assert PLAIN not in str(guess.arguments)


def test_a_secret_goes_on_under_its_name_at_its_server() -> None:
    """Who logs in gets a token, and each call after that takes it."""

    def logged_in(token: str) -> list[Past]:
        return [Past("bank:login", {}, {"token": token}), Past("bank:balance", {"token": token}, None)]

    sources = ArgumentSources.fit([logged_in("[REDACTED]")] * 20, [["", ""]] * 20, {})
    best, *_ = sources.guesses("bank:balance", logged_in(KEY)[:1], "")
    assert best.arguments == {"token": KEY}


def test_however_long_a_session_is_what_the_client_tells_stays_known() -> None:
    sessions = [ordered(number) for number in range(12)]
    fitted = ArgumentSources.fit(sessions, [[""] * 2] * 12, {})
    past = [*ordered(7)[:1] * 30, *ordered(99)[:1]]
    assert fitted.guesses("shop:order", past, "")[0].arguments["customer_id"] == 1_297


def test_what_nobody_can_name_is_not_guessed(learned: ArgumentSources) -> None:
    assert learned.guesses("shop:say", session(20)[:2], "look for 'thing 20'") == ()
    assert learned.guesses("shop:get", [], "") == ()
    assert learned.guesses("shop:unheard", session(20), "look for 'other'") == ()


def test_arrays_keep_everything(learned: ArgumentSources) -> None:
    again = ArgumentSources.from_arrays(learned.to_arrays())
    past = [Past("shop:search", {"query": "other"}, {"items": [{"id": 77}, {"id": 78}]})]
    for name in SCHEMAS:
        assert again.guesses(name, past, "look for 'it'") == learned.guesses(name, past, "look for 'it'")


@pytest.mark.parametrize("times", [3, 12, 50])
def test_what_is_done_again_and_again_confirms_what_names_it(times: int) -> None:
    asked = "look for 'thing 1' now; be quick"
    known = ArgumentSources.fit([session(1)] * times, [[asked] * 3] * times, SCHEMAS)
    for place, call in enumerate(session(1)):
        best = known.guesses(call.name, session(1)[:place], asked)[0]
        assert best.arguments == call.arguments
        # Two calls of each session were asked about: at most the rule of succession, whoever says it.
        most = (2 * times + 1) / (2 * times + 2)
        assert most - 0.05 <= best.confidence <= most + 1e-9


def test_one_session_confirms_nothing() -> None:
    """What was weighed of it alone names its own values each time."""
    asked = "look around, then tell me what a.txt says"
    listed = Past("files:list", {"path": "."}, {"path": ".", "entries": [{"path": "a.txt"}]})
    read = Past("files:read", {"path": "a.txt"}, {"text": "a file"})
    schemas = {"files:read": {"properties": {"path": {"type": "string"}}, "required": ["path"]}}
    known = ArgumentSources.fit([[listed, read]], [["", asked]], schemas)
    (guess,) = known.guesses("files:read", [listed], asked, 1)
    assert guess.confidence < 0.5


def test_a_tool_that_was_never_called_and_tells_no_parameters_is_not_trusted() -> None:
    """It may take nothing, or may not have said what it takes: others of that kind took something."""
    sessions, requests = [], []
    for number in range(60):
        other = Past(f"other:act_{number}", {"hidden": number}, None)
        sessions.append([*session(number)[:2], other])
        requests.append([f"look for 'thing {number}'"] * 3)
    known = ArgumentSources.fit(sessions, requests, {**SCHEMAS, "other:new": {"properties": {}}})
    (empty,) = known.guesses("other:new", session(70)[:2], "look for 'thing 70'")
    assert empty.arguments == {}
    sure = known.guesses("shop:get", session(70)[:1], "look for 'thing 70'")[0]
    assert empty.confidence < 0.2
    assert sure.confidence > 0.8
