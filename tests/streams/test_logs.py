import logging
from collections.abc import Iterator

import orjson
import pytest
import structlog

from pml.streams.logs import RateLimit, configure_logging, silence_libraries
from pml.streams.settings import LogSettings


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    levels = {name: logging.getLogger(name).level for name in ("aiokafka", "faust", "mcp", "asyncio", "mode")}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def written(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [orjson.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_our_lines_and_libraries_lines_are_json_of_one_form(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LogSettings(), role="sink")
    structlog.get_logger("pml.sink").info("flushed", rows=3)
    logging.getLogger("aiokafka.conn").error("Unable to connect")
    ours, theirs = written(capsys)
    assert (ours["event"], ours["rows"], ours["role"], ours["logger"]) == ("flushed", 3, "sink", "pml.sink")
    assert (theirs["event"], theirs["level"], theirs["role"]) == ("Unable to connect", "error", "sink")


def test_secrets_do_not_reach_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LogSettings())
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    try:
        raise RuntimeError(f"refused: Authorization: Bearer {secret}")
    except RuntimeError:
        structlog.get_logger("pml").exception("call failed", url=f"http://u:{secret}@h/", args=[secret])
    (line,) = written(capsys)
    assert "call failed" in str(line["event"])
    assert "RuntimeError" in str(line["exception"])
    assert secret not in str(line)


def test_a_line_for_a_person_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LogSettings(format="console"))
    steering = "\x1b]0;owned\x07\u202e"
    try:
        raise RuntimeError(steering)
    except RuntimeError:
        structlog.get_logger("pml").exception(f"failed {steering}", reason=steering, of=[steering])
    line = capsys.readouterr().err
    assert line.count(r"\x1b]0;owned\x07\u202e") == 4
    assert not {letter for letter in ("\x1b]", "\x07", "\u202e") if letter in line}
    assert "Traceback (most recent call last):\n" in line


def test_a_flood_of_a_library_is_one_line_and_our_own_lines_all_pass() -> None:
    limit = RateLimit()

    def passes(name: str, text: str) -> bool:
        return limit.filter(logging.LogRecord(name, logging.ERROR, "", 0, text, None, None))

    assert [passes("aiokafka.conn", "away") for _ in range(3)] == [True, False, False]
    assert passes("aiokafka.conn", "something else")
    assert [passes("pml.sink", "away") for _ in range(3)] == [True, True, True]


def test_the_command_line_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    silence_libraries()
    logging.getLogger("aiokafka.conn").error("Unable to connect")
    assert capsys.readouterr().err == ""
