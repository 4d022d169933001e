-- Which tools take longest: the time that the tool itself took, over all attempts that called it.
--
-- A result that was served twice (`repeat`) is one call. waited_ms is what runs waited for it in all: less
-- than the tools took where speculation helped. Of a call that did not complete, and of one that somebody said
-- was done, nobody knows what the tool took: what its run waited counts.
SELECT
    concat(tool_server, ':', tool_name) AS tool,
    count() AS calls,
    countIf(status != 'completed') AS not_completed,
    round(quantileExact(0.5)(call_ms), 1) AS p50_ms,
    round(quantileExact(0.95)(call_ms), 1) AS p95_ms,
    round(max(call_ms), 1) AS max_ms,
    round(sum(call_ms) / 1000, 3) AS tool_s,
    round(sum(duration_ms), 1) AS waited_ms
FROM
(
    SELECT *, if(status = 'completed' AND tool_ms > 0, tool_ms, duration_ms) AS call_ms
    FROM tasks
    WHERE status != 'skipped' AND served_by != 'repeat' AND call_id != ''
)
GROUP BY tool
ORDER BY p95_ms DESC, tool
LIMIT 100
