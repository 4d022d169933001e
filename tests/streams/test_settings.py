import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pml.schemas.errors import ConfigurationError
from pml.streams.settings import Settings
from pml.streams.settings_sources import origins


@pytest.fixture(autouse=True)
def _empty_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("PML_", "KAFKA_", "CLICKHOUSE_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def write_toml(text: str, folder: Path = Path()) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "pml.toml"
    path.write_text(text)
    return path


def test_defaults_need_no_file_and_start_everything_embedded() -> None:
    settings = Settings.load()
    assert settings.embedded_broker
    assert settings.embedded_store
    assert settings.topics.events == "pml.events"
    assert settings.data_dir == Path.cwd() / ".pml"


def test_a_variable_goes_before_the_file_and_arguments_before_both(monkeypatch: pytest.MonkeyPatch) -> None:
    write_toml('[kafka]\nport = 1\ntopic_prefix = "a."\n[bridge]\nconcurrency = 3\n')
    monkeypatch.setenv("PML_KAFKA__PORT", "2")
    settings = Settings.load(bridge={"concurrency": 4})
    assert (settings.kafka.port, settings.kafka.topic_prefix, settings.bridge.concurrency) == (2, "a.", 4)


def test_the_aliases_of_other_tools_count_below_our_own_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "broker:9092")
    monkeypatch.setenv("CLICKHOUSE_URL", "http://u:p@store:8123")
    settings = Settings.load()
    assert settings.kafka.bootstrap_servers == "broker:9092"
    assert settings.clickhouse.url is not None
    assert settings.clickhouse.url.get_secret_value() == "http://u:p@store:8123"
    monkeypatch.setenv("PML_KAFKA__BOOTSTRAP_SERVERS", "other:9092")
    assert Settings.load().kafka.bootstrap_servers == "other:9092"


def test_secrets_come_out_of_files_and_are_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("secret").write_text("s3cret-word\n")
    monkeypatch.setenv("PML_KAFKA__SASL_PASSWORD_FILE", "secret")
    monkeypatch.setenv("PML_KAFKA__SASL_USERNAME", "somebody")
    monkeypatch.setenv("PML_KAFKA__SECURITY_PROTOCOL", "SASL_PLAINTEXT")
    settings = Settings.load()
    assert settings.kafka.sasl_password is not None
    assert settings.kafka.sasl_password.get_secret_value() == "s3cret-word"
    assert "s3cret-word" not in repr(settings)


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ("[kafka]\nprot = 1\n", "kafka.prot"),
        ("[kafka]\nport = 70000\n", "kafka.port"),
        ('[kafka]\nsecurity_protocol = "SASL_SSL"\n', "sasl_username"),
        ("[kafka]\nheartbeat_s = 9\n", "session_timeout_s"),
        ("[timeouts]\nrun_s = 86400\nresults_ttl_s = 86400\n", "results rest 90000 s"),
        ("kafka = [\n", "not TOML"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(toml: str, told: str) -> None:
    write_toml(toml)
    with pytest.raises(ConfigurationError) as raised:
        Settings.load()
    assert told in raised.value.message
    assert "pml.toml" in raised.value.message


def test_a_file_that_is_named_and_absent_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PML_CONFIG", "nowhere.toml")
    with pytest.raises(ConfigurationError, match=r"nowhere\.toml"):
        Settings.load()


def test_paths_of_the_file_are_relative_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_toml('data_dir = "data"\n[learning]\nmodels_folder = "models"\n', Path("project"))
    monkeypatch.setenv("PML_CONFIG", str(path))
    settings = Settings.load()
    assert settings.models_folder == Path.cwd() / "project" / "models"
    assert settings.data_dir == Path.cwd() / "project" / "data"
    assert settings.mcp_servers == Path.cwd() / "mcp-servers.yaml"


def test_yaml_minded_people_may_write_true_for_on() -> None:
    write_toml("[speculation]\nmode = false\nbudget = true\n")
    speculation = Settings.load().speculation
    assert (speculation.mode, speculation.budget) == ("off", "normal")


def test_each_value_knows_where_it_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_toml("[kafka]\nport = 1\n[sink]\nbatch_rows = 9\n")
    monkeypatch.setenv("PML_KAFKA__PORT", "2")
    monkeypatch.setenv("CLICKHOUSE_URL", "http://store:8123")
    found = origins(Settings, os.environ)
    assert found == {
        ("kafka", "port"): "PML_KAFKA__PORT",
        ("sink", "batch_rows"): str(path.absolute()),
        ("clickhouse", "url"): "CLICKHOUSE_URL",
    }


def test_a_child_process_reads_the_same_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings.load(
        data_dir="elsewhere",
        clickhouse={"url": "http://u:p@store:8123"},
        speculation={"mode": "off"},
        bridge={"start_timeout_s": 2.5},
        gateway={"hosts": ("a.example", "b.example"), "origins": ('https://"quoted".example',)},
    )
    for name, value in settings.environment().items():
        monkeypatch.setenv(name, value)
    assert Settings.load() == settings


def test_a_list_that_is_not_json_is_told_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PML_GATEWAY__HOSTS", "pml.example.org")
    with pytest.raises(ConfigurationError, match=r"gateway.*written as JSON") as refused:
        Settings.load()
    assert "pml.example.org" not in refused.value.message


def test_the_installation_key_is_made_once_whoever_is_first(tmp_path: Path) -> None:
    settings = Settings.load(data_dir=tmp_path / "fresh")
    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(lambda _: settings.installation_key(), range(32)))
    path = tmp_path / "fresh" / "installation.key"
    assert len(set(keys)) == 1
    assert len(keys[0]) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["installation.key"]


def test_a_damaged_installation_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "installation.key").write_bytes(b"short")
    with pytest.raises(ConfigurationError, match="32 bytes"):
        Settings.load(data_dir=tmp_path).installation_key()


def test_the_data_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    settings = Settings.load(data_dir=tmp_path / "new" / "data")
    settings.installation_key()
    assert settings.data_dir.stat().st_mode & 0o777 == 0o700
