"""Every setting of Facta, from `FACTA_*` in the environment.

`python -m facta.settings` prints docs/settings.md. An error names the setting and never its value:
a token put into the wrong variable must not end in a log.
"""

import sys
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

MEBIBYTE = 1024 * 1024


class SettingsError(Exception):
    """A setting that cannot be used; the text is one line per setting, without values."""


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _whole_content(value: str) -> str:
    if value != "full":
        raise ValueError("only `full` can be kept so far")
    return value


def _no_server(value: str) -> str:
    if value:
        raise ValueError("only the embedded store can be used so far; leave it empty")
    return value


Port = Annotated[int, Field(ge=0, le=65535)]
LogLevel = Literal["debug", "info", "warning", "error"]


class Settings(BaseSettings):
    """The settings, each under its environment variable `FACTA_<NAME>`."""

    model_config = SettingsConfigDict(
        env_prefix="FACTA_",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    data: Path = Field(
        Path("facta-data"),
        description="Folder of the ledger and the embedded store. Made when it is missing.",
    )
    host: str = Field(
        "127.0.0.1",
        description="Address to listen on. Any other than loopback needs `FACTA_TOKENS`.",
    )
    http_port: Port = Field(4318, description="OTLP/HTTP, read API, `/health`, `/metrics`.")
    grpc_port: Port = Field(4317, description="OTLP/gRPC.")
    dashboard_port: Port = Field(8501, description="Dashboard.")
    clickhouse_url: Annotated[str, AfterValidator(_no_server)] = Field(
        "", description="ClickHouse server to project into. Empty: the embedded store."
    )
    tokens: Path | None = Field(
        None, description="File of hashed tokens, as `facta tokens create` writes it."
    )
    content: Annotated[str, AfterValidator(_whole_content)] = Field(
        "full", description="How much content of evidence is kept. Only `full` so far."
    )
    log_level: Annotated[LogLevel, BeforeValidator(_lower)] = Field(
        "info", description="`debug`, `info`, `warning` or `error`."
    )
    max_body_bytes: int = Field(
        64 * MEBIBYTE, gt=0, description="Largest request body after decompression; over it: 413."
    )
    max_backlog_rows: int = Field(
        5_000_000,
        gt=0,
        description="Observations that may wait for the store before senders get 503.",
    )
    store_memory_bytes: int = Field(
        4096 * MEBIBYTE,
        ge=512 * MEBIBYTE,
        description="Most memory that the embedded store may take.",
    )
    url: str = Field(
        "http://127.0.0.1:4318", description="For clients: where Facta serves its read API."
    )
    token: str = Field("", repr=False, description="For clients: the token to read with.")

    @property
    def on_loopback(self) -> bool:
        """Whether `host` can be reached from this machine alone."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False


def _variable(place: tuple[int | str, ...]) -> str:
    name = "_".join(str(part) for part in place).upper()
    return name if name.startswith("FACTA_") else f"FACTA_{name}"


def load() -> Settings:
    """The settings from the environment; raises SettingsError."""
    try:
        return Settings()
    except ValidationError as error:
        lines = [
            f"{_variable(problem['loc'])}: {problem['msg'].removeprefix('Value error, ')}"
            for problem in error.errors(include_input=False, include_url=False)
        ]
    raise SettingsError("\n".join(lines))


def markdown() -> str:
    """docs/settings.md."""
    rows = []
    for name, field in Settings.model_fields.items():
        default = "" if field.default in (None, "") else f"`{field.default}`"
        rows.append(f"| `FACTA_{name.upper()}` | {default} | {field.description} |")
    head = "# Settings\n\nAll are environment variables; none is needed on one machine.\n\n"
    return head + "| variable | default | what it does |\n|---|---|---|\n" + "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.stdout.write(markdown())
