import ssl
from pathlib import Path

import pytest
from aiokafka.errors import (
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    LeaderNotAvailableError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
)

from pml.schemas.errors import BrokerRefused, BrokerUnavailable
from pml.streams.local.ports import free_port
from pml.streams.reachability import broker_errors, explained
from pml.streams.settings import Settings


def settings(folder: Path, address: str = "a:1") -> Settings:
    kafka = {
        "bootstrap_servers": address,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_username": "somebody",
        "sasl_password": "word",
    }
    return Settings.load(data_dir=folder, kafka=kafka)


def other_name() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError("verify failed")
    error.verify_code, error.verify_message = 62, "Hostname mismatch"
    return error


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (SaslAuthenticationFailed("no"), "refuses the user somebody"),
        (IllegalSaslStateError("no"), "takes no password there"),
        (other_name(), "certificate for another name"),
        (KafkaConnectionError("closed SSLError(1, 'UNKNOWN_CA')"), "wants a client certificate"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_clear_answer_is_a_refusal_that_names_the_setting(
    reason: Exception, told: str, tmp_path: Path
) -> None:
    error = explained(settings(tmp_path), reason)
    assert isinstance(error, BrokerRefused)
    assert error.message.startswith("the broker at a:1 ")
    assert told in error.message
    assert "word" not in error.message.replace("password", "")


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (ConnectionResetError(), "closes the connection"),
        (KafkaConnectionError("Connection at a:1 closed"), "closes the connection"),
        (TimeoutError(), "does not answer (TimeoutError)"),
        (OSError("No route to host"), "does not answer (No route to host)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_may_pass_may_be_tried_again(reason: Exception, told: str, tmp_path: Path) -> None:
    error = explained(settings(tmp_path), reason)
    assert not isinstance(error, BrokerRefused)
    assert error.retryable
    assert told in error.message


async def test_where_nobody_listens_the_system_says_so(tmp_path: Path) -> None:
    with pytest.raises(BrokerUnavailable, match=r"does not answer \(.*Connect call failed"):
        async with broker_errors(settings(tmp_path, f"127.0.0.1:{free_port()}")):
            raise KafkaConnectionError("Unable to bootstrap")


async def test_missing_rights_name_the_user_and_the_topic(tmp_path: Path) -> None:
    with pytest.raises(BrokerRefused, match=r"does not let somebody do this .*pml\.commands"):
        async with broker_errors(settings(tmp_path)):
            raise TopicAuthorizationFailedError("pml.commands")


async def test_a_broker_that_tells_nothing_of_its_cluster_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(BrokerUnavailable, match="metadata"):
        async with broker_errors(settings(tmp_path)):
            raise KafkaError("Unable to get cluster metadata over all known brokers")
    with pytest.raises(LeaderNotAvailableError):
        async with broker_errors(settings(tmp_path)):
            raise LeaderNotAvailableError
