-- The latest runs that ended in sessions that somebody named, with the values that they took and gave.
SELECT
    r.session_id AS session_id, r.epoch AS epoch, r.run_id AS run_id, r.capability_id AS capability_id,
    if(q.told = '', r.intent, q.told) AS request,
    if(length(r.initial_context) > {value_bytes:UInt32}, '', r.initial_context) AS context,
    arrayMap(
        task -> (
            task.task_id, task.tool,
            if(length(task.args) > {value_bytes:UInt32}, '', task.args),
            if(length(task.result) > {value_bytes:UInt32}, '', task.result)
        ),
        r.task_results
    ) AS tasks,
    toInt64(toUnixTimestamp64Milli(assumeNotNull(r.ended_at))) AS ended_ms
FROM traces AS r
LEFT JOIN
(
    SELECT tenant, session_id, epoch, run_id, any(request) AS told
    FROM runs_raw
    WHERE tenant = {tenant:String} AND type = 'run.started' AND session_id != run_id
    GROUP BY tenant, session_id, epoch, run_id
) AS q ON q.tenant = r.tenant AND q.session_id = r.session_id AND q.epoch = r.epoch AND q.run_id = r.run_id
WHERE r.tenant = {tenant:String} AND r.session_id != r.run_id
    AND r.ended_at >= parseDateTime64BestEffort({since:String}, 6, 'UTC')
    AND r.ended_at < parseDateTime64BestEffort({until:String}, 6, 'UTC')
ORDER BY r.ended_at DESC, r.log_offset DESC
LIMIT {most:UInt32}
