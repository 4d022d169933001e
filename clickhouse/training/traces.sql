-- One row for each run that has ended, in the order in which they ended in their partition.
--
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
    success, ifNull(error_type, '') AS error, error_code,
    exploratory, scores, initial_context,
    cityHash64(
        capability_id, arraySort(arrayMap(task -> (task.tool, task.args), task_results))
    ) AS group,
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
    task_results AS tasks
FROM traces AS r
LEFT JOIN
(
    SELECT tenant, session_id, epoch, run_id, any(request) AS told
    FROM runs_raw
    WHERE type = 'run.started' AND request != '' AND ({tenant:String} = '' OR tenant = {tenant:String})
    GROUP BY tenant, session_id, epoch, run_id
) AS q ON q.tenant = r.tenant AND q.session_id = r.session_id AND q.epoch = r.epoch AND q.run_id = r.run_id
WHERE ({tenant:String} = '' OR r.tenant = {tenant:String})
    AND ended_at >= parseDateTime64BestEffort({since:String}, 6, 'UTC')
    AND ended_at < parseDateTime64BestEffort({until:String}, 6, 'UTC')
ORDER BY partition, log_offset, run_id
