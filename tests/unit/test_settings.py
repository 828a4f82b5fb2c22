"""Settings: defaults, the environment, errors without values."""

import pytest

from facta.settings import Settings, SettingsError, load, markdown


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"FACTA_{name.upper()}", raising=False)


def test_nothing_needs_to_be_set() -> None:
    settings = load()
    assert (settings.host, settings.http_port, settings.grpc_port) == ("127.0.0.1", 4318, 4317)
    assert settings.tokens is None
    assert settings.on_loopback


def test_the_environment_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FACTA_HTTP_PORT", "0")
    monkeypatch.setenv("FACTA_LOG_LEVEL", "DEBUG")
    monkeypatch.setenv("FACTA_TOKENS", "")
    settings = load()
    assert (settings.http_port, settings.log_level, settings.tokens) == (0, "debug", None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FACTA_HTTP_PORT", "canary5d1f"),
        ("FACTA_GRPC_PORT", "70000"),
        ("FACTA_CONTENT", "canary5d1f"),
        ("FACTA_CONTENT", "redacted"),
        ("FACTA_CLICKHOUSE_URL", "http://user:canary5d1f@host"),
        ("FACTA_LOG_LEVEL", "canary5d1f"),
        ("FACTA_MAX_BODY_BYTES", "-1"),
        ("FACTA_STORE_MEMORY_BYTES", "1"),
    ],
)
def test_an_error_names_the_setting_and_not_its_value(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        load()
    assert str(caught.value).startswith(f"{name}: ")
    assert "\n" not in str(caught.value)
    assert "canary" not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.0.2.1", False),
        ("localhost.example.org", False),
        ("", False),
    ],
)
def test_what_counts_as_loopback(host: str, loopback: bool) -> None:
    assert Settings(host=host).on_loopback is loopback


def test_a_token_is_not_shown() -> None:
    assert "canary" not in repr(Settings(token="canary"))


def test_every_setting_is_documented() -> None:
    document = markdown()
    for name, field in Settings.model_fields.items():
        assert field.description
        assert f"| `FACTA_{name.upper()}` |" in document
