-- How thresholds moved: each full window of each context, and what people set, the newest first.
--
-- reason is why a window changed it: too_cautious (success above 0.90) lowers it, too_bold (below 0.80) raises
-- it, tuned moves it a little, kept leaves it.
SELECT
    changed_at,
    context_key,
    source,
    round(previous, 4) AS before,
    round(value, 4) AS after,
    round(success_rate, 2) AS window_success_rate,
    round(ema, 4) AS average,
    outcomes AS outcomes_so_far,
    state,
    if(source = 'manual', concat(reason, ' by ', principal), reason) AS why
FROM thresholds
ORDER BY changed_at DESC, context_key, log_offset DESC
LIMIT 1000
