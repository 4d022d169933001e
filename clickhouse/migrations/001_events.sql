-- Every counted event of the log, once: the table that everything else here is made of.
--
-- engine     ReplacingMergeTree over the coordinate of the record: the sink's token keeps a batch from being
--            stored twice; where a token is older than the window below, the same row at the same
--            coordinate replaces itself.
-- order      A session's events lie together and in order: `pml run trace` and replays read one range.
-- partition  A month: whole months are dropped, and a duplicate, whose time is the log's, is in the same one.
-- ttl        The log keeps events for ever and they can be loaded again; what people ask about single steps
--            is recent. Runs, tasks and speculations, which learning reads, have no TTL.
-- codecs     Coordinates and times grow in steps (Delta); `data` is nine tenths of the table and is read for
--            few rows at a time, so it is packed harder.
-- token      10,000 inserts are some minutes of a busy sink; it repeats only its last one a partition.
CREATE TABLE IF NOT EXISTS events_raw
(
    partition UInt16,
    log_offset UInt64 CODEC(Delta, ZSTD(1)),
    tenant LowCardinality(String),
    session_id String CODEC(ZSTD(1)),
    epoch UInt64 CODEC(Delta, ZSTD(1)),
    run_id String CODEC(ZSTD(1)),
    seq UInt32 CODEC(Delta, ZSTD(1)),
    type LowCardinality(String),
    version UInt16,
    occurred_at DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    principal String CODEC(ZSTD(1)),
    command_id String CODEC(ZSTD(1)),
    traceparent String CODEC(ZSTD(1)),
    cause_topic LowCardinality(String),
    cause_partition UInt16,
    cause_offset UInt64 CODEC(Delta, ZSTD(1)),
    data String CODEC(ZSTD(3)),
    task_id String DEFAULT JSONExtractString(data, 'task_id') CODEC(ZSTD(1)),
    call_id String DEFAULT JSONExtractString(data, 'call_id') CODEC(ZSTD(1)),
    tool_server LowCardinality(String) DEFAULT extract(JSONExtractString(data, 'tool'), '^([^:]*):'),
    tool_name LowCardinality(String) DEFAULT extract(JSONExtractString(data, 'tool'), ':(.*)$'),
    INDEX by_run run_id TYPE bloom_filter GRANULARITY 4,
    INDEX by_call call_id TYPE bloom_filter GRANULARITY 4
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(occurred_at)
ORDER BY (tenant, session_id, epoch, partition, log_offset)
TTL toDateTime(occurred_at) + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

-- What users read: without duplicates, also before they are merged away.
CREATE OR REPLACE VIEW events AS
SELECT
    concat(tenant, '/', session_id, ':', toString(epoch), ':', toString(seq)) AS id,
    type, version, tenant, principal, session_id, epoch, run_id, seq, partition, log_offset, occurred_at,
    task_id, call_id, tool_server, tool_name, command_id, traceparent,
    cause_topic, cause_partition, cause_offset, data
FROM events_raw FINAL;
