"""What every command begins with: settings, quiet libraries, an event loop."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from pml.streams.cli.output import note

if TYPE_CHECKING:
    from pml.clickhouse.client import Store
    from pml.streams.settings import Settings

T = TypeVar("T")


def load_settings() -> Settings:
    """The settings in force; libraries say nothing from here on, and what is passed over is told once.

    Raises:
        ConfigurationError: a setting is wrong.
    """
    from pml.streams.logs import silence_libraries
    from pml.streams.settings import Settings
    from pml.streams.unreadable import once, telling

    silence_libraries()
    telling.set(once(note))
    return Settings.load()


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run it to its end in a loop of its own."""
    import asyncio

    return asyncio.run(work)


def person() -> str:
    """Who stands at this command line, as commands name them."""
    from pml.streams.local_person import local_person

    return local_person()


def open_store(settings: Settings) -> Store:
    """A store that answers; use it in a `with`.

    Raises:
        StoreUnavailable: none runs, or it does not answer.
    """
    from pml.clickhouse.client import Store
    from pml.streams.connection import store_url

    return Store.connect(store_url(settings), settings.clickhouse.database)
