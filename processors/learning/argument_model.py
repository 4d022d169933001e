"""Argument sources as arrays and back: numbers as they are, names and constants as JSON. No pickle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from pml.processors.learning.argument_cases import Known
from pml.processors.learning.argument_choice import FEATURES
from pml.processors.learning.argument_confidence import Confidence
from pml.processors.learning.argument_rates import Rates
from pml.processors.learning.argument_repeats import Repeats
from pml.processors.learning.candidates import fitting
from pml.processors.learning.parameters import Parameter, Seen

Column = NDArray[np.float64]


def to_arrays(
    known: Known, rates: Rates, weights: Column, confidence: Confidence, repeats: Repeats
) -> dict[str, NDArray[Any]]:
    """The parts of argument sources; of what was seen only constants that several sessions share."""
    told = {
        "names": {tool: list(names) for tool, names in known.names.items()},
        "declared": [_declared(each) for tool in known.declared.values() for each in tool.values()],
        "seen": [_seen(key, seen) for key, seen in known.seen.items()],
        "tools": confidence.tools,
    }
    return {
        "known": np.frombuffer(orjson.dumps(told), dtype=np.uint8),
        "choice": weights,
        **repeats.to_arrays(),
        **{f"rates.{name}": array for name, array in rates.to_arrays().items()},
        **{f"confidence.{name}": array for name, array in confidence.to_arrays().items()},
    }


def from_arrays(arrays: Mapping[str, NDArray[Any]]) -> tuple[Known, Rates, Column, Confidence, Repeats]:
    """What `to_arrays` wrote.

    Raises:
        ValueError: an array is missing or does not fit: train the model again.
    """
    try:
        told = orjson.loads(fitting(arrays, "known", np.uint8, 1).tobytes())
        known = Known(
            _tools(told["declared"]),
            {
                (tool, name): _was_seen(types, values, paths)
                for tool, name, types, values, paths in told["seen"]
            },
            {tool: tuple(names) for tool, names in told["names"].items()},
        )
        tools = {name: (float(right), float(offered)) for name, (right, offered) in told["tools"].items()}
    except (KeyError, TypeError, orjson.JSONDecodeError) as error:
        raise ValueError(f"the model's parameters cannot be read ({error}): train it again") from error
    weights = fitting(arrays, "choice", np.float64, 1)
    if len(weights) != FEATURES:
        raise ValueError("the model weighs other features than this version: train it again")
    return (
        known,
        Rates.from_arrays(_part(arrays, "rates.")),
        weights,
        Confidence.from_arrays(_part(arrays, "confidence."), tools),
        Repeats.from_arrays(arrays),
    )


def _part(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _declared(given: Parameter) -> list[Any]:
    default = None if given.default is None else given.default.decode()
    return [
        given.tool,
        given.name,
        given.type,
        given.required,
        [each.decode() for each in given.enum],
        default,
        given.others_required,
    ]


def _tools(told: list[list[Any]]) -> dict[str, dict[str, Parameter]]:
    found: dict[str, dict[str, Parameter]] = {}
    for tool, name, kind, required, enum, default, others in told:
        spelled = None if default is None else default.encode()
        allowed = tuple(each.encode() for each in enum)
        found.setdefault(tool, {})[name] = Parameter(
            tool, name, kind, required, allowed, spelled, (), others_required=others
        )
    return found


def _seen(key: tuple[str, str], seen: Seen) -> list[Any]:
    values = {value.decode(): seen.sessions[value].total() for value in seen.constants(None)}
    return [*key, dict(seen.types), values, sorted(seen.paths_elsewhere(None))]


def _was_seen(types: Mapping[str, int], values: Mapping[str, int], paths: Sequence[str]) -> Seen:
    sessions = {value.encode(): Counter({0: count}) for value, count in values.items()}
    return Seen(sessions, Counter(types), {path: Counter({0: 1}) for path in paths}, Counter({0: 1}))
