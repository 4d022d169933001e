-- An attempt whose outcome was unknown until somebody settled it ended twice, and is one row: its first end says
-- what was called, how and for how long, its last one what came of it.
--
-- first part   What ended once, as it is stored.
-- second part  What may have ended twice: an unknown outcome, and a settlement (`resolutions_from_events`), which
--              has neither a hash of arguments nor a time of its result. An attempt that failed before it began
--              looks the same; it is there alone. They are few and found by narrow columns, so only they are
--              aggregated: times, tools and runs that a query names still bound what is read of all others.
--              Aggregates that do not mind a row twice, so no FINAL.
CREATE OR REPLACE VIEW tasks AS
SELECT
    tenant, session_id, epoch, run_id, task_id, attempt, final, layer, call_id, arguments, result, mocked,
    tool_server, tool_name, status, error_type, error_code, error_message, speculable, served_by, as_of,
    started_at, ended_at, duration_ms, tool_ms, saved_ms, arguments_hash, argument_pattern, result_hash, result_bytes,
    seq, partition, log_offset
FROM tasks_raw FINAL
WHERE NOT (status = 'unknown' OR status IN ('completed', 'failed') AND arguments_hash = '' AND as_of IS NULL)
UNION ALL
SELECT
    t.tenant AS tenant, t.session_id AS session_id, t.epoch AS epoch, t.run_id AS run_id, t.task_id AS task_id,
    t.attempt AS attempt,
    argMax(t.final, t.log_offset) AS final,
    argMin(t.layer, t.log_offset) AS layer,
    argMin(t.call_id, t.log_offset) AS call_id,
    argMin(t.arguments, t.log_offset) AS arguments,
    argMax(t.result, t.log_offset) AS result,
    argMin(t.mocked, t.log_offset) AS mocked,
    toLowCardinality(argMin(t.tool_server, t.log_offset)) AS tool_server,
    toLowCardinality(argMin(t.tool_name, t.log_offset)) AS tool_name,
    toLowCardinality(argMax(t.status, t.log_offset)) AS status,
    toLowCardinality(argMax(t.error_type, t.log_offset)) AS error_type,
    toLowCardinality(argMax(t.error_code, t.log_offset)) AS error_code,
    argMax(t.error_message, t.log_offset) AS error_message,
    argMin(t.speculable, t.log_offset) AS speculable,
    toLowCardinality(argMin(t.served_by, t.log_offset)) AS served_by,
    argMax(t.as_of, t.log_offset) AS as_of,
    argMin(t.started_at, t.log_offset) AS started_at,
    argMax(t.ended_at, t.log_offset) AS ended_at,
    argMin(t.duration_ms, t.log_offset) AS duration_ms,
    argMin(t.tool_ms, t.log_offset) AS tool_ms,
    argMax(t.saved_ms, t.log_offset) AS saved_ms,
    argMin(t.arguments_hash, t.log_offset) AS arguments_hash,
    argMin(t.argument_pattern, t.log_offset) AS argument_pattern,
    argMax(t.result_hash, t.log_offset) AS result_hash,
    argMax(t.result_bytes, t.log_offset) AS result_bytes,
    argMax(t.seq, t.log_offset) AS seq,
    any(t.partition) AS partition,
    max(t.log_offset) AS log_offset
FROM tasks_raw AS t
WHERE t.status = 'unknown' OR t.status IN ('completed', 'failed') AND t.arguments_hash = '' AND t.as_of IS NULL
GROUP BY t.tenant, t.session_id, t.epoch, t.run_id, t.task_id, t.attempt;
