from tests.fixtures.store import clickhouse_url, database, empty_store

__all__ = ["clickhouse_url", "database", "empty_store"]
