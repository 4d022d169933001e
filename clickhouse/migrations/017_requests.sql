-- What a client said that the user wants, beyond the run that it started: prediction learns from it.
ALTER TABLE runs_raw ADD COLUMN IF NOT EXISTS request String CODEC(ZSTD(3)) AFTER intent;

ALTER TABLE runs_from_events MODIFY QUERY SELECT
    partition, log_offset, tenant, session_id, epoch, run_id, seq, type,
    if(type = 'run.started', 'running', substring(type, length('run.') + 1)) AS status,
    occurred_at, principal,
    JSONExtractString(data, 'name') AS name,
    JSONExtractString(data, 'intent') AS intent,
    JSONExtractString(data, 'request') AS request,
    JSONExtractString(data, 'workflow_type') AS workflow_type,
    JSONExtractString(data, 'capability_id') AS capability_id,
    JSONExtractRaw(data, 'context') AS context,
    JSONExtractString(data, 'speculation') AS speculation,
    JSONExtractBool(data, 'exploratory') AS exploratory,
    toUInt16(JSONExtractUInt(data, 'layers')) AS layers,
    toUInt32(JSONExtractUInt(data, 'tasks')) AS tasks,
    JSONExtract(data, 'executed_path', 'Array(String)') AS executed_path,
    JSONExtract(data, 'decisions', 'Map(String, String)') AS decisions,
    toUInt32(JSONExtractUInt(data, 'counts', 'completed')) AS completed,
    toUInt32(JSONExtractUInt(data, 'counts', 'failed')) AS failed,
    toUInt32(JSONExtractUInt(data, 'counts', 'skipped')) AS skipped,
    toUInt32(JSONExtractUInt(data, 'counts', 'unknown')) AS unknown,
    toUInt32(JSONExtractUInt(data, 'counts', 'hits')) AS hits,
    toUInt32(JSONExtractUInt(data, 'counts', 'misses')) AS misses,
    toUInt32(JSONExtractUInt(data, 'counts', 'wasted')) AS wasted,
    JSONExtractFloat(data, 'counts', 'saved_ms') AS saved_ms,
    JSONExtractFloat(data, 'duration_ms') AS duration_ms,
    JSONExtractString(data, 'error', 'code') AS error_code,
    JSONExtractString(data, 'error', 'message') AS error_message
FROM events_raw
WHERE type IN ('run.started', 'run.completed', 'run.failed', 'run.aborted');
