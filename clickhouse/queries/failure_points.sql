-- Where runs fail: workflow, task and error, the most frequent first.
--
-- A task counts at its last end, so not where it was retried and completed after all; `unknown` is an unsafe call
-- of which nobody knows whether it happened.
-- share is the part of all runs of the workflow that failed there.
SELECT
    workflow,
    task_id,
    concat(tool_server, ':', tool_name) AS tool,
    status,
    error_type,
    error_code,
    uniqExact(run_id, epoch) AS failed_runs,
    round(failed_runs / any(all_runs), 3) AS share,
    max(ended_at) AS last_at,
    argMax(error_message, ended_at) AS last_message
FROM
(
    SELECT tenant, session_id, epoch, run_id, task_id, tool_server, tool_name, status, error_type, error_code,
        error_message, ended_at
    FROM
    (
        -- Of tasks that never failed nothing more is read: they are most, and the last end of each takes a sort.
        SELECT * FROM tasks
        WHERE final AND (tenant, session_id, epoch, run_id, task_id) IN
        (
            SELECT tenant, session_id, epoch, run_id, task_id
            FROM tasks
            WHERE final AND status IN ('failed', 'unknown')
        )
        ORDER BY log_offset DESC
        LIMIT 1 BY tenant, session_id, epoch, run_id, task_id
    )
    WHERE status IN ('failed', 'unknown')
) AS t
INNER JOIN
(
    SELECT tenant, session_id, epoch, run_id, if(name != '', name, workflow_type) AS workflow,
        count() OVER (PARTITION BY workflow) AS all_runs
    FROM runs
) AS r USING (tenant, session_id, epoch, run_id)
GROUP BY workflow, task_id, tool, status, error_type, error_code
ORDER BY failed_runs DESC, workflow, task_id, error_code
LIMIT 100
