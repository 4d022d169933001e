-- Which tools run together: pairs of tools that were called in the same run, the most frequent first.
--
-- then_share is how often the second one came in a later layer than the first; share is the part of the
-- runs of the rarer of the two that had both. Of a run that was begun anew all attempts count as one call.
WITH called AS
(
    SELECT
        tenant, session_id, epoch, run_id,
        concat(tool_server, ':', tool_name) AS tool,
        min(layer) AS first_layer
    FROM tasks
    WHERE status != 'skipped'
    GROUP BY tenant, session_id, epoch, run_id, tool
),
totals AS
(
    SELECT tenant, tool, count() AS runs FROM called GROUP BY tenant, tool
)
SELECT
    pairs.tool AS tool,
    pairs.other AS other_tool,
    pairs.runs AS runs_together,
    round(pairs.runs / least(one.runs, two.runs), 3) AS share,
    round(pairs.completed / pairs.runs, 3) AS success_rate,
    round(pairs.later / pairs.runs, 3) AS then_share
FROM
(
    SELECT
        a.tenant AS tenant, a.tool AS tool, b.tool AS other,
        count() AS runs,
        countIf(r.status = 'completed') AS completed,
        countIf(b.first_layer > a.first_layer) AS later
    FROM called AS a
    INNER JOIN called AS b USING (tenant, session_id, epoch, run_id)
    INNER JOIN runs AS r USING (tenant, session_id, epoch, run_id)
    WHERE a.tool < b.tool AND r.status IN ('completed', 'failed')
    GROUP BY tenant, tool, other
) AS pairs
INNER JOIN totals AS one ON one.tenant = pairs.tenant AND one.tool = pairs.tool
INNER JOIN totals AS two ON two.tenant = pairs.tenant AND two.tool = pairs.other
ORDER BY runs_together DESC, tool, other_tool
LIMIT 200
