-- A request may be about several calls, before any of them begins; who answered it says where, and for how much.
ALTER TABLE approvals_raw ADD COLUMN IF NOT EXISTS calls String CODEC(ZSTD(3));
ALTER TABLE approvals_raw ADD COLUMN IF NOT EXISTS omitted UInt32;
ALTER TABLE approvals_raw ADD COLUMN IF NOT EXISTS computed Bool;
ALTER TABLE approvals_raw ADD COLUMN IF NOT EXISTS via LowCardinality(String);

ALTER TABLE approvals_from_events MODIFY QUERY SELECT
    partition, log_offset, tenant, session_id, epoch, run_id,
    JSONExtractString(data, 'approval_id') AS approval_id, type,
    if(type = 'approval.requested', 'open', substring(type, length('approval.') + 1)) AS status,
    occurred_at, principal, task_id, tool_server, tool_name,
    JSONExtractString(data, 'description') AS description,
    JSONExtractRaw(data, 'arguments') AS arguments,
    JSONExtractString(data, 'effect') AS effect,
    JSONExtract(data, 'touches', 'Array(String)') AS touches,
    JSONExtractString(data, 'code') AS code,
    JSONExtractString(data, 'message') AS message,
    parseDateTime64BestEffortOrNull(JSONExtractString(data, 'expires_at'), 6, 'UTC') AS expires_at,
    JSONExtractString(data, 'decided_by') AS decided_by,
    JSONExtractString(data, 'reason') AS reason,
    JSONExtractRaw(data, 'calls') AS calls,
    toUInt32(JSONExtractUInt(data, 'omitted')) AS omitted,
    JSONExtractBool(data, 'computed') AS computed,
    JSONExtractString(data, 'via') AS via
FROM events_raw
WHERE type IN ('approval.requested', 'approval.granted', 'approval.rejected', 'approval.expired');

-- Aggregates that do not mind a row twice, so no FINAL.
CREATE OR REPLACE VIEW approvals AS
SELECT
    a.tenant AS tenant, a.session_id AS session_id, a.epoch AS epoch, a.run_id AS run_id,
    a.approval_id AS approval_id,
    argMax(a.status, a.log_offset) AS status,
    any(a.task_id) AS task_id, any(a.tool_server) AS tool_server, any(a.tool_name) AS tool_name,
    any(a.principal) AS principal,
    anyIf(a.description, a.type = 'approval.requested') AS description,
    anyIf(a.arguments, a.type = 'approval.requested') AS arguments,
    anyIf(a.effect, a.type = 'approval.requested') AS effect,
    anyIf(a.touches, a.type = 'approval.requested') AS touches,
    anyIf(a.code, a.type = 'approval.requested') AS code,
    anyIf(a.message, a.type = 'approval.requested') AS message,
    anyIf(a.calls, a.type = 'approval.requested') AS calls,
    anyIf(a.omitted, a.type = 'approval.requested') AS omitted,
    min(a.occurred_at) AS requested_at,
    anyIf(a.expires_at, a.type = 'approval.requested') AS expires_at,
    if(status = 'open', NULL, max(a.occurred_at)) AS settled_at,
    argMax(a.decided_by, a.log_offset) AS decided_by,
    argMax(a.reason, a.log_offset) AS reason,
    argMax(a.computed, a.log_offset) AS computed,
    argMax(a.via, a.log_offset) AS via,
    any(a.partition) AS partition,
    max(a.log_offset) AS log_offset
FROM approvals_raw AS a
GROUP BY a.tenant, a.session_id, a.epoch, a.run_id, a.approval_id;
