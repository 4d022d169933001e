from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.clickhouse.embedded.statement import split


@pytest.mark.parametrize(
    ("text", "kind", "output_format"),
    [
        ("SELECT 1", "SELECT", None),
        ("  /* a */ -- b\n select 1 format JSON", "SELECT", "JSON"),
        ("SELECT 1\n FORMAT Native", "SELECT", "Native"),
        ("SELECT 1 FORMAT CSV SETTINGS max_threads = 1", "SELECT", "CSV"),
        ("SELECT 1 FORMAT CSV;", "SELECT", "CSV"),
        ("SELECT 1 AS format", "SELECT", None),
        ("SELECT format FROM t", "SELECT", None),
        ("SELECT ' FORMAT CSV'", "SELECT", None),
        ("SELECT 1 -- FORMAT CSV", "SELECT", None),
        ("SELECT (SELECT 1 FORMAT CSV)", "SELECT", None),
        ("(SELECT 1) FORMAT TSV", "SELECT", "TSV"),
        ("WITH 1 AS x SELECT x FORMAT JSON", "WITH", "JSON"),
        ("SHOW TABLES", "SHOW", None),
        ("CREATE TABLE t (a UInt8) ENGINE = Memory", "CREATE", None),
        ("", "", None),
    ],
)
def test_a_query_says_its_kind_and_its_format(text: str, kind: str, output_format: str | None) -> None:
    statement = split(text.encode())
    assert (statement.kind, statement.output_format) == (kind, output_format)
    assert (statement.sql, statement.data_format) == (text.encode(), None)


@pytest.mark.parametrize(
    ("text", "head", "tail", "data_format", "data"),
    [
        ("INSERT INTO t FORMAT CSV\n1,2", "INSERT INTO t ", "", "CSV", "1,2"),
        ("INSERT INTO t FORMAT CSV 1,2", "INSERT INTO t ", "", "CSV", "1,2"),
        ("INSERT INTO t FORMAT CSV\n\n1", "INSERT INTO t ", "", "CSV", "\n1"),
        (
            "insert into `a b`.`t` (`format`) format Native\r\nx",
            "insert into `a b`.`t` (`format`) ",
            "",
            "Native",
            "x",
        ),
        ("INSERT INTO format FORMAT CSV\n1", "INSERT INTO format ", "", "CSV", "1"),
        ("INSERT INTO values VALUES (1)", "INSERT INTO values ", "", "Values", " (1)"),
        (
            "INSERT INTO d.format (a, b) VALUES (1, 'FORMAT CSV')",
            "INSERT INTO d.format (a, b) ",
            "",
            "Values",
            " (1, 'FORMAT CSV')",
        ),
        ("INSERT INTO t SETTINGS a = 1 FORMAT CSV\n1", "INSERT INTO t ", "SETTINGS a = 1 ", "CSV", "1"),
        (
            "INSERT INTO FUNCTION f('FORMAT x') FORMAT CSV\n1",
            "INSERT INTO FUNCTION f('FORMAT x') ",
            "",
            "CSV",
            "1",
        ),
    ],
)
def test_an_insert_is_cut_where_its_data_begin(
    text: str, head: str, tail: str, data_format: str, data: str
) -> None:
    statement = split(text.encode())
    assert statement.sql[: statement.source_at] == head.encode()
    assert statement.sql[statement.source_at :] == tail.encode()
    assert (statement.data_format, statement.data) == (data_format, data.encode())


@pytest.mark.parametrize(
    "text", ["INSERT INTO t SELECT 1 FORMAT x", "INSERT INTO t WITH 1 AS a SELECT a", "INSERT INTO t"]
)
def test_an_insert_without_inline_data_stays_whole(text: str) -> None:
    statement = split(text.encode())
    assert (statement.sql, statement.data_format, statement.data) == (text.encode(), None, b"")


@given(st.binary(max_size=300))
def test_whatever_the_data_are_they_arrive_untouched(data: bytes) -> None:
    assert split(b"INSERT INTO t (a) FORMAT Native\n" + data).data == data


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_an_error(text: bytes) -> None:
    statement = split(text)
    assert statement.sql in text
