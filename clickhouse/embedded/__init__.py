"""ClickHouse's engine in process (chDB) behind ClickHouse's own HTTP interface.

Every part of PML speaks to it through clickhouse-connect, exactly as to a server, so that `CLICKHOUSE_URL`
can name a real one with nothing else changed. What differs from a server, on purpose: loopback only, one
user (`default`) with a password of its own, no sessions (`session_id` is accepted and means nothing),
no external data, no progress headers.
"""
