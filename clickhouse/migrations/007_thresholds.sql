-- One row for each change of a threshold: learned with a full window, or set and taken back by a person.
--
-- It is a copy of records of the catalog, where only the newest of each context stays.
-- order      A context's changes together, in the order in which they were published.
CREATE TABLE IF NOT EXISTS thresholds_raw
(
    partition UInt16,
    log_offset UInt64 CODEC(Delta, ZSTD(1)),
    tenant LowCardinality(String),
    context_key String CODEC(ZSTD(1)),
    level LowCardinality(String),
    user String CODEC(ZSTD(1)),
    domain String CODEC(ZSTD(1)),
    workflow_type LowCardinality(String),
    source LowCardinality(String),
    previous Nullable(Float64),
    value Nullable(Float64),
    ema Nullable(Float64),
    success_rate Nullable(Float64),
    windows UInt32,
    outcomes UInt64 CODEC(Delta, ZSTD(1)),
    state LowCardinality(String),
    reason LowCardinality(String),
    principal String CODEC(ZSTD(1)),
    changed_at DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    INDEX by_time changed_at TYPE minmax GRANULARITY 4
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(changed_at)
ORDER BY (tenant, context_key, partition, log_offset)
SETTINGS non_replicated_deduplication_window = 10000;

-- The projection publishes a window's change again after a crash: the outcomes it rests on tell which it is.
CREATE OR REPLACE VIEW thresholds AS
SELECT
    tenant, context_key, level, user, domain, workflow_type, source, previous, value, ema, success_rate, windows,
    outcomes, state, reason, principal, changed_at, partition, log_offset
FROM thresholds_raw FINAL
ORDER BY log_offset DESC
LIMIT 1 BY tenant, context_key, source, outcomes, if(source = 'manual', log_offset, 0);
