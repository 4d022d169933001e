-- How capabilities went: runs that ended by themselves, share of successes, paths, decisions; most used first.
--
-- dominant_path is the path that most of the runs took; paths counts the different ones.
-- saved_ms is what speculation saved a run at the median.
SELECT
    capability_id,
    any(workflow_type) AS workflow,
    count() AS runs,
    round(countIf(status = 'completed') / runs, 3) AS success_rate,
    uniqExact(executed_path) AS paths,
    arrayStringConcat(topK(1)(executed_path)[1], ' ') AS dominant_path,
    round(median(duration_ms), 1) AS median_ms,
    round(median(saved_ms), 1) AS median_saved_ms,
    max(started_at) AS last_at
FROM capability_runs
WHERE status IN ('completed', 'failed')
GROUP BY tenant, capability_id
ORDER BY runs DESC, capability_id
