-- What the arguments of each attempt look like (spec story 12.7): the event's JSON, empty where it has none.
ALTER TABLE tasks_raw ADD COLUMN IF NOT EXISTS argument_pattern String CODEC(ZSTD(3));

ALTER TABLE tasks_from_events MODIFY QUERY SELECT
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
    JSONExtractFloat(data, 'saved_ms') AS saved_ms,
    JSONExtractRaw(data, 'argument_pattern') AS argument_pattern
FROM events_raw
WHERE type IN ('task.completed', 'task.failed', 'task.unknown', 'task.skipped');

CREATE OR REPLACE VIEW tasks AS
SELECT
    tenant, session_id, epoch, run_id, task_id, attempt, final, layer, call_id, arguments, result, mocked,
    tool_server, tool_name, status, error_type, error_code, error_message, speculable, served_by, as_of,
    started_at, ended_at, duration_ms, tool_ms, saved_ms, arguments_hash, argument_pattern, result_hash, result_bytes,
    seq, partition, log_offset
FROM tasks_raw FINAL;

-- A trace with what it was judged to be worth, which may come long after its end.
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
    s.scores AS scores,
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
                 error_type, duration_ms, layer, mocked, argument_pattern),
                'Tuple(task_id String, tool String, args String, result String, success Bool, status String,
                 error_type String, duration_ms Float64, layer UInt16, mocked Bool, argument_pattern String)'
            ) AS result_of_task
        FROM tasks
        WHERE final
        ORDER BY log_offset DESC
        LIMIT 1 BY tenant, session_id, epoch, run_id, task_id
    )
    GROUP BY tenant, session_id, epoch, run_id
) AS t ON t.tenant = r.tenant AND t.session_id = r.session_id AND t.epoch = r.epoch AND t.run_id = r.run_id
LEFT JOIN
(
    SELECT
        tenant, session_id, assumeNotNull(run_epoch) AS of_epoch, run_id,
        arraySort(row -> row.1, groupArray(CAST(
            (name, number, category, boolean, source),
            'Tuple(name String, number Nullable(Float64), category Nullable(String), boolean Nullable(Bool),
             source String)'
        ))) AS scores
    FROM scores
    WHERE run_epoch IS NOT NULL
    GROUP BY tenant, session_id, of_epoch, run_id
) AS s ON s.tenant = r.tenant AND s.session_id = r.session_id AND s.of_epoch = r.epoch AND s.run_id = r.run_id
LEFT JOIN (SELECT tenant, session_id, epoch, run_id, priority FROM trace_priorities FINAL) AS p
    ON p.tenant = r.tenant AND p.session_id = r.session_id AND p.epoch = r.epoch AND p.run_id = r.run_id
WHERE r.status IN ('completed', 'failed', 'aborted');
