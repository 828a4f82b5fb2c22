"""The dashboard: how to start it, and what its pages show, as plain values without Streamlit.

The pages themselves are the scripts in dashboard/. They hold no logic: they draw what this room
makes of the read API's answers.
"""

import os
import sys

from facta.assets import ROOT

SCRIPT = ROOT / "dashboard" / "app.py"

_OPTIONS = {
    "server.headless": "true",
    "server.showEmailPrompt": "false",
    "server.fileWatcherType": "none",
    "browser.gatherUsageStats": "false",
    "client.toolbarMode": "viewer",
    "client.showErrorDetails": "none",
    "client.showErrorLinks": "false",
    "client.disableDataExport": "true",
    "logger.level": "error",
}
_LOOPBACK = ("127.0.0.1", "localhost")


def dashboard_command(port: int, host: str) -> list[str]:
    """The command that serves the dashboard on `host`:`port`.

    Run it with `dashboard_environment`. What keeps the pages from loading or telling anything
    outside is given as options too, so that no configuration of the user's turns it around.
    On loopback only requests that name loopback are answered (DNS rebinding).
    """
    options = {"server.port": str(port), "server.address": host, **_OPTIONS}
    command = [sys.executable, "-m", "streamlit", "run", str(SCRIPT)]
    command += [f"--{name}={value}" for name, value in options.items()]
    if host in _LOOPBACK:
        command += [f"--server.allowedHosts={name}" for name in _LOOPBACK]
    return command


def dashboard_environment(url: str, token: str = "") -> dict[str, str]:
    """This process's environment with where the read API is, and the token to read it with."""
    return {**os.environ, "FACTA_URL": url, "FACTA_TOKEN": token}
