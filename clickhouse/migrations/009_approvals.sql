-- One row for each step of an approval: asked for, then granted, rejected or expired; the view shows the last one.
--
-- order      By session and run, as events are read; the open ones of everybody are few.
CREATE TABLE IF NOT EXISTS approvals_raw
(
    partition UInt16,
    log_offset UInt64 CODEC(Delta, ZSTD(1)),
    tenant LowCardinality(String),
    session_id String CODEC(ZSTD(1)),
    epoch UInt64 CODEC(Delta, ZSTD(1)),
    run_id String CODEC(ZSTD(1)),
    approval_id String CODEC(ZSTD(1)),
    type LowCardinality(String),
    status LowCardinality(String),
    occurred_at DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    principal String CODEC(ZSTD(1)),
    task_id String CODEC(ZSTD(1)),
    tool_server LowCardinality(String),
    tool_name LowCardinality(String),
    description String CODEC(ZSTD(3)),
    arguments String CODEC(ZSTD(3)),
    effect LowCardinality(String),
    touches Array(String) CODEC(ZSTD(1)),
    code LowCardinality(String),
    message String CODEC(ZSTD(1)),
    expires_at Nullable(DateTime64(6, 'UTC')),
    decided_by String CODEC(ZSTD(1)),
    reason String CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree
ORDER BY (tenant, session_id, epoch, run_id, partition, log_offset)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS approvals_from_events TO approvals_raw AS
SELECT
    partition, log_offset, tenant, session_id, epoch, run_id,
    JSONExtractString(data, 'approval_id') AS approval_id, type,
    if(type = 'approval.requested', 'open', substring(type, length('approval.') + 1)) AS status,
    occurred_at, principal, task_id, tool_server, tool_name,
    JSONExtractString(data, 'description') AS description,
    JSONExtractRaw(data, 'arguments') AS arguments,
    JSONExtractString(data, 'effect') AS effect,
    JSONExtract(data, 'touches', 'Array(String)') AS touches,
    JSONExtractString(data, 'code') AS code,
    JSONExtractString(data, 'message') AS message,
    parseDateTime64BestEffortOrNull(JSONExtractString(data, 'expires_at'), 6, 'UTC') AS expires_at,
    JSONExtractString(data, 'decided_by') AS decided_by,
    JSONExtractString(data, 'reason') AS reason
FROM events_raw
WHERE type IN ('approval.requested', 'approval.granted', 'approval.rejected', 'approval.expired');

-- Aggregates that do not mind a row twice, so no FINAL.
CREATE OR REPLACE VIEW approvals AS
SELECT
    a.tenant AS tenant, a.session_id AS session_id, a.epoch AS epoch, a.run_id AS run_id,
    a.approval_id AS approval_id,
    argMax(a.status, a.log_offset) AS status,
    any(a.task_id) AS task_id, any(a.tool_server) AS tool_server, any(a.tool_name) AS tool_name,
    any(a.principal) AS principal,
    anyIf(a.description, a.type = 'approval.requested') AS description,
    anyIf(a.arguments, a.type = 'approval.requested') AS arguments,
    anyIf(a.effect, a.type = 'approval.requested') AS effect,
    anyIf(a.touches, a.type = 'approval.requested') AS touches,
    anyIf(a.code, a.type = 'approval.requested') AS code,
    anyIf(a.message, a.type = 'approval.requested') AS message,
    min(a.occurred_at) AS requested_at,
    anyIf(a.expires_at, a.type = 'approval.requested') AS expires_at,
    if(status = 'open', NULL, max(a.occurred_at)) AS settled_at,
    argMax(a.decided_by, a.log_offset) AS decided_by,
    argMax(a.reason, a.log_offset) AS reason,
    any(a.partition) AS partition,
    max(a.log_offset) AS log_offset
FROM approvals_raw AS a
GROUP BY a.tenant, a.session_id, a.epoch, a.run_id, a.approval_id;

-- What became of a task of unknown outcome: a later row of the same attempt.
CREATE MATERIALIZED VIEW IF NOT EXISTS resolutions_from_events TO tasks_raw AS
SELECT
    partition, log_offset, tenant, session_id, epoch, run_id, seq, task_id,
    toUInt16(JSONExtractUInt(data, 'attempt')) AS attempt,
    true AS final,
    toUInt16(JSONExtractUInt(data, 'layer')) AS layer,
    call_id, tool_server, tool_name,
    if(JSONExtractString(data, 'resolution') = 'done', 'completed', 'failed') AS status,
    JSONExtractString(data, 'error', 'type') AS error_type,
    JSONExtractString(data, 'error', 'code') AS error_code,
    JSONExtractString(data, 'error', 'message') AS error_message,
    JSONExtractRaw(data, 'result') AS result,
    JSONExtractString(data, 'result_hash') AS result_hash,
    JSONExtractUInt(data, 'result_bytes') AS result_bytes,
    'call' AS served_by,
    occurred_at AS ended_at
FROM events_raw
WHERE type = 'task.resolved' AND JSONExtractString(data, 'resolution') != 'retry';

-- A task that was retried or resolved ends more than once: its last end is what a trace shows.
CREATE OR REPLACE VIEW traces AS
SELECT
    r.run_id AS run_id, r.tenant AS tenant, r.session_id AS session_id, r.epoch AS epoch,
    r.principal AS user,
    r.intent AS intent, r.workflow_type AS workflow_type, r.capability_id AS capability_id,
    r.context AS initial_context,
    r.executed_path AS executed_path, r.decisions AS decisions,
    t.task_results AS task_results,
    r.status = 'completed' AS success,
    t.error_type AS error_type, r.error_code AS error_code,
    r.exploratory AS exploratory,
    r.started_at AS started_at, r.ended_at AS ended_at, r.duration_ms AS duration_ms,
    ifNull(nullIf(p.priority, 0), 0.5) AS priority,
    r.partition AS partition, r.log_offset AS log_offset
FROM runs AS r
LEFT JOIN
(
    SELECT
        tenant, session_id, epoch, run_id,
        arrayMap(row -> row.2, arraySort(row -> row.1, groupArray((log_offset, result_of_task)))) AS task_results,
        argMinIf(error_type, log_offset, error_type != '') AS error_type
    FROM
    (
        SELECT
            tenant, session_id, epoch, run_id, log_offset, error_type,
            CAST(
                (task_id, concat(tool_server, ':', tool_name), arguments, result, status = 'completed', status,
                 error_type, duration_ms, layer, mocked),
                'Tuple(task_id String, tool String, args String, result String, success Bool, status String,
                 error_type String, duration_ms Float64, layer UInt16, mocked Bool)'
            ) AS result_of_task
        FROM tasks
        WHERE final
        ORDER BY log_offset DESC
        LIMIT 1 BY tenant, session_id, epoch, run_id, task_id
    )
    GROUP BY tenant, session_id, epoch, run_id
) AS t ON t.tenant = r.tenant AND t.session_id = r.session_id AND t.epoch = r.epoch AND t.run_id = r.run_id
LEFT JOIN (SELECT tenant, session_id, epoch, run_id, priority FROM trace_priorities FINAL) AS p
    ON p.tenant = r.tenant AND p.session_id = r.session_id AND p.epoch = r.epoch AND p.run_id = r.run_id
WHERE r.status IN ('completed', 'failed', 'aborted');
