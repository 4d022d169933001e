"""Why a broker does not take us: aiokafka says only that it could not begin; the reason goes to its log."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiokafka.conn import create_conn
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NodeNotReadyError,
    RequestTimedOutError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.metadata import MetadataRequest

from pml.schemas.errors import BrokerRefused, BrokerUnavailable
from pml.streams.connection import bootstrap_servers, client_options
from pml.streams.settings import Settings

SILENT = (KafkaConnectionError, KafkaTimeoutError, NodeNotReadyError, RequestTimedOutError)
FORBIDDEN = (TopicAuthorizationFailedError, GroupAuthorizationFailedError, ClusterAuthorizationFailedError)
# Somebody waits for the answer, and has waited for the client's own attempt already.
QUESTION_TIMEOUT_MS = 3_000
# OpenSSL's codes of a certificate that is good, but for another name or address.
OTHER_NAME = (62, 64)
# What a server that wants a client certificate answers to none, or to one it does not know.
CERTIFICATE_ALERTS = ("CERTIFICATE_REQUIRED", "BAD_CERTIFICATE", "UNKNOWN_CA", "CERTIFICATE_UNKNOWN")


@asynccontextmanager
async def broker_errors(settings: Settings) -> AsyncIterator[None]:
    """Turn the client's errors of connection and of rights into one that says what to do.

    Raises:
        BrokerRefused: the broker answers, but not to these credentials or certificates.
        BrokerUnavailable: the broker does not answer.
    """
    try:
        yield
    except SILENT as error:
        raise await unreachable(settings, error) from None
    except FORBIDDEN as error:
        raise _forbidden(settings, error) from None
    except BrokerUnavailable as error:
        if isinstance(error.__cause__, KafkaConnectionError):
            raise await unreachable(settings, error.__cause__) from None
        raise
    except KafkaError as error:
        # The client has no class of its own for "no broker told me where anything is".
        if type(error) is not KafkaError:
            raise
        raise await unreachable(settings, error) from None


async def unreachable(settings: Settings, error: Exception) -> BrokerUnavailable:
    """The error to raise after `error`: asks the broker once more where only it can tell the reason."""
    reason: Exception | None = error
    if isinstance(error, KafkaConnectionError):
        reason = await first_failure(client_options(settings))
    if reason is None:  # it answers by now
        reason = error
    return explained(settings, reason)


async def first_failure(options: Mapping[str, Any]) -> Exception | None:
    """What connecting to the first address fails with; None if that succeeds.

    Args:
        options: keyword arguments of a client (`pml.streams.connection.client_options`).
    """
    names = {name: value for name, value in options.items() if name != "bootstrap_servers"}
    host, _, port = str(options["bootstrap_servers"]).split(",")[0].strip().rpartition(":")
    try:
        connection = await create_conn(host, int(port), request_timeout_ms=QUESTION_TIMEOUT_MS, **names)
    except (KafkaError, OSError, TimeoutError, ValueError) as error:
        return error
    try:
        # A broker that wants a password closes the connection only now.
        await connection.send(MetadataRequest([]))
    except (KafkaError, OSError, TimeoutError) as error:
        return error
    finally:
        connection.close()
    return None


def explained(settings: Settings, reason: Exception) -> BrokerUnavailable:
    """One sentence about the failure of a connection: what the broker did, and which settings to look at."""
    kafka, place = settings.kafka, f"the broker at {bootstrap_servers(settings)}"
    told = _sasl_refusal(settings, reason) or _tls_refusal(reason)
    if told is not None:
        return BrokerRefused(f"{place} {told}")
    if _was_closed(reason):
        # Whether TLS's alert that says so is read before the end of the connection is a matter of luck.
        anonymous = kafka.security_protocol == "SSL" and not kafka.ssl_certfile
        certificate = ", or a client certificate (kafka.ssl_certfile)" if anonymous else ""
        return BrokerUnavailable(
            f"{place} closes the connection; kafka.security_protocol is {kafka.security_protocol}: it may "
            f"want TLS, none, or a password{certificate}"
        )
    return BrokerUnavailable(
        f"{place} does not answer ({str(reason) or type(reason).__name__}); "
        "see `pml status`, start it with `pml up`, or check KAFKA_BOOTSTRAP_SERVERS"
    )


def _sasl_refusal(settings: Settings, reason: Exception) -> str | None:
    kafka = settings.kafka
    if isinstance(reason, SaslAuthenticationFailed):
        return (
            f"refuses the user {kafka.sasl_username} or its password: check kafka.sasl_username, "
            f"kafka.sasl_password and kafka.sasl_mechanism ({kafka.sasl_mechanism})"
        )
    if isinstance(reason, UnsupportedSaslMechanismError):
        return f"does not take {kafka.sasl_mechanism}: set kafka.sasl_mechanism to one that it does"
    if isinstance(reason, IllegalSaslStateError):
        return f"takes no password there: kafka.security_protocol is {kafka.security_protocol}"
    return None


def _tls_refusal(reason: Exception) -> str | None:
    if isinstance(reason, ssl.SSLCertVerificationError):
        if reason.verify_code in OTHER_NAME:
            return (
                f"shows a certificate for another name ({reason.verify_message}): check "
                "KAFKA_BOOTSTRAP_SERVERS"
            )
        return (
            f"shows a certificate that cannot be verified ({reason.verify_message}): kafka.ssl_cafile must "
            "name the authority that signed it"
        )
    if any(alert in str(reason) for alert in CERTIFICATE_ALERTS):
        return "wants a client certificate that it knows: check kafka.ssl_certfile and kafka.ssl_keyfile"
    return None


def _was_closed(reason: Exception) -> bool:
    """Whether there was a connection, and the other side ended it."""
    if isinstance(reason, KafkaConnectionError):
        return " closed" in str(reason)
    return isinstance(reason, (ConnectionResetError, BrokenPipeError, ssl.SSLError))


def _forbidden(settings: Settings, error: Exception) -> BrokerRefused:
    user = settings.kafka.sasl_username or "the owner of kafka.ssl_certfile"
    return BrokerRefused(
        f"the broker at {bootstrap_servers(settings)} does not let {user} do this ({error}): give it the "
        "rights on PML's topics and groups (docs/reference/topics.md)"
    )
