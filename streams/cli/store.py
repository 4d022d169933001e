"""`pml migrate`."""

from __future__ import annotations

from pml.streams.cli.output import Json, note, print_json
from pml.streams.cli.session import load_settings, run_async


def migrate(json: Json = False) -> None:
    """Create the topics and bring ClickHouse's tables and views up to this release; safe to repeat.

    `pml up` does it for the local stack.

    Example: KAFKA_BOOTSTRAP_SERVERS=… CLICKHOUSE_URL=… pml migrate
    """
    from pml.streams.local.supervisor import migrate_store
    from pml.streams.topics import ensure_topics

    settings = load_settings()
    run_async(ensure_topics(settings))
    note(f"topics {settings.kafka.topic_prefix}* are as they must be")
    migrate_store(settings)
    note(f"database {settings.clickhouse.database} is up to date")
    if json:
        topics = [spec.name for spec in settings.topics.specs()]
        print_json({"topics": topics, "database": settings.clickhouse.database})
