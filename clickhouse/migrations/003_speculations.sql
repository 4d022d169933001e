-- One row for each speculation, from the event that ends it: what became of it, and what it cost or saved.
--
-- order      As for tasks: a run's rows together.
CREATE TABLE IF NOT EXISTS speculations_raw
(
    partition UInt16,
    log_offset UInt64 CODEC(Delta, ZSTD(1)),
    tenant LowCardinality(String),
    session_id String CODEC(ZSTD(1)),
    epoch UInt64 CODEC(Delta, ZSTD(1)),
    run_id String CODEC(ZSTD(1)),
    seq UInt32,
    started_seq UInt32,
    task_id String CODEC(ZSTD(1)),
    call_id String CODEC(ZSTD(1)),
    tool_server LowCardinality(String),
    tool_name LowCardinality(String),
    kind LowCardinality(String),
    arguments String CODEC(ZSTD(3)),
    arguments_hash String CODEC(ZSTD(1)),
    confidence Float64,
    fate LowCardinality(String),
    reason LowCardinality(String),
    cancelled Bool,
    tool_ms Float64,
    saved_ms Float64,
    ended_at DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    INDEX by_run run_id TYPE bloom_filter GRANULARITY 4,
    INDEX by_time ended_at TYPE minmax GRANULARITY 4
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(ended_at)
ORDER BY (tenant, session_id, epoch, run_id, partition, log_offset)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS speculations_from_events TO speculations_raw AS
SELECT
    partition, log_offset, tenant, session_id, epoch, run_id, seq,
    toUInt32(JSONExtractUInt(data, 'started_seq')) AS started_seq,
    task_id, call_id, tool_server, tool_name,
    JSONExtractString(data, 'kind') AS kind,
    JSONExtractRaw(data, 'arguments') AS arguments,
    JSONExtractString(data, 'arguments_hash') AS arguments_hash,
    JSONExtractFloat(data, 'confidence') AS confidence,
    JSONExtractString(data, 'fate') AS fate,
    JSONExtractString(data, 'reason') AS reason,
    JSONExtractBool(data, 'cancelled') AS cancelled,
    JSONExtractFloat(data, 'tool_ms') AS tool_ms,
    JSONExtractFloat(data, 'saved_ms') AS saved_ms,
    occurred_at AS ended_at
FROM events_raw
WHERE type = 'speculation.ended';

CREATE OR REPLACE VIEW speculations AS
SELECT
    tenant, session_id, epoch, run_id, task_id, call_id, tool_server, tool_name, kind, arguments, arguments_hash,
    confidence, fate, reason, cancelled, tool_ms, saved_ms, ended_at, started_seq, seq, partition, log_offset
FROM speculations_raw FINAL;
