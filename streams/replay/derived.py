"""The tables that ClickHouse derives from the events: each row again as its view makes it, and compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pml.clickhouse.client import Store
from pml.clickhouse.derived import (
    WINDOW_OFFSETS,
    Odd,
    View,
    Window,
    both_rows,
    missing,
    surplus,
)
from pml.clickhouse.expiry import Expired, expired_events, oldest_event
from pml.streams.replay.report import Comparison, Place

NO_ROW = "none"


class DerivedReplay:
    """Compares the derived tables at offsets whose events the store has; ClickHouse computes both sides.

    Args:
        store: where they are.
        tables: the views over the events by the table that they fill (`derived_tables`).
        committed: up to which offset (not included) the sink has committed each partition; what lies behind
            that may just be written.
        session: tenant and name, to compare only its rows.
    """

    def __init__(
        self,
        store: Store,
        tables: Mapping[str, Sequence[View]],
        committed: Mapping[int, int],
        session: tuple[str, str] | None = None,
    ) -> None:
        self.comparison = Comparison("derived")
        self._store = store
        self._tables = tables
        self._committed = committed
        self._session = session

    def finish(self, spans: Mapping[int, Sequence[int]]) -> None:
        """Compare; `spans` are the first and last offset of each partition that was read.

        Raises:
            StoreUnavailable, QueryError
        """
        for partition, (first, last) in sorted(spans.items()):
            until = min(last + 1, self._committed.get(partition, 0))
            expired = expired_events(self._store, partition)
            for start in range(max(first, oldest_event(self._store, partition)), until, WINDOW_OFFSETS):
                end = min(start + WINDOW_OFFSETS, until) - 1
                self._compare(Window(partition, start, end, self._session), expired)

    def _compare(self, window: Window, expired: Expired) -> None:
        for table, views in self._tables.items():
            for view in views:
                rows, odd = missing(self._store, view, window)
                self.comparison.folded += rows
                self.comparison.compared += rows
                self._differs(view, window, odd)
            beyond = surplus(self._store, views, window, expired)
            if beyond.count:
                place = Place(window.partition, beyond.first, table)
                self._differ(beyond.count, place, ("row", "none", "a row that no event makes"))

    def _differs(self, view: View, window: Window, odd: Odd) -> None:
        if not odd.count:
            return
        expected, found = both_rows(self._store, view, window.partition, odd.first)
        told = ("row", "a row", NO_ROW)
        if expected is not None and found is not None:
            name = next((name for name in expected if expected[name] != found[name]), "row")
            told = (name, str(expected.get(name)), str(found.get(name)))
        self._differ(odd.count, Place(window.partition, odd.first, view.table), told)

    def _differ(self, count: int, place: Place, told: tuple[str, str, str]) -> None:
        self.comparison.differs(place, *told)
        self.comparison.differences += count - 1
