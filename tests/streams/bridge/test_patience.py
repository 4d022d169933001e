"""What may be done twice is tried again while the broker is away, and not for ever."""

from __future__ import annotations

import pytest

from pml.schemas.errors import BrokerUnavailable, ConfigurationError
from pml.streams.bridge import patience
from pml.streams.bridge.patience import patiently
from pml.streams.log.append import InDoubt


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PAUSE_S", 0.001)


class Broker:
    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)

    async def answer(self) -> str:
        if self.failures:
            raise self.failures.pop(0)
        return "acknowledged"


async def test_it_is_tried_until_it_works() -> None:
    broker = Broker(InDoubt("?"), BrokerUnavailable("away"), InDoubt("?"))
    assert await patiently(broker.answer) == "acknowledged"


async def test_patience_ends() -> None:
    broker = Broker(*[BrokerUnavailable("away")] * 10_000)
    with pytest.raises(BrokerUnavailable):
        await patiently(broker.answer, patience_s=0.05)
    assert broker.failures


async def test_another_error_goes_up_at_once() -> None:
    broker = Broker(ConfigurationError("wrong"), InDoubt("?"))
    with pytest.raises(ConfigurationError):
        await patiently(broker.answer)
    assert len(broker.failures) == 1
