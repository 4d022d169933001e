import ssl
from pathlib import Path

import pytest
from aiokafka.partitioner import DefaultPartitioner
from hypothesis import given
from hypothesis import strategies as st

from pml.schemas.errors import BrokerUnavailable, ConfigurationError, StoreUnavailable
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.connection import (
    bootstrap_servers,
    client_options,
    faust_broker,
    partition_for,
    producer_options,
    store_url,
)
from pml.streams.local.processes import ProcessId
from pml.streams.local.stack import Stack, write_stack
from pml.streams.settings import Settings
from tests.fixtures.secured_broker import Authority


def running(data_dir: Path, process: ProcessId) -> None:
    store = "http://default:word@127.0.0.1:8123"
    stack = Stack(supervisor=process, started_at="now", ready=True, broker="127.0.0.1:9", store=store)
    write_stack(data_dir, stack)


@given(st.binary(max_size=64))
def test_a_key_goes_where_aiokafkas_default_partitioner_sends_it(key: bytes) -> None:
    everything = list(range(SESSION_PARTITIONS))
    assert partition_for(key) == DefaultPartitioner()(key, everything, everything)


def test_addresses_come_from_settings_else_from_the_running_stack(tmp_path: Path) -> None:
    embedded = Settings.load(data_dir=tmp_path)
    with pytest.raises(BrokerUnavailable, match="pml up"):
        bootstrap_servers(embedded)
    with pytest.raises(StoreUnavailable, match="pml up"):
        store_url(embedded)
    running(tmp_path, ProcessId.own())
    assert bootstrap_servers(embedded) == "127.0.0.1:9"
    assert store_url(embedded) == "http://default:word@127.0.0.1:8123"
    real = Settings.load(
        data_dir=tmp_path, kafka={"bootstrap_servers": "b:9092"}, clickhouse={"url": "http://c:8123"}
    )
    assert (bootstrap_servers(real), store_url(real)) == ("b:9092", "http://c:8123")


def test_the_file_of_a_stack_that_was_killed_counts_for_nothing(tmp_path: Path) -> None:
    own = ProcessId.own()
    running(tmp_path, own.model_copy(update={"created": own.created - 60}))
    with pytest.raises(BrokerUnavailable):
        bootstrap_servers(Settings.load(data_dir=tmp_path))


def test_security_reaches_every_client_and_faust(tmp_path: Path) -> None:
    kafka = {
        "bootstrap_servers": "a:1, b:2",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_username": "somebody",
        "sasl_password": "word",
    }
    settings = Settings.load(data_dir=tmp_path, kafka=kafka)
    options = client_options(settings)
    assert isinstance(options.pop("ssl_context"), ssl.SSLContext)
    assert options["sasl_mechanism"] == "SCRAM-SHA-512"
    assert (options["sasl_plain_username"], options["sasl_plain_password"]) == ("somebody", "word")
    assert producer_options(settings)["security_protocol"] == "SASL_SSL"
    faust = faust_broker(settings)
    assert faust["broker"] == "kafka://a:1;kafka://b:2"
    assert faust["broker_credentials"].protocol.value == "SASL_SSL"
    assert faust["broker_credentials"].mechanism.value == "SCRAM-SHA-512"


def test_tls_files_that_do_not_exist_are_named(tmp_path: Path) -> None:
    kafka = {"bootstrap_servers": "a:1", "security_protocol": "SSL", "ssl_cafile": tmp_path / "no.pem"}
    with pytest.raises(ConfigurationError, match="ssl_cafile"):
        client_options(Settings.load(data_dir=tmp_path, kafka=kafka))


def test_an_encrypted_key_needs_its_password_and_never_asks_the_terminal(tmp_path: Path) -> None:
    certificate, key = Authority(tmp_path, "an authority").issue("somebody", "opens it")
    kafka = {
        "bootstrap_servers": "a:1",
        "security_protocol": "SSL",
        "ssl_certfile": certificate,
        "ssl_keyfile": key,
    }
    with pytest.raises(ConfigurationError, match="ssl_key_password"):
        client_options(Settings.load(data_dir=tmp_path, kafka=kafka))
    settings = Settings.load(data_dir=tmp_path, kafka={**kafka, "ssl_key_password": "opens it"})
    assert client_options(settings)["security_protocol"] == "SSL"
    assert faust_broker(settings)["broker_credentials"].protocol.value == "SSL"


def test_a_key_without_its_certificate_is_a_wrong_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="ssl_keyfile needs ssl_certfile"):
        Settings.load(data_dir=tmp_path, kafka={"ssl_keyfile": tmp_path / "a.key"})
