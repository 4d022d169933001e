-- What speculation saved, by workflow, over runs that have ended.
--
-- saved_ms is the latency that hits saved. It is summed over tasks, some of which ran side by side, so it may
-- be more than the runs became shorter. hits_per_run and mean_run_ms are means over all ended runs.
SELECT
    if(name != '', name, workflow_type) AS workflow,
    count() AS ended_runs,
    sum(hits) AS all_hits,
    sum(misses) AS all_misses,
    sum(wasted) AS all_wasted,
    round(sum(saved_ms), 1) AS all_saved_ms,
    round(all_saved_ms / ended_runs, 1) AS saved_ms_per_run,
    round(avg(duration_ms), 1) AS mean_run_ms
FROM runs
WHERE ended_at IS NOT NULL
GROUP BY workflow
ORDER BY all_saved_ms DESC, workflow
LIMIT 1000
