-- What episodic memory keeps: one row for each event that ends a speculation or a task, or makes a decision.
-- The context of an episode is its run's; the view `episodes` joins it and is made with the limits in force (`retention.py`).
--
-- success    NULL where nobody knows the truth, or an end says nothing about the prediction (a speculation
--            that a write invalidated was neither right nor wrong).
-- partition  A day: episodes are dropped by whole days. The limit of 90 days keeps an old log that is read
--            again from beginning more partitions in one batch than ClickHouse takes (100).
-- order      Memory reads the newest of one tenant.
CREATE TABLE IF NOT EXISTS episodes_raw
(
    partition UInt16,
    log_offset UInt64 CODEC(Delta, ZSTD(1)),
    tenant LowCardinality(String),
    session_id String CODEC(ZSTD(1)),
    epoch UInt64 CODEC(Delta, ZSTD(1)),
    run_id String CODEC(ZSTD(1)),
    seq UInt32,
    event_type LowCardinality(String),
    task_id String CODEC(ZSTD(1)),
    timestamp DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    tool_id LowCardinality(String),
    success Nullable(Bool),
    confidence Nullable(Float64),
    details String CODEC(ZSTD(3))
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMMDD(timestamp)
ORDER BY (tenant, timestamp, session_id, epoch, partition, log_offset)
TTL toDateTime(timestamp) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS episodes_from_events TO episodes_raw AS
WITH
    startsWith(type, 'speculation.') AS speculated,
    startsWith(type, 'task.') AND (type != 'task.resolved' OR JSONExtractBool(data, 'late')) AS worked,
    startsWith(type, 'approval.') OR startsWith(JSONExtractString(data, 'decided_by'), 'person:') AS by_person,
    concat(JSONExtractString(data, 'fate'), JSONExtractString(data, 'resolution')) AS end,
    JSONExtractString(data, 'reason') AS reason,
    multiIf(
        type = 'decision.made', JSONExtractString(data, 'choice'),
        type = 'task.resolved', end,
        splitByChar('.', type)[2]
    ) AS action
SELECT
    partition, log_offset, tenant, session_id, epoch, run_id, seq,
    multiIf(speculated, 'speculation_start', worked, 'task_complete', by_person, 'hil_decision', 'ail_decision')
        AS event_type,
    task_id,
    occurred_at AS timestamp,
    JSONExtractString(data, 'tool') AS tool_id,
    multiIf(
        type = 'task.completed' OR end IN ('served', 'done'), CAST(true, 'Nullable(Bool)'),
        type IN ('task.failed', 'speculation.diverged') OR end IN ('failed', 'not_done'), false,
        speculated AND reason IN ('unused', 'expired', 'branch_not_taken'), false,
        NULL
    ) AS success,
    JSONExtract(data, 'confidence', 'Nullable(Float64)') AS confidence,
    multiIf(
        speculated,
        toJSONString(CAST(
            ((if(type = 'speculation.ended', reason, 'diverged'), success), tuple(JSONExtractFloat(data, 'tool_ms'))),
            'Tuple(prediction Tuple(reasoning String, was_correct Nullable(Bool)), result Tuple(execution_time_ms Float64))'
        )),
        worked,
        toJSONString(CAST(
            tuple((
                JSONExtractString(data, 'preview'),
                JSONExtractString(data, 'error', 'code'),
                JSONExtractFloat(data, 'duration_ms')
            )),
            'Tuple(result Tuple(output String, error String, execution_time_ms Float64))'
        )),
        toJSONString(CAST(
            tuple((if(by_person, 'hil', 'ail'), action, reason)),
            'Tuple(decision Tuple(type String, action String, reasoning String))'
        ))
    ) AS details
FROM events_raw
WHERE
    type IN (
        'speculation.ended', 'speculation.diverged', 'task.completed', 'task.failed', 'task.unknown', 'task.resolved',
        'decision.made', 'run.replanned', 'run.retried', 'approval.granted', 'approval.rejected', 'approval.expired'
    )
    AND ifNull(JSONExtract(data, 'final', 'Nullable(Bool)'), true)
    AND NOT JSONExtractBool(data, 'mocked')
    AND occurred_at > now() - INTERVAL 90 DAY;
