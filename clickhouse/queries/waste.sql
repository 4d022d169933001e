-- Speculations that nobody used, by tool and reason: how many, and the time that their tools took.
--
-- share is the part of all speculations of that tool which ended so.
SELECT
    concat(tool_server, ':', tool_name) AS tool,
    fate,
    reason,
    count() AS wasted,
    round(sum(tool_ms) / 1000, 3) AS tool_s,
    round(count() / any(ended), 3) AS share
FROM speculations
INNER JOIN
(
    SELECT tool_server, tool_name, count() AS ended FROM speculations GROUP BY tool_server, tool_name
) AS totals USING (tool_server, tool_name)
WHERE fate != 'served'
GROUP BY tool, fate, reason
ORDER BY tool_s DESC, wasted DESC, tool, fate, reason
LIMIT 1000
