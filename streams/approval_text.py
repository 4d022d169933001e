"""Calls that wait for a person's word, in a line for each.

Consent is to what is shown, so everything that nobody would see is written out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pml.streams.printable import printable


def shown_arguments(call: Mapping[str, Any]) -> str:
    """The arguments of a call as JSON, and where those come from that nobody knows yet."""
    known = call.get("arguments")
    told = [] if known is None else [json.dumps(known, ensure_ascii=False, separators=(",", ":"))]
    told += [f"{name} from {source}" for name, source in (call.get("computed") or {}).items()]
    return printable(", ".join(told), keep="") or "any arguments"


def calls_of(asked: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What a request is about: several calls, or the one that it describes itself."""
    return list(asked.get("calls") or [asked])


def call_lines(asked: Mapping[str, Any]) -> Iterator[str]:
    """A line for each call of a request: its task, what it does, its tool and arguments."""
    for call in calls_of(asked):
        maybe = " (may never come)" if call.get("conditional") else ""
        who = call.get("task_id") or "any call"
        what = printable(f"{who}: {call['effect']} {call['tool']}", keep="")
        yield f"{what} {shown_arguments(call)}{maybe}"
    if asked.get("omitted"):
        yield f"and {asked['omitted']} more calls, each in its turn"
