-- How much a trace has to teach, in [0.01, 1]; written by training, 0.5 for a trace that has no row.
CREATE TABLE IF NOT EXISTS trace_priorities
(
    tenant LowCardinality(String),
    session_id String,
    epoch UInt64,
    run_id String,
    priority Float64,
    updated_at DateTime64(6, 'UTC')
)
ENGINE = ReplacingMergeTree(updated_at)
ORDER BY (tenant, session_id, epoch, run_id);

-- What learning reads: each run that has ended, with the final attempt of each of its tasks in the order in
-- which they ended. `error_type` is the first that a task failed with. A filter on tenant, session_id,
-- epoch or run_id reaches the tables below; any other one is applied to the joined rows.
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
    )
    GROUP BY tenant, session_id, epoch, run_id
) AS t ON t.tenant = r.tenant AND t.session_id = r.session_id AND t.epoch = r.epoch AND t.run_id = r.run_id
LEFT JOIN (SELECT tenant, session_id, epoch, run_id, priority FROM trace_priorities FINAL) AS p
    ON p.tenant = r.tenant AND p.session_id = r.session_id AND p.epoch = r.epoch AND p.run_id = r.run_id
WHERE r.status IN ('completed', 'failed', 'aborted');
