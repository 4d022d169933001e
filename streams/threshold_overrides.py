"""What a person wants for one context: a record of the catalog, written by the command line."""

from __future__ import annotations

import time

from pml.processors.speculation.thresholds import context_key, scope_of
from pml.schemas.base import ThresholdContext
from pml.schemas.catalog import CatalogRecord, ThresholdLevel, ThresholdOverride
from pml.schemas.errors import ConfigurationError
from pml.schemas.times import to_rfc3339
from pml.streams.catalog_topic import publish
from pml.streams.settings import Settings


def chosen_context(tenant: str, user: str | None, domain: str | None, workflow_type: str | None) -> str:
    """The key of the context that these name: all, a type, a domain or a user with a type.

    Raises:
        ConfigurationError: they name no context.
    """
    if (user or domain) and not workflow_type:
        raise ConfigurationError("a user or a domain has thresholds for a workflow type; add --type")
    if user and domain:
        raise ConfigurationError("a context is a user's or a domain's; give --user or --domain, not both")
    level: ThresholdLevel = "user" if user else "domain" if domain else "type" if workflow_type else "default"
    named = {"user": user, "domain": domain, "workflow_type": workflow_type}
    return context_key(
        tenant, ThresholdContext(**{name: text for name, text in named.items() if text}), level
    )


async def publish_override(settings: Settings, key: str, value: float | None, principal: str) -> None:
    """Set the threshold of a context by hand, or with no value take that back.

    Raises:
        BrokerUnavailable: the broker does not answer.
    """
    data = ThresholdOverride.model_validate(
        {
            **scope_of(key),
            "value": value,
            "principal": principal,
            "changed_at": to_rfc3339(time.time_ns() // 1_000_000),
        }
    )
    await publish(settings, CatalogRecord(kind=data.KIND, id=key, version=data.VERSION, data=data))
