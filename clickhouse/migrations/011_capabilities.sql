-- What a capability is, and what ran of it: one row for each time that it was analysed, the view shows the last.
--
-- structure  nodes and edges of a program; tasks and decisions of a workflow. Literals are sanitised.
-- partition  None: there are few, and those of a tenant are read together.
CREATE TABLE IF NOT EXISTS capabilities_raw
(
    partition UInt16,
    log_offset UInt64 CODEC(Delta, ZSTD(1)),
    tenant LowCardinality(String),
    capability_id String CODEC(ZSTD(1)),
    session_id String CODEC(ZSTD(1)),
    epoch UInt64 CODEC(Delta, ZSTD(1)),
    run_id String CODEC(ZSTD(1)),
    occurred_at DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    source LowCardinality(String),
    language LowCardinality(String),
    intent String CODEC(ZSTD(1)),
    structure String CODEC(ZSTD(3)),
    code String CODEC(ZSTD(3))
)
ENGINE = ReplacingMergeTree
ORDER BY (tenant, capability_id, epoch, partition, log_offset)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS program_capabilities_from_events TO capabilities_raw AS
SELECT
    partition, log_offset, tenant,
    JSONExtractString(data, 'answer', 'capability_id') AS capability_id,
    session_id, epoch, run_id, occurred_at,
    'code' AS source,
    JSONExtractString(data, 'answer', 'language') AS language,
    JSONExtractString(data, 'answer', 'intent') AS intent,
    JSONExtractRaw(data, 'answer', 'structure') AS structure,
    JSONExtractString(data, 'answer', 'source') AS code
FROM events_raw
WHERE type = 'internal.ended' AND JSONExtractString(data, 'answer', 'capability_id') != ''
    AND JSONExtractString(data, 'tool') = 'pml:analyse';

CREATE MATERIALIZED VIEW IF NOT EXISTS workflow_capabilities_from_events TO capabilities_raw AS
SELECT
    partition, log_offset, tenant,
    JSONExtractString(data, 'capability_id') AS capability_id,
    session_id, epoch, run_id, occurred_at,
    'dag' AS source,
    JSONExtractString(data, 'intent') AS intent,
    if(JSONHas(data, 'written'), JSONExtractRaw(data, 'written'), JSONExtractRaw(data, 'definition')) AS structure
FROM events_raw
WHERE type = 'run.started' AND JSONExtractString(data, 'capability_id') != '';

CREATE OR REPLACE VIEW capabilities AS
SELECT
    c.tenant AS tenant, c.capability_id AS capability_id,
    argMax(c.source, c.occurred_at) AS source,
    argMax(c.language, c.occurred_at) AS language,
    argMinIf(c.intent, c.occurred_at, c.intent != '') AS intent,
    argMax(c.structure, c.occurred_at) AS structure,
    argMax(c.code, c.occurred_at) AS code,
    uniqExact(c.partition, c.log_offset) AS analysed,
    min(c.occurred_at) AS first_at,
    max(c.occurred_at) AS last_at
FROM capabilities_raw AS c
GROUP BY c.tenant, c.capability_id;

-- A run that was replanned is no run of its capability any more.
CREATE OR REPLACE VIEW capability_runs AS
SELECT
    tenant, capability_id, run_id, session_id, epoch, status, intent, workflow_type, principal, context,
    executed_path, decisions, started_at, ended_at, duration_ms, completed, failed, skipped, hits, misses,
    saved_ms, error_code, partition, log_offset
FROM runs
WHERE capability_id != ''
    AND (tenant, session_id, epoch, run_id) NOT IN
        (SELECT tenant, session_id, epoch, run_id FROM runs_raw WHERE type = 'run.replanned');
