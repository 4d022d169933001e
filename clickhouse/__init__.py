"""The store: migrations, queries, a client, and ClickHouse's engine for machines that have no server."""
