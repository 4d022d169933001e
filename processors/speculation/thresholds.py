"""Which threshold holds in which context (DESIGN §4, Thresholds; the spike's §3.2, option C).

An outcome teaches four contexts of its tenant, from special to general: its user with its workflow type,
its domain with its type, its type, and all. The first that has learned something holds; what a person set
by hand holds before anything learned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from pml.schemas.base import ThresholdContext
from pml.schemas.catalog import ThresholdLevel, ThresholdRecord

INITIAL = 0.92
"""What holds where nothing was learned or set."""

LEVELS: tuple[ThresholdLevel, ...] = ("user", "domain", "type", "default")


@dataclass(frozen=True, slots=True)
class ThresholdFound:
    """A threshold, the key of the context it is from, and whether a person set it there."""

    value: float
    context_key: str
    manual: bool = False


def context_key(tenant: str, context: ThresholdContext, level: ThresholdLevel) -> str:
    """The name of one of the four contexts: the id of its catalog records."""
    parts = {
        "user": f"user={_quoted(context.user)}/type={_quoted(context.workflow_type)}",
        "domain": f"domain={_quoted(context.domain)}/type={_quoted(context.workflow_type)}",
        "type": f"type={_quoted(context.workflow_type)}",
        "default": "default",
    }
    return f"{tenant}/{parts[level]}"


def context_keys(tenant: str, context: ThresholdContext) -> tuple[str, ...]:
    """The four contexts that an outcome teaches and a threshold is looked up in, special ones first."""
    return tuple(context_key(tenant, context, level) for level in LEVELS)


def find_threshold(
    tenant: str,
    context: ThresholdContext,
    learned: Mapping[str, ThresholdRecord],
    manual: Mapping[str, float],
) -> ThresholdFound:
    """The threshold of a context: the most special manual one, else the most special learned one."""
    keys = context_keys(tenant, context)
    for key in keys:
        if key in manual:
            return ThresholdFound(manual[key], key, manual=True)
    for key in keys:
        if key in learned:
            return ThresholdFound(learned[key].value, key)
    return ThresholdFound(INITIAL, keys[-1])


def scope_of(key: str) -> dict[str, str | None]:
    """What a context key says, as the fields of a record's scope: tenant, level, user, domain, type.

    Raises:
        ValueError: it is no context key.
    """
    tenant, *parts = key.split("/")
    said = {name: unquote(value) for name, _, value in (part.partition("=") for part in parts)}
    level = next((name for name in LEVELS if name in said), None)
    if level is None:
        raise ValueError(f"{key!r} names no context")
    return {
        "tenant": tenant,
        "level": level,
        "user": said.get("user"),
        "domain": said.get("domain"),
        "workflow_type": said.get("type"),
    }


def _quoted(text: str) -> str:
    return quote(text, safe="")
