-- The latest runs that ended in sessions that somebody named, with every call that they made.
--
-- The time of a call is that of its tool, however early it began.
SELECT
    r.session_id AS session_id, r.epoch AS epoch, r.capability_id AS capability_id,
    if(q.told = '', r.intent, q.told) AS request,
    if(length(r.initial_context) > {value_bytes:UInt32}, '', r.initial_context) AS context,
    c.calls AS calls,
    toInt64(toUnixTimestamp64Milli(r.started_at)) AS started_ms,
    toInt64(toUnixTimestamp64Milli(assumeNotNull(r.ended_at))) AS ended_ms
FROM traces AS r
LEFT JOIN
(
    SELECT tenant, session_id, epoch, run_id, any(request) AS told
    FROM runs_raw
    WHERE tenant = {tenant:String} AND type = 'run.started' AND session_id != run_id
    GROUP BY tenant, session_id, epoch, run_id
) AS q ON q.tenant = r.tenant AND q.session_id = r.session_id AND q.epoch = r.epoch AND q.run_id = r.run_id
LEFT JOIN
(
    SELECT
        tenant, session_id, epoch, run_id,
        arrayMap(row -> row.2, arraySort(row -> row.1, groupArray((log_offset, (
            task_id, concat(tool_server, ':', tool_name),
            if(length(arguments) > {value_bytes:UInt32}, '', arguments),
            if(length(result) > {value_bytes:UInt32}, '', result),
            if(tool_ms > 0, tool_ms, duration_ms)
        ))))) AS calls
    FROM
    (
        SELECT tenant, session_id, epoch, run_id, log_offset, task_id, tool_server, tool_name, arguments, result,
            tool_ms, duration_ms
        FROM tasks
        WHERE final AND status != 'skipped' AND tenant = {tenant:String} AND session_id != run_id
        ORDER BY log_offset DESC
        LIMIT 1 BY tenant, session_id, epoch, run_id, task_id
    )
    GROUP BY tenant, session_id, epoch, run_id
) AS c ON c.tenant = r.tenant AND c.session_id = r.session_id AND c.epoch = r.epoch AND c.run_id = r.run_id
WHERE r.tenant = {tenant:String} AND r.session_id != r.run_id
    AND r.ended_at >= parseDateTime64BestEffort({since:String}, 6, 'UTC')
    AND r.ended_at < parseDateTime64BestEffort({until:String}, 6, 'UTC')
ORDER BY r.ended_at DESC, r.log_offset DESC
LIMIT {most:UInt32}
