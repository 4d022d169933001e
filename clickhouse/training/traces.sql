-- One row for each run that has ended, in the order in which they ended in their partition.
--
-- group  Near-duplicates: the same capability called with the same arguments, in whatever order its tasks ended.
-- side   0 training, 1 validation, 2 test; by group and seed alone, so a trace that is exported again, with
--        others that came since, lies where it lay.
SELECT
    tenant, session_id, epoch, run_id, partition, log_offset,
    started_at, ended_at, duration_ms,
    intent, workflow_type, capability_id,
    success, ifNull(error_type, '') AS error, error_code,
    exploratory, priority, scores, initial_context,
    cityHash64(
        capability_id, arraySort(arrayMap(task -> (task.tool, task.args), task_results))
    ) AS group,
    toUInt8(multiIf(
        cityHash64(group, toInt64({seed:Int64})) / 18446744073709551616. < {test:Float64}, 2,
        cityHash64(group, toInt64({seed:Int64})) / 18446744073709551616. < {test:Float64} + {validation:Float64}, 1,
        0
    )) AS side,
    task_results AS tasks
FROM traces
WHERE ({tenant:String} = '' OR tenant = {tenant:String})
    AND ended_at >= parseDateTime64BestEffort({since:String}, 6, 'UTC')
    AND ended_at < parseDateTime64BestEffort({until:String}, 6, 'UTC')
ORDER BY partition, log_offset, run_id
