-- How runs were judged: by workflow and name of the score, the most often scored first.
--
-- A run counts once for each name, with its newest score. mean, low and high are of numbers, true_share of
-- booleans, usual is the most frequent category.
SELECT
    if(r.name != '', r.name, r.workflow_type) AS workflow,
    s.name AS score,
    count() AS runs,
    round(avg(s.number), 3) AS mean,
    min(s.number) AS low,
    max(s.number) AS high,
    round(avg(s.boolean), 3) AS true_share,
    topK(1)(s.category)[1] AS usual,
    arrayStringConcat(arraySort(groupUniqArray(s.source)), ' ') AS sources,
    max(s.scored_at) AS last_at
FROM scores AS s
INNER JOIN runs AS r
    ON r.tenant = s.tenant AND r.session_id = s.session_id AND r.epoch = s.run_epoch AND r.run_id = s.run_id
GROUP BY workflow, score
ORDER BY runs DESC, workflow, score
LIMIT 100
