-- Where each context stands: its learned threshold, whether its success rate converged, and since when.
--
-- outcomes_to_converge is how many outcomes it took to come into the range wanted and stay there until now.
SELECT
    tenant,
    context_key,
    round(argMax(value, log_offset), 4) AS threshold,
    round(argMax(ema, log_offset), 4) AS success_rate,
    max(outcomes) AS all_outcomes,
    argMax(state, log_offset) AS state_now,
    maxIf(outcomes, state = 'drifting') AS drifting_until,
    if(state_now = 'converged', arrayMin(arrayFilter(n -> n > drifting_until, groupArray(outcomes))), NULL)
        AS outcomes_to_converge,
    max(changed_at) AS last_changed_at
FROM thresholds
WHERE source = 'learned'
GROUP BY tenant, context_key
ORDER BY all_outcomes DESC, context_key
LIMIT 1000
