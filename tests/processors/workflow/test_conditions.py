"""Conditions: what they may say, what they come to, and Python itself as the twin."""

from __future__ import annotations

import ast
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.workflow import conditions
from pml.processors.workflow.conditions import ConditionError, evaluate, nodes_of, outcome, parse

RESULTS: dict[str, Any] = {
    "n1": {"count": 3, "ratio": 0.5, "name": "a.md", "names": ["a.md", "b.md"], "ok": True, "none": None},
    "n2": [{"id": 1}, {"id": 2}],
    "n3": {"a-b": 1, "1": 2},
    "n4": [{"x": 1, "y": 2}, {"x": 1, "y": 3}, {"x": True, "y": 2}, {"y": 2, "x": 1.0}, {}],
}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("n1.count > 2", True),
        ("n1.count >= 3 and n1.ok", True),
        ("not n1.ok or n1.name == 'b.md'", False),
        ("1 < n1.count <= 3", True),
        ("'a.md' in n1.names", True),
        ("'a.' in n1.name", True),
        ("'count' in n1", True),
        ("'zzz' not in n1", True),
        ("n1.name in ['a.md', 'c.md']", True),
        ("n2[1].id == 2", True),
        ("n3['a-b'] == 1 and n3['1'] == 2", True),
        ("n1.none == null", True),
        ("n1.none == none_of_it or true", ConditionError),
        ("n1.ok == true", True),
        ("n1.ok != false", True),
        ("n1.count + 1 == 4", True),
        ("-n1.count * 2 < 0 and n1.count / 2 == 1.5 and n1.count % 2 == 1", True),
        ("n1.name + '!' == 'a.md!'", True),
        # What is not of one kind is different, never equal by accident.
        ("n1.ok == 1", False),
        ("n1.count == '3'", False),
        ("[1] == [true]", False),
        ("[1, 'a'] == [1.0, 'a']", True),
        ("1 in [true]", False),
        ("[1] == [1, 2]", False),
        ("[1, 2] == [1, 3]", False),
        ("[] == []", True),
        ("n2[0] == n2[1]", False),
        ("n2[0] == n2[0]", True),
        ("n2[0] == n3", False),
        ("n4[0] == n4[1]", False),
        ("n4[0] == n4[2]", False),
        ("n4[0] == n4[3]", True),
        ("n4[4] == n4[4]", True),
        ("n1.ok != 1", True),
        ("n1.names == n1.names", True),
        ("1 < n1.count < 3", False),
        ("n1.count < 9 < 8", False),
        ("false or false", False),
        ("true and true", True),
        ("false and n9.x", False),
        ("true or n9.x", True),
        ("n2[0].id == 1", True),
        ("n1.count - 1 == 2", True),
        ("3 <= n1.count", True),
        ("3 < n1.count", False),
        ("n1.count >= 4", False),
        ("'b' > 'a'", True),
    ],
)
def test_an_expression_has_this_value(expression: str, value: Any) -> None:
    if value is ConditionError:
        with pytest.raises(ConditionError):
            evaluate(expression, RESULTS)
    else:
        assert evaluate(expression, RESULTS) is value


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("n9.x > 1", "n9 gave no result"),
        ("n1.nothing", "there is no 'nothing' in an object"),
        ("n2[2].id", "there is no 2 in a list"),
        ("n2[-1].id", "there is no -1"),
        ("n2[true]", "there is no True"),
        ("n1.name[0]", "there is no 0 in a text"),
        ("n1.name['a']", "there is no 'a' in a text"),
        ("n1.names['a.md']", "there is no 'a.md' in a list"),
        ("n1.names[0.5]", "there is no 0.5 in a list"),
        ("n1[n1.names]", "in an object"),
        ("n1.count and n1.ok", "a boolean is needed, not a number"),
        ("not n1.name", "a boolean is needed, not a text"),
        ("n1.count > '2'", "a number and a text have no order"),
        ("n1.names < n1.names", "have no order"),
        ("n1.ok > false", "have no order"),
        ("n1.count + n1.name", "a number is needed, not a text"),
        ("n1.name * 3", "a number is needed, not a text"),
        ("n1.name + 3", "a number is needed, not a text"),
        ("n1.name - n1.name", "a number is needed, not a text"),
        ("n1.none + 3", "a number is needed, not null$"),
        ("n1.ok + 1", "a number is needed, not a boolean"),
        ("n1.count / 0 > 1", "division by zero"),
        ("1 % 0 == 0", "modulo"),
        ("1 in 2", "a number cannot be in a number"),
        ("1 in n1.name", "a number cannot be in a text"),
        ("'a' in 2", "a text cannot be in a number"),
        ("1 in n1", "a number cannot be in an object"),
        ("n1.names in n1", "a list cannot be in an object"),
    ],
)
def test_what_has_no_certain_value_is_an_error(expression: str, says: str) -> None:
    with pytest.raises(ConditionError, match="(?s).*" + says.replace("(", r"\(")):
        evaluate(expression, RESULTS)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "n1.x >",
        "f(n1)",
        "n1.x if true else 2",
        "[x for x in n1]",
        "lambda: 1",
        "n1[0:2]",
        "n1.x ** 9",
        "n1.x // 2",
        "n1.x is null",
        "{'a': 1}",
        "f'{n1}'",
        "b'x' == n1.x",
        "1j == n1.x",
        "(y := 1)",
        "*n1",
        "n1.x; n2.x",
        "~n1.x == 1",
        "n1.x & 1",
        "a == " + " + ".join("1" * 150),
        "(" * 500 + "1" + ")" * 500,
        "not " * 500 + "true",
        "\0",
    ],
)
def test_what_is_not_in_the_grammar_is_refused(expression: str) -> None:
    with pytest.raises(ConditionError):
        parse(expression)


