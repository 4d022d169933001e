"""The queries of a training set: the traces, and the same as columns of fixed width."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from string import Template

import numpy as np

from pml.clickhouse.training.selection import Split

# Words that repeat: each is a number in the columns, and a place in its vocabulary.
TRACE_WORDS = {
    "tenant": "tenant",
    "workflow_type": "workflow_type",
    "capability": "capability_id",
    "intent": "intent",
    "request": "request",
    "error_type": "error",
    "error_code": "error_code",
}
CALL_WORDS = {
    "tool": "task.tool",
    "call_status": "task.status",
    "call_error_type": "task.error_type",
    "call_pattern": "task.argument_pattern",
}
# What is told of a call: with its values, as the view `traces` has it; of its arguments no more than a hash,
# and how they look only where a call was made: what a person or the permissions refused says nothing of how
# calls with such arguments end.
WITH_VALUES = """CAST(
    (task_id, tool, arguments, result, status = 'completed', status, error_type, duration_ms, layer, mocked,
     argument_pattern),
    'Tuple(task_id String, tool String, args String, result String, success Bool, status String,
     error_type String, duration_ms Float64, layer UInt16, mocked Bool, argument_pattern String)'
)"""
OUTLINED = """CAST(
    (tool, args_hash, status = 'completed', status, error_type, duration_ms, layer, mocked,
     if(call_id = '', '', argument_pattern)),
    'Tuple(tool String, args_hash UInt64, success Bool, status String, error_type String, duration_ms Float64,
     layer UInt16, mocked Bool, argument_pattern String)'
)"""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its expression in ClickHouse, which gives a number of exactly this type of NumPy."""

    expression: str
    dtype: str


def traces_sql(split: Split = "groups", call: str = WITH_VALUES) -> str:
    """One row for each trace; what `--to parquet` writes as it is."""
    traces = Template(_sql("traces.sql")).substitute(call=call)
    if split == "groups":
        return traces
    return f"{_sql('left_out.sql')} FROM ({traces}) ORDER BY partition, log_offset, run_id"


def outlines_sql(split: Split = "groups") -> str:
    """The same without values: they may be many times as large as all else."""
    return traces_sql(split, OUTLINED)


def trace_columns(widths: Mapping[str, int]) -> dict[str, Column]:
    """The columns of a trace; `widths` are the longest session and run ids, in bytes."""
    return {
        **{name: _word(column) for name, column in TRACE_WORDS.items()},
        "session_id": _text("session_id", widths["session_id"]),
        "run_id": _text("run_id", widths["run_id"]),
        "epoch": Column("toUInt64(epoch)", "<u8"),
        "partition": Column("toUInt16(partition)", "<u2"),
        "log_offset": Column("toUInt64(log_offset)", "<u8"),
        "started_at_us": Column("toInt64(toUnixTimestamp64Micro(started_at))", "<i8"),
        "ended_at_us": Column("toInt64(toUnixTimestamp64Micro(assumeNotNull(ended_at)))", "<i8"),
        "duration_ms": Column("toFloat64(duration_ms)", "<f8"),
        "success": Column("toUInt8(success)", "|u1"),
        "exploratory": Column("toUInt8(exploratory)", "|u1"),
        "group": Column("toUInt64(group)", "<u8"),
        "side": Column("toUInt8(side)", "|u1"),
        "calls": Column("toInt64(length(tasks))", "<i8"),
    }


def call_columns() -> dict[str, Column]:
    """The columns of a call; those of a trace lie together, in the order in which they ended."""
    return {
        **{name: _word(expression) for name, expression in CALL_WORDS.items()},
        "call_success": Column("toUInt8(task.success)", "|u1"),
        "call_mocked": Column("toUInt8(task.mocked)", "|u1"),
        "call_layer": Column("toUInt16(task.layer)", "<u2"),
        "call_duration_ms": Column("toFloat64(task.duration_ms)", "<f8"),
        "call_arguments": Column("task.args_hash", "<u8"),
    }


def columns_sql(columns: Mapping[str, Column], split: Split = "groups", *, calls: bool) -> str:
    """The columns of all traces, or of all their calls, which lie on no side of their own."""
    wanted = ", ".join(f"{column.expression} AS `{name}_`" for name, column in columns.items())
    joined = "ARRAY JOIN tasks AS task, arrayEnumerate(tasks) AS place" if calls else ""
    last = ", place" if calls else ""
    return (
        f"SELECT {wanted} FROM ({outlines_sql(split)}) {joined} ORDER BY partition, log_offset, run_id{last}"
    )


def words_sql() -> str:
    """One row: the vocabularies of traces and then those of calls, each in the order of its numbers."""
    of_traces = [f"groupUniqArray({expression})" for expression in TRACE_WORDS.values()]
    of_calls = [f"groupUniqArrayArray(arrayMap(task -> {each}, tasks))" for each in CALL_WORDS.values()]
    found = ", ".join(f"arraySort({words})" for words in of_traces + of_calls)
    return f"SELECT {found} FROM ({outlines_sql()})"


def snapshot_sql() -> str:
    """What tells one state of the selected traces from another.

    A task may be settled after the end of its run, which changes what is told of it, its place among the
    tasks and the error of the run. Words are numbered by one query and listed by another: both must see one
    state.
    """
    return (
        "SELECT count(), sum(length(tasks)), max(ended_at), "
        "sum(cityHash64(tenant, session_id, epoch, run_id, log_offset, success, error, error_code, tasks)), "
        f"max(length(session_id)), max(length(run_id)) FROM ({outlines_sql()})"
    )


def cut_sql() -> str:
    """When the trace at this place ended, in the order of time."""
    return f"SELECT ended_at FROM ({outlines_sql()}) ORDER BY ended_at LIMIT 1 OFFSET {{place:UInt64}}"


def sides_sql(split: Split) -> str:
    """How many traces lie on each side."""
    return f"SELECT side, count() FROM ({outlines_sql(split)}) GROUP BY side"


def record_dtype(columns: Mapping[str, Column]) -> np.dtype[np.void]:
    """A row as ClickHouse writes it in the format RowBinary, where every column has a fixed width."""
    return np.dtype([(name, column.dtype) for name, column in columns.items()])


def _sql(name: str) -> str:
    return (files("pml.clickhouse") / "training" / name).read_text("utf-8")


def _word(expression: str) -> Column:
    return Column(f"toInt32(dense_rank() OVER (ORDER BY {expression}) - 1)", "<i4")


def _text(name: str, width: int) -> Column:
    return Column(f"toFixedString({name}, {width})", f"S{width}")
