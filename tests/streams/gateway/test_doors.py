import pytest

from pml.streams.gateway.doors import Busy, Waiting


def test_only_so_many_requests_wait_at_once() -> None:
    waiting = Waiting(most=2)
    with waiting.one_more():
        with waiting.one_more(), pytest.raises(Busy, match="2 requests wait"):
            waiting.check()
        waiting.check()
    with waiting.one_more(), waiting.one_more(), pytest.raises(Busy), waiting.one_more():
        raise AssertionError("a third one waits")


def test_a_request_that_fails_waits_no_more() -> None:
    waiting = Waiting(most=1)
    with pytest.raises(KeyError), waiting.one_more():
        raise KeyError

    waiting.check()
