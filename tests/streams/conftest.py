from tests.fixtures.store import clickhouse_url, database

__all__ = ["clickhouse_url", "database"]
