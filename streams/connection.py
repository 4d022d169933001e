"""How every client reaches the broker and the store; nobody else reads addresses or credentials."""

from __future__ import annotations

import os
import ssl
from functools import lru_cache
from typing import Any

from aiokafka.helpers import create_ssl_context
from aiokafka.partitioner import murmur2

from pml.schemas.errors import BrokerUnavailable, ConfigurationError, StoreUnavailable
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.local.stack import running_stack
from pml.streams.settings import Settings

# A dead letter may hold what any other topic took, and the envelope around it; the broker's own limit
# of each topic is what stops smaller records.
REQUEST_BYTES_MAX = 65 * 1024 * 1024
# Measured: the producer's own retries carry it over a broker that is killed and back within 5 s.
PRODUCE_TIMEOUT_MS = 20_000
# aiokafka's murmur2 is Python: 6 µs a key, and a session's key comes with each of its records.
KEYS_KEPT = 10_000


def bootstrap_servers(settings: Settings) -> str:
    """The broker's addresses, `host:port,host:port`.

    Raises:
        BrokerUnavailable: none is configured and no local stack runs on the data folder.
    """
    if settings.kafka.bootstrap_servers:
        return settings.kafka.bootstrap_servers
    stack = running_stack(settings.data_dir)
    if stack is None or stack.broker is None:
        raise BrokerUnavailable(
            f"no broker runs for {settings.data_dir}; start one with `pml up`, or set KAFKA_BOOTSTRAP_SERVERS"
        )
    return stack.broker


def store_url(settings: Settings) -> str:
    """The URL of ClickHouse; it may hold a password, so it is never logged.

    Raises:
        StoreUnavailable: none is configured and no local stack runs on the data folder.
    """
    if settings.clickhouse.url is not None:
        return settings.clickhouse.url.get_secret_value()
    stack = running_stack(settings.data_dir)
    if stack is None or stack.store is None:
        raise StoreUnavailable(
            f"no store runs for {settings.data_dir}; start one with `pml up`, or set CLICKHOUSE_URL"
        )
    return stack.store


def client_options(settings: Settings) -> dict[str, Any]:
    """Keyword arguments of every aiokafka consumer, producer and admin client."""
    kafka = settings.kafka
    options: dict[str, Any] = {
        "bootstrap_servers": bootstrap_servers(settings),
        "client_id": f"pml-{os.getpid()}",
        "security_protocol": kafka.security_protocol,
    }
    if "SSL" in kafka.security_protocol:
        options["ssl_context"] = _ssl_context(settings)
    if kafka.sasl_password is not None and "SASL" in kafka.security_protocol:
        options["sasl_mechanism"] = kafka.sasl_mechanism
        options["sasl_plain_username"] = kafka.sasl_username
        options["sasl_plain_password"] = kafka.sasl_password.get_secret_value()
    return options


def producer_options(settings: Settings) -> dict[str, Any]:
    """Keyword arguments of every aiokafka producer: idempotent, acknowledged by all replicas, no linger."""
    return {
        **client_options(settings),
        "acks": "all",
        "enable_idempotence": True,
        "linger_ms": 0,
        "max_request_size": REQUEST_BYTES_MAX,
        "request_timeout_ms": PRODUCE_TIMEOUT_MS,
    }


def faust_broker(settings: Settings) -> dict[str, Any]:
    """Keyword arguments of `faust.App` that reach the same broker the same way."""
    addresses = bootstrap_servers(settings).split(",")
    options: dict[str, Any] = {"broker": ";".join(f"kafka://{address.strip()}" for address in addresses)}
    credentials = _faust_credentials(settings)
    if credentials is not None:
        options["broker_credentials"] = credentials
    return options


@lru_cache(maxsize=KEYS_KEPT)
def partition_for(key: bytes, partitions: int = SESSION_PARTITIONS) -> int:
    """The partition of a key: murmur2, as Java's and aiokafka's default partitioner."""
    return int(murmur2(key) & 0x7FFFFFFF) % partitions


def _faust_credentials(settings: Settings) -> Any:
    from faust.auth import SASLCredentials, SSLCredentials

    kafka = settings.kafka
    context = _ssl_context(settings) if "SSL" in kafka.security_protocol else None
    if "SASL" in kafka.security_protocol and kafka.sasl_password is not None:
        return SASLCredentials(
            username=kafka.sasl_username,
            password=kafka.sasl_password.get_secret_value(),
            mechanism=kafka.sasl_mechanism,
            ssl_context=context,
        )
    return SSLCredentials(context) if context is not None else None


def _ssl_context(settings: Settings) -> ssl.SSLContext:
    kafka = settings.kafka
    # Without any word OpenSSL would ask the terminal for that of an encrypted key.
    password = kafka.ssl_key_password.get_secret_value() if kafka.ssl_key_password else ""
    try:
        context: ssl.SSLContext = create_ssl_context(
            cafile=kafka.ssl_cafile,
            certfile=kafka.ssl_certfile,
            keyfile=kafka.ssl_keyfile,
            password=password,
        )
    except (OSError, ssl.SSLError) as error:
        named = {"ssl_cafile": kafka.ssl_cafile, "ssl_certfile": kafka.ssl_certfile}
        named["ssl_keyfile"] = kafka.ssl_keyfile
        files = ", ".join(f"kafka.{name} ({path})" for name, path in named.items() if path)
        raise ConfigurationError(
            f"TLS files cannot be used ({error}): check {files}, and kafka.ssl_key_password if the key is "
            "encrypted"
        ) from None
    return context
