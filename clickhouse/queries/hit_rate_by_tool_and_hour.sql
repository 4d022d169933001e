-- How often a call was served by a speculation, by tool and hour; the newest 1,000 rows.
--
-- A hit is a speculation that was served or joined, counted once however often its result was used. A miss is
-- a real call that could have been speculated and found nothing, counted at its final attempt. These are the
-- figures of `pml metrics`, by hour. saved_ms is the latency that the hits saved. Hits of predictions are in
-- hits and not in hit_rate: what nobody predicted is no miss.
SELECT
    hour,
    tool,
    sum(hit) AS hits,
    sum(miss) AS misses,
    if(sum(known) + misses = 0, NULL, round(sum(known) / (sum(known) + misses), 3)) AS hit_rate,
    round(sum(saved), 1) AS saved_ms
FROM
(
    SELECT toStartOfHour(ended_at) AS hour, concat(tool_server, ':', tool_name) AS tool, 1 AS hit, kind != 'prediction' AS known, 0 AS miss, saved_ms AS saved
    FROM speculations
    WHERE fate = 'served'
    UNION ALL
    SELECT toStartOfHour(ended_at), concat(tool_server, ':', tool_name), 0, 0, 1, 0
    FROM tasks
    WHERE served_by = 'call' AND speculable AND final AND call_id != ''
)
GROUP BY hour, tool
ORDER BY hour DESC, tool
LIMIT 1000
