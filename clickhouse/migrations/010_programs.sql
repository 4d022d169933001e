-- A run of a program gets its tasks after its start: a row of its own in runs_raw.
CREATE MATERIALIZED VIEW IF NOT EXISTS expansions_from_events TO runs_raw AS
SELECT
    partition, log_offset, tenant, session_id, epoch, run_id, seq, type, 'running' AS status,
    occurred_at, principal,
    JSONExtractString(data, 'workflow_type') AS workflow_type,
    JSONExtractString(data, 'capability_id') AS capability_id,
    toUInt16(JSONExtractUInt(data, 'layers')) AS layers,
    toUInt32(JSONExtractUInt(data, 'tasks')) AS tasks
FROM events_raw
WHERE type = 'run.expanded';

CREATE OR REPLACE VIEW runs AS
SELECT
    r.tenant AS tenant, r.session_id AS session_id, r.epoch AS epoch, r.run_id AS run_id,
    argMax(r.status, r.log_offset) AS status,
    anyIf(r.name, r.type = 'run.started') AS name,
    anyIf(r.intent, r.type = 'run.started') AS intent,
    argMaxIf(r.workflow_type, r.log_offset, r.type IN ('run.started', 'run.expanded')) AS workflow_type,
    argMaxIf(r.capability_id, r.log_offset, r.type IN ('run.started', 'run.expanded')) AS capability_id,
    anyIf(r.principal, r.type = 'run.started') AS principal,
    anyIf(r.context, r.type = 'run.started') AS context,
    anyIf(r.speculation, r.type = 'run.started') AS speculation,
    anyIf(r.exploratory, r.type = 'run.started') AS exploratory,
    argMaxIf(r.layers, r.log_offset, r.type IN ('run.started', 'run.expanded', 'run.replanned')) AS layers,
    argMaxIf(r.tasks, r.log_offset, r.type IN ('run.started', 'run.expanded', 'run.replanned')) AS tasks,
    minIf(r.occurred_at, r.type = 'run.started') AS started_at,
    if(status IN ('running', 'waiting'), NULL, max(r.occurred_at)) AS ended_at,
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
