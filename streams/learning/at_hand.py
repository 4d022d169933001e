"""What is kept of a bounded number of tenants, those that were asked for last."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


def keep_latest(kept: OrderedDict[str, T], tenant: str, what: T, most: int) -> None:
    """Keep something of a tenant; what was kept longest ago makes room."""
    kept[tenant] = what
    kept.move_to_end(tenant)
    if len(kept) > most:
        kept.popitem(last=False)


class AtHand(Generic[T]):
    """Who was asked for longest ago makes room. From any thread."""

    def __init__(self, tenants_max: int) -> None:
        self._most = tenants_max
        self._kept: OrderedDict[str, T] = OrderedDict()
        self._lock = Lock()

    def get(self, tenant: str) -> T | None:
        """What is kept of a tenant, which is the latest then."""
        with self._lock:
            if tenant in self._kept:
                self._kept.move_to_end(tenant)
            return self._kept.get(tenant)

    def keep(self, tenant: str, what: T) -> None:
        """Keep this of a tenant from now on."""
        with self._lock:
            keep_latest(self._kept, tenant, what, self._most)

    def drop(self, tenant: str) -> None:
        """Keep nothing of a tenant."""
        with self._lock:
            self._kept.pop(tenant, None)
