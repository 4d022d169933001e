-- Runs that training has most to learn from: their end was not what is usual for the tools that they called.
--
-- A run that took a path of its own has 1; one that ended as all such runs do has little; one that no
-- training has looked at yet is left out.
SELECT
    tenant, session_id, run_id, priority, success,
    arrayStringConcat(arrayMap(task -> task.tool, task_results), ' → ') AS path,
    ended_at
FROM traces
WHERE (tenant, session_id, epoch, run_id) IN (SELECT tenant, session_id, epoch, run_id FROM trace_priorities)
ORDER BY priority DESC, ended_at DESC, run_id
LIMIT 1000