def test_names_are_nodes_but_for_the_three_constants() -> None:
    assert nodes_of("n1.x > 1 and (n2 == null or c_1.y[n3.i]) or true") == {"n1", "n2", "c_1", "n3"}


@pytest.mark.parametrize(
    ("expression", "out"),
    [
        ("n1.ok", "true"),
        ("n1.count < 1", "false"),
        ("n1.name", "case:a.md"),
        ("n1.count", "case:3"),
        ("n1.ratio", "case:0.5"),
    ],
)
def test_an_outcome_is_a_boolean_or_a_case(expression: str, out: str) -> None:
    assert outcome(expression, RESULTS) == out


@pytest.mark.parametrize("expression", ["n1.none", "n1.names", "n1"])
def test_no_other_kind_decides(expression: str) -> None:
    with pytest.raises(ConditionError, match="a decision needs"):
        outcome(expression, RESULTS)


def test_an_expression_without_its_texts_reads_the_same_nodes() -> None:
    kept = conditions.without_texts("n1.key == 'hunter2' and n2['b'] > 1", "[X]")
    assert kept == "n1.key == '[X]' and n2['[X]'] > 1"
    assert nodes_of(kept) == {"n1", "n2"}


# The twin: expressions whose parts fit together by construction mean what they mean in Python.
VALUES: dict[str, Any] = {"i": 3, "f": 2.5, "s": "ab", "t": True, "l": ["a", "ab"], "d": {"x": 1, "ab": 2}}
ORDERS = ["<", "<=", ">", ">=", "==", "!="]


def number(random: Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.3:
        return random.choice(["n.i", "n.f", "n.d.x", "n.d['ab']", "0", "7", "2.5", "-4"])
    if random.random() < 0.2:
        return f"(-{number(random, depth - 1)})"
    return f"({number(random, depth - 1)} {random.choice('+-*/%')} {number(random, depth - 1)})"


def text(random: Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.6:
        return random.choice(["n.s", "n.l[0]", "n.l[1]", "'a'", "''"])
    return f"({text(random, depth - 1)} + {text(random, depth - 1)})"


def boolean(random: Random, depth: int) -> str:
    """A boolean expression whose parts are of like types."""
    kind = random.randrange(7) if depth else 0
    below = depth - 1
    if kind == 0:
        return random.choice(["n.t", "True", "False"])
    if kind == 1:
        return f"(not {boolean(random, below)})"
    if kind in {2, 3}:
        return f"({boolean(random, below)} {random.choice(['and', 'or'])} {boolean(random, below)})"
    if kind == 4:
        return f"({text(random, below)} {random.choice(['in', 'not in'])} n.{random.choice('sld')})"
    part = text if kind == 5 else number
    written = part(random, below)
    for _ in range(random.randint(1, 2)):
        written += f" {random.choice(ORDERS)} {part(random, below)}"
    return f"({written})"


class _Node:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


class _Fields(dict[str, Any]):
    __getattr__ = dict.__getitem__


@given(seed=st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_expressions_mean_what_they_mean_in_python(seed: int) -> None:
    random = Random(seed)
    expression = random.choice([boolean, number, text])(random, 4)
    node = _Node(**VALUES | {"d": _Fields(VALUES["d"])})
    try:
        expected = eval(expression, {"__builtins__": {}}, {"n": node})
    except (ZeroDivisionError, OverflowError):
        expected = ConditionError
    if expected is ConditionError or len(list(ast.walk(ast.parse(expression)))) > 200:
        with pytest.raises(ConditionError):
            evaluate(expression, {"n": VALUES})
        return
    found = evaluate(expression, {"n": VALUES})
    assert repr(found) == repr(expected)


@given(written=st.text(max_size=60), results=st.dictionaries(st.text(max_size=3), st.none()))
def test_evaluating_never_fails_in_another_way(written: str, results: dict[str, Any]) -> None:
    with suppress(ConditionError):
        assert outcome(written, results)


def test_an_expression_may_have_so_many_parts() -> None:
    """A list and its numbers, each a part, and one for the list's context."""
    parse(f"[{', '.join(['1'] * (conditions.NODES_MAX - 2))}]")
    with pytest.raises(ConditionError, match="has 201 parts"):
        parse(f"[{', '.join(['1'] * (conditions.NODES_MAX - 1))}]")
