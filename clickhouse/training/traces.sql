-- One row for each run that has ended, in the order in which they ended in their partition.
--
-- call    What is told of a call (`columns.py`). All calls of a selection are in memory at once, in arrays of their
--         runs: who wants columns names no value, and so none is read but to be hashed.
-- tasks   Of the runs of this time alone, as the view `traces` has them, which would read those of all: of each
--         task its last end, in the order of ends.
-- What training writes (`priority`) is no column: of the same log a later export is the same.
--
-- group  Near-duplicates: the same capability called with the same arguments, in whatever order its tasks ended.
-- request  What the client said that the user wants; else what the run was for.
-- side   0 training, 1 validation, 2 test; by group and seed alone, so a trace that is exported again, with
--        others that came since, lies where it lay. By session and seed, or by time, where that is the split.
SELECT
    r.tenant AS tenant, r.session_id AS session_id, r.epoch AS epoch, r.run_id AS run_id, partition, log_offset,
    started_at, ended_at, duration_ms,
    intent, if(q.told = '', intent, q.told) AS request, workflow_type, capability_id,
    status = 'completed' AS success, c.error AS error, error_code,
    exploratory, s.scores AS scores, context AS initial_context,
    cityHash64(capability_id, arraySort(c.called)) AS group,
    toUInt8(if({split:String} = 'time',
        multiIf(
            ended_at >= parseDateTime64BestEffort({test_from:String}, 6, 'UTC'), 2,
            ended_at >= parseDateTime64BestEffort({validation_from:String}, 6, 'UTC'), 1,
            0
        ),
        multiIf(
            (cityHash64(
                if({split:String} = 'sessions', cityHash64(r.tenant, r.session_id, r.epoch), group),
                toInt64({seed:Int64})
            ) / 18446744073709551616. AS drawn) < {test:Float64}, 2,
            drawn < {test:Float64} + {validation:Float64}, 1,
            0
        )
    )) AS side,
    c.tasks AS tasks
FROM runs AS r
LEFT JOIN
(
    SELECT
        tenant, session_id, epoch, run_id,
        arrayMap(row -> row.2, arraySort(row -> row.1, groupArray((log_offset, told.3)))) AS tasks,
        groupArray((told.1, told.2)) AS called,
        argMinIf(told.3.error_type, log_offset, told.3.error_type != '') AS error
    FROM
    (
        SELECT
            tenant, session_id, epoch, run_id, max(t.log_offset) AS log_offset,
            argMax(
                (concat(tool_server, ':', tool_name) AS tool, cityHash64(arguments) AS args_hash, $call), t.log_offset
            ) AS told
        FROM tasks AS t
        WHERE final AND ({tenant:String} = '' OR tenant = {tenant:String})
            AND (tenant, session_id, epoch, run_id) IN
            (
                SELECT tenant, session_id, epoch, run_id FROM runs_raw
                WHERE ({tenant:String} = '' OR tenant = {tenant:String})
                    AND occurred_at >= parseDateTime64BestEffort({since:String}, 6, 'UTC')
                    AND occurred_at < parseDateTime64BestEffort({until:String}, 6, 'UTC')
            )
        GROUP BY tenant, session_id, epoch, run_id, task_id
    )
    GROUP BY tenant, session_id, epoch, run_id
) AS c ON c.tenant = r.tenant AND c.session_id = r.session_id AND c.epoch = r.epoch AND c.run_id = r.run_id
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
    WHERE run_epoch IS NOT NULL AND ({tenant:String} = '' OR tenant = {tenant:String})
    GROUP BY tenant, session_id, of_epoch, run_id
) AS s ON s.tenant = r.tenant AND s.session_id = r.session_id AND s.of_epoch = r.epoch AND s.run_id = r.run_id
LEFT JOIN
(
    SELECT tenant, session_id, epoch, run_id, any(request) AS told
    FROM runs_raw
    WHERE type = 'run.started' AND request != '' AND ({tenant:String} = '' OR tenant = {tenant:String})
    GROUP BY tenant, session_id, epoch, run_id
) AS q ON q.tenant = r.tenant AND q.session_id = r.session_id AND q.epoch = r.epoch AND q.run_id = r.run_id
WHERE r.status IN ('completed', 'failed', 'aborted') AND ({tenant:String} = '' OR r.tenant = {tenant:String})
    AND ended_at >= parseDateTime64BestEffort({since:String}, 6, 'UTC')
    AND ended_at < parseDateTime64BestEffort({until:String}, 6, 'UTC')
ORDER BY partition, log_offset, run_id
