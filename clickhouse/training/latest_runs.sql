-- The latest runs that ended in sessions that somebody named, with the values that they took and gave, in any
-- order: sorting would hold all values several times.
--
-- chosen    Which runs first, by names and times alone, then what belongs to these: of all that a tenant has, no
--           more contexts and results are held than theirs.
-- PREWHERE  Sound although FINAL picks among rows only afterwards: the columns are of the sorting key, which all
--           versions of a row share. Without it the values of whole granules are read to be thrown away.
-- wanted    What a client told of the request, and not what the run was for.
-- tasks     In the order in which they ended; those too that were skipped, which no call was made for. One that
--           was retried or resolved is there for each of its ends; a resolution, which says nothing of its call,
--           with that of the end that did not know (`tasks` does the same, but would read all values). The time of
--           a call is that of its tool, however early it began.
WITH chosen AS
(
    SELECT session_id, epoch, run_id
    FROM runs
    WHERE tenant = {tenant:String} AND session_id != run_id AND status IN ('completed', 'failed', 'aborted')
        AND ended_at >= parseDateTime64BestEffort({since:String}, 6, 'UTC')
        AND ended_at < parseDateTime64BestEffort({until:String}, 6, 'UTC')
    ORDER BY ended_at DESC, log_offset DESC
    LIMIT {most:UInt32}
)
SELECT
    r.session_id AS session_id, r.epoch AS epoch, r.capability_id AS capability_id,
    if(q.told = '', r.intent, q.told) AS request,
    if(q.told = r.intent, '', q.told) AS wanted,
    if(length(r.context) > {value_bytes:UInt32}, '', r.context) AS context,
    t.tasks AS tasks,
    toUnixTimestamp64Micro(r.started_at) AS started_us,
    toUnixTimestamp64Micro(assumeNotNull(r.ended_at)) AS ended_us,
    r.log_offset AS log_offset
FROM
(
    SELECT * FROM runs WHERE tenant = {tenant:String} AND (session_id, epoch, run_id) IN (SELECT * FROM chosen)
) AS r
LEFT JOIN
(
    SELECT session_id, epoch, run_id, any(request) AS told
    FROM runs_raw
    WHERE tenant = {tenant:String} AND type = 'run.started' AND (session_id, epoch, run_id) IN (SELECT * FROM chosen)
    GROUP BY session_id, epoch, run_id
) AS q ON q.session_id = r.session_id AND q.epoch = r.epoch AND q.run_id = r.run_id
LEFT JOIN
(
    WITH
        unknown = 1 AND status IN ('completed', 'failed') AND arguments_hash = '' AND as_of IS NULL AS resolves,
        if(resolves, asked, arguments) AS said
    SELECT
        session_id, epoch, run_id,
        arrayMap(row -> row.2, arraySort(row -> row.1, groupArray((log_offset, (
            task_id, concat(tool_server, ':', tool_name),
            if(length(said) > {value_bytes:UInt32}, '', said),
            if(length(result) > {value_bytes:UInt32}, '', result),
            status != 'skipped', if(tool_ms > 0, tool_ms, if(resolves, waited_ms, duration_ms))
        ))))) AS tasks
    FROM
    (
        SELECT * FROM tasks_raw FINAL
        PREWHERE tenant = {tenant:String} AND (session_id, epoch, run_id) IN (SELECT * FROM chosen)
        WHERE final
    ) AS e
    LEFT ANY JOIN
    (
        SELECT session_id, epoch, run_id, task_id, attempt, arguments AS asked, duration_ms AS waited_ms, 1 AS unknown
        FROM tasks_raw
        PREWHERE tenant = {tenant:String} AND (session_id, epoch, run_id) IN (SELECT * FROM chosen)
        WHERE status = 'unknown'
    ) AS u USING (session_id, epoch, run_id, task_id, attempt)
    GROUP BY session_id, epoch, run_id
) AS t ON t.session_id = r.session_id AND t.epoch = r.epoch AND t.run_id = r.run_id
