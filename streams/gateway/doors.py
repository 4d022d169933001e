"""What the handlers of requests share."""

from __future__ import annotations

from dataclasses import dataclass

from pml.streams.client import IntentProducer
from pml.streams.gateway.callers import Callers
from pml.streams.settings import Settings


@dataclass(frozen=True, slots=True)
class Doors:
    """The settings, one producer for all, and who may come in."""

    settings: Settings
    producer: IntentProducer
    callers: Callers
