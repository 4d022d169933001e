-- One row for each attempt of a task, from the event that ends it; a skipped task has one, attempt 0.
--
-- order      A run's attempts lie together: traces and `pml run show` read one range. Queries by tool read a
--            few narrow columns of a time range, which the monthly partition and the index bound.
-- Nullable   Only times, which a task that never started has not; texts are empty instead.
CREATE TABLE IF NOT EXISTS tasks_raw
(
    partition UInt16,
    log_offset UInt64 CODEC(Delta, ZSTD(1)),
    tenant LowCardinality(String),
    session_id String CODEC(ZSTD(1)),
    epoch UInt64 CODEC(Delta, ZSTD(1)),
    run_id String CODEC(ZSTD(1)),
    seq UInt32,
    task_id String CODEC(ZSTD(1)),
    attempt UInt16,
    final Bool,
    layer UInt16,
    call_id String CODEC(ZSTD(1)),
    tool_server LowCardinality(String),
    tool_name LowCardinality(String),
    status LowCardinality(String),
    error_type LowCardinality(String),
    error_code LowCardinality(String),
    error_message String CODEC(ZSTD(3)),
    arguments String CODEC(ZSTD(3)),
    arguments_hash String CODEC(ZSTD(1)),
    result String CODEC(ZSTD(3)),
    result_hash String CODEC(ZSTD(1)),
    result_bytes UInt64,
    mocked Bool,
    speculable Bool,
    served_by LowCardinality(String),
    as_of Nullable(DateTime64(6, 'UTC')),
    started_at Nullable(DateTime64(6, 'UTC')),
    ended_at DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    duration_ms Float64,
    tool_ms Float64,
    saved_ms Float64,
    INDEX by_run run_id TYPE bloom_filter GRANULARITY 4,
    INDEX by_time ended_at TYPE minmax GRANULARITY 4
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(ended_at)
ORDER BY (tenant, session_id, epoch, run_id, partition, log_offset)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS tasks_from_events TO tasks_raw AS
SELECT
    partition, log_offset, tenant, session_id, epoch, run_id, seq, task_id,
    toUInt16(JSONExtractUInt(data, 'attempt')) AS attempt,
    ifNull(JSONExtract(data, 'final', 'Nullable(Bool)'), true) AS final,
    toUInt16(JSONExtractUInt(data, 'layer')) AS layer,
    call_id, tool_server, tool_name,
    substring(type, length('task.') + 1) AS status,
    JSONExtractString(data, 'error', 'type') AS error_type,
    if(type = 'task.skipped', JSONExtractString(data, 'reason'), JSONExtractString(data, 'error', 'code')) AS error_code,
    JSONExtractString(data, 'error', 'message') AS error_message,
    JSONExtractRaw(data, 'arguments') AS arguments,
    JSONExtractString(data, 'arguments_hash') AS arguments_hash,
    JSONExtractRaw(data, 'result') AS result,
    JSONExtractString(data, 'result_hash') AS result_hash,
    JSONExtractUInt(data, 'result_bytes') AS result_bytes,
    JSONExtractBool(data, 'mocked') AS mocked,
    JSONExtractBool(data, 'speculable') AS speculable,
    JSONExtractString(data, 'served_by') AS served_by,
    parseDateTime64BestEffortOrNull(JSONExtractString(data, 'as_of'), 6, 'UTC') AS as_of,
    parseDateTime64BestEffortOrNull(JSONExtractString(data, 'started_at'), 6, 'UTC') AS started_at,
    occurred_at AS ended_at,
    JSONExtractFloat(data, 'duration_ms') AS duration_ms,
    JSONExtractFloat(data, 'tool_ms') AS tool_ms,
    JSONExtractFloat(data, 'saved_ms') AS saved_ms
FROM events_raw
WHERE type IN ('task.completed', 'task.failed', 'task.unknown', 'task.skipped');

CREATE OR REPLACE VIEW tasks AS
SELECT
    tenant, session_id, epoch, run_id, task_id, attempt, final, layer, call_id, arguments, result, mocked,
    tool_server, tool_name, status, error_type, error_code, error_message, speculable, served_by, as_of,
    started_at, ended_at, duration_ms, tool_ms, saved_ms, arguments_hash, result_hash, result_bytes,
    seq, partition, log_offset
FROM tasks_raw FINAL;
