-- One row for each time that a run was scored; the view shows the last of each name.
--
-- epoch      The life of the session that took the score; a late one may be a later life than the run's.
-- known      Whether that life had the run. If not, the run is the newest of its name in an earlier life.
CREATE TABLE IF NOT EXISTS scores_raw
(
    partition UInt16,
    log_offset UInt64 CODEC(Delta, ZSTD(1)),
    tenant LowCardinality(String),
    session_id String CODEC(ZSTD(1)),
    epoch UInt64 CODEC(Delta, ZSTD(1)),
    run_id String CODEC(ZSTD(1)),
    seq UInt32 CODEC(Delta, ZSTD(1)),
    name LowCardinality(String),
    number Nullable(Float64),
    category Nullable(String),
    boolean Nullable(Bool),
    source LowCardinality(String),
    comment String CODEC(ZSTD(3)),
    known Bool,
    principal String CODEC(ZSTD(1)),
    scored_at DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree
ORDER BY (tenant, session_id, run_id, epoch, partition, log_offset)
SETTINGS non_replicated_deduplication_window = 10000;

CREATE MATERIALIZED VIEW IF NOT EXISTS scores_from_events TO scores_raw AS
SELECT
    partition, log_offset, tenant, session_id, epoch, run_id, seq,
    JSONExtractString(data, 'name') AS name,
    JSONExtract(data, 'number', 'Nullable(Float64)') AS number,
    JSONExtract(data, 'category', 'Nullable(String)') AS category,
    JSONExtract(data, 'boolean', 'Nullable(Bool)') AS boolean,
    JSONExtractString(data, 'source') AS source,
    JSONExtractString(data, 'comment') AS comment,
    JSONExtractBool(data, 'known') AS known,
    principal, occurred_at AS scored_at
FROM events_raw
WHERE type = 'run.scored';

-- Aggregates that do not mind a row twice, so no FINAL. The columns of a score go together in a tuple: argMax
-- alone would pass over the NULLs of a newer score of another kind. run_epoch is NULL where no such run began.
CREATE OR REPLACE VIEW scores AS
SELECT
    tenant, session_id, run_epoch, run_id, name,
    last.1 AS number, last.2 AS category, last.3 AS boolean, last.4 AS source, last.5 AS comment,
    last.6 AS principal, last.7 AS scored_at, times, last.8 AS epoch, last.9 AS seq, partition, log_offset
FROM
(
    SELECT
        s.tenant AS tenant, s.session_id AS session_id, r.run_epoch AS run_epoch, s.run_id AS run_id, s.name AS name,
        argMax(
            (s.number, s.category, s.boolean, s.source, s.comment, s.principal, s.scored_at, s.epoch, s.seq),
            s.log_offset
        ) AS last,
        uniqExact(s.log_offset) AS times,
        any(s.partition) AS partition,
        max(s.log_offset) AS log_offset
    FROM (SELECT *, if(known, epoch, toUInt64(greatest(epoch, 1) - 1)) AS newest FROM scores_raw) AS s
    ASOF LEFT JOIN
    (
        SELECT DISTINCT tenant, session_id, run_id, epoch AS began, toNullable(epoch) AS run_epoch
        FROM runs_raw
        WHERE type = 'run.started'
    ) AS r ON r.tenant = s.tenant AND r.session_id = s.session_id AND r.run_id = s.run_id AND s.newest >= r.began
    GROUP BY s.tenant, s.session_id, r.run_epoch, s.run_id, s.name
);

-- A trace with what it was judged to be worth, which may come long after its end.
CREATE OR REPLACE VIEW traces AS
SELECT
    r.run_id AS run_id, r.tenant AS tenant, r.session_id AS session_id, r.epoch AS epoch,
    r.principal AS user,
    r.intent AS intent, r.workflow_type AS workflow_type, r.capability_id AS capability_id,
    r.context AS initial_context,
    r.executed_path AS executed_path, r.decisions AS decisions,
    t.task_results AS task_results,
    r.status = 'completed' AS success,
    t.error_type AS error_type, r.error_code AS error_code,
    r.exploratory AS exploratory,
    r.started_at AS started_at, r.ended_at AS ended_at, r.duration_ms AS duration_ms,
    s.scores AS scores,
    ifNull(nullIf(p.priority, 0), 0.5) AS priority,
    r.partition AS partition, r.log_offset AS log_offset
FROM runs AS r
LEFT JOIN
(
    SELECT
        tenant, session_id, epoch, run_id,
        arrayMap(row -> row.2, arraySort(row -> row.1, groupArray((log_offset, result_of_task)))) AS task_results,
        argMinIf(error_type, log_offset, error_type != '') AS error_type
    FROM
    (
        SELECT
            tenant, session_id, epoch, run_id, log_offset, error_type,
            CAST(
                (task_id, concat(tool_server, ':', tool_name), arguments, result, status = 'completed', status,
                 error_type, duration_ms, layer, mocked),
                'Tuple(task_id String, tool String, args String, result String, success Bool, status String,
                 error_type String, duration_ms Float64, layer UInt16, mocked Bool)'
            ) AS result_of_task
        FROM tasks
        WHERE final
        ORDER BY log_offset DESC
        LIMIT 1 BY tenant, session_id, epoch, run_id, task_id
    )
    GROUP BY tenant, session_id, epoch, run_id
) AS t ON t.tenant = r.tenant AND t.session_id = r.session_id AND t.epoch = r.epoch AND t.run_id = r.run_id
LEFT JOIN
(
    SELECT
        tenant, session_id, assumeNotNull(run_epoch) AS of_epoch, run_id,
        arraySort(row -> row.1, groupArray(CAST(
            (name, number, category, boolean, source),
            'Tuple(name String, number Nullable(Float64), category Nullable(String), boolean Nullable(Bool),
             source String)'
        ))) AS scores
    FROM scores
    WHERE run_epoch IS NOT NULL
    GROUP BY tenant, session_id, of_epoch, run_id
) AS s ON s.tenant = r.tenant AND s.session_id = r.session_id AND s.of_epoch = r.epoch AND s.run_id = r.run_id
LEFT JOIN (SELECT tenant, session_id, epoch, run_id, priority FROM trace_priorities FINAL) AS p
    ON p.tenant = r.tenant AND p.session_id = r.session_id AND p.epoch = r.epoch AND p.run_id = r.run_id
WHERE r.status IN ('completed', 'failed', 'aborted');
