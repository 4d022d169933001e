-- One row for each status that a run took, from the event that says so; the view shows the last one.
--
-- partition  None: a run's rows may be months apart and are read together, and there are few of them.
CREATE TABLE IF NOT EXISTS runs_raw
(
    partition UInt16,
    log_offset UInt64 CODEC(Delta, ZSTD(1)),
    tenant LowCardinality(String),
    session_id String CODEC(ZSTD(1)),
    epoch UInt64 CODEC(Delta, ZSTD(1)),
    run_id String CODEC(ZSTD(1)),
    seq UInt32,
    type LowCardinality(String),
    status LowCardinality(String),
    occurred_at DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    principal String CODEC(ZSTD(1)),
    name String CODEC(ZSTD(1)),
    intent String CODEC(ZSTD(1)),
    workflow_type LowCardinality(String),
    capability_id String CODEC(ZSTD(1)),
    context String CODEC(ZSTD(3)),
    speculation LowCardinality(String),
    exploratory Bool,
    layers UInt16,
    tasks UInt32,
    executed_path Array(String) CODEC(ZSTD(1)),
    decisions Map(String, String) CODEC(ZSTD(1)),
    completed UInt32,
    failed UInt32,
    skipped UInt32,
    unknown UInt32,
    hits UInt32,
    misses UInt32,
    wasted UInt32,
    saved_ms Float64,
    duration_ms Float64,
    error_code LowCardinality(String),
    error_message String CODEC(ZSTD(3)),
    INDEX by_run run_id TYPE bloom_filter GRANULARITY 4
)
ENGINE = ReplacingMergeTree
ORDER BY (tenant, session_id, epoch, run_id, partition, log_offset)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS runs_from_events TO runs_raw AS
SELECT
    partition, log_offset, tenant, session_id, epoch, run_id, seq, type,
    if(type = 'run.started', 'running', substring(type, length('run.') + 1)) AS status,
    occurred_at, principal,
    JSONExtractString(data, 'name') AS name,
    JSONExtractString(data, 'intent') AS intent,
    JSONExtractString(data, 'workflow_type') AS workflow_type,
    JSONExtractString(data, 'capability_id') AS capability_id,
    JSONExtractRaw(data, 'context') AS context,
    JSONExtractString(data, 'speculation') AS speculation,
    JSONExtractBool(data, 'exploratory') AS exploratory,
    toUInt16(JSONExtractUInt(data, 'layers')) AS layers,
    toUInt32(JSONExtractUInt(data, 'tasks')) AS tasks,
    JSONExtract(data, 'executed_path', 'Array(String)') AS executed_path,
    JSONExtract(data, 'decisions', 'Map(String, String)') AS decisions,
    toUInt32(JSONExtractUInt(data, 'counts', 'completed')) AS completed,
    toUInt32(JSONExtractUInt(data, 'counts', 'failed')) AS failed,
    toUInt32(JSONExtractUInt(data, 'counts', 'skipped')) AS skipped,
    toUInt32(JSONExtractUInt(data, 'counts', 'unknown')) AS unknown,
    toUInt32(JSONExtractUInt(data, 'counts', 'hits')) AS hits,
    toUInt32(JSONExtractUInt(data, 'counts', 'misses')) AS misses,
    toUInt32(JSONExtractUInt(data, 'counts', 'wasted')) AS wasted,
    JSONExtractFloat(data, 'counts', 'saved_ms') AS saved_ms,
    JSONExtractFloat(data, 'duration_ms') AS duration_ms,
    JSONExtractString(data, 'error', 'code') AS error_code,
    JSONExtractString(data, 'error', 'message') AS error_message
FROM events_raw
WHERE type IN ('run.started', 'run.completed', 'run.failed', 'run.aborted');

-- Aggregates that do not mind a row twice, so no FINAL. What a run is comes from its start, how it went
-- from the row with the highest offset.
CREATE OR REPLACE VIEW runs AS
SELECT
    r.tenant AS tenant, r.session_id AS session_id, r.epoch AS epoch, r.run_id AS run_id,
    argMax(r.status, r.log_offset) AS status,
    anyIf(r.name, r.type = 'run.started') AS name,
    anyIf(r.intent, r.type = 'run.started') AS intent,
    anyIf(r.workflow_type, r.type = 'run.started') AS workflow_type,
    anyIf(r.capability_id, r.type = 'run.started') AS capability_id,
    anyIf(r.principal, r.type = 'run.started') AS principal,
    anyIf(r.context, r.type = 'run.started') AS context,
    anyIf(r.speculation, r.type = 'run.started') AS speculation,
    anyIf(r.exploratory, r.type = 'run.started') AS exploratory,
    anyIf(r.layers, r.type = 'run.started') AS layers,
    anyIf(r.tasks, r.type = 'run.started') AS tasks,
    minIf(r.occurred_at, r.type = 'run.started') AS started_at,
    if(status = 'running', NULL, max(r.occurred_at)) AS ended_at,
    argMax(r.duration_ms, r.log_offset) AS duration_ms,
    argMax(r.executed_path, r.log_offset) AS executed_path,
    argMax(r.decisions, r.log_offset) AS decisions,
    argMax(r.completed, r.log_offset) AS completed,
    argMax(r.failed, r.log_offset) AS failed,
    argMax(r.skipped, r.log_offset) AS skipped,
    argMax(r.unknown, r.log_offset) AS unknown,
    argMax(r.hits, r.log_offset) AS hits,
    argMax(r.misses, r.log_offset) AS misses,
    argMax(r.wasted, r.log_offset) AS wasted,
    argMax(r.saved_ms, r.log_offset) AS saved_ms,
    argMax(r.error_code, r.log_offset) AS error_code,
    argMax(r.error_message, r.log_offset) AS error_message,
    any(r.partition) AS partition,
    max(r.log_offset) AS log_offset
FROM runs_raw AS r
GROUP BY r.tenant, r.session_id, r.epoch, r.run_id;
