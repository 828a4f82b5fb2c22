"""What is wrong with what arrives, and what to do about it."""

import shutil
import time
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request

from facta.api import models
from facta.api.access import Access, EvidenceReader, Reader
from facta.api.own import LedgerStatus

router = APIRouter(prefix="/api/v1")

SILENT_NS = 24 * 3600 * 1_000_000_000
"""How long after the newest session silence is a finding."""

BEHIND_ROWS = 1_000
"""How many observations may wait for the store before that is a finding."""

NEARLY_FULL_BYTES = 2 << 30
NEARLY_FULL_SHARE = 0.05

_HINTS = {
    "no content": (
        "its turns show neither what the model was given nor what it answered",
        "record content: OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true, or its like",
    ),
    "no session ids": (
        "its sessions are linked by what the model issued alone",
        "set the span attribute gen_ai.conversation.id (or session.id) in the agent",
    ),
    "sealed in plain telemetry": (
        "sealed values of the provider arrive here in plain telemetry",
        "Facta keeps their hashes alone, other backends keep the values: remove them at the source",
    ),
    "sealed by shape": (
        "values were sealed because they look sealed, not because of where they stood",
        "look at them with `facta sightings --sealed-by shape`: an ordinary value may be among them",
    ),
}
_ALL_OF_THEM = {"no content", "no session ids"}


@router.get("/doctor", response_model=models.Findings)
def doctor(request: Request, reader: EvidenceReader) -> Any:
    """What is wrong, each with a hint; no items when nothing is."""
    access: Access = request.app.state.access
    status: LedgerStatus = request.app.state.ledger_status()
    port = request.url.port or access.settings.http_port
    found = [
        *arrival(reader, time.time_ns(), port),
        *projection(status),
        *disk(access.settings.data),
    ]
    found += [finding for row in reader.rows("checks") if (finding := _counted(row))]
    return {"items": found}


def arrival(reader: Reader, now_ns: int, port: int = 4318) -> list[models.Finding]:
    """Whether anything came at all, and lately; `port` is where an agent would send to."""
    newest = reader.rows("sessions", limit=1)
    hint = f"point an agent here: OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:{port}"
    if not newest:
        return [models.Finding(check="nothing arriving", what="no session is known", hint=hint)]
    hours = (now_ns - newest[0]["ended_ns"]) // (SILENT_NS // 24)
    if hours < 24:  # noqa: PLR2004  a day, as SILENT_NS
        return []
    what = f"the newest session ended {hours:,} hours ago"
    return [models.Finding(check="nothing arriving", what=what, hint=hint)]


def projection(status: LedgerStatus) -> list[models.Finding]:
    """Whether the store keeps up with the ledger."""
    backlog = status.ledger_rows - status.projected_rows
    if backlog < BEHIND_ROWS:
        return []
    return [
        models.Finding(
            check="store behind",
            count=backlog,
            what=f"{backlog:,} observations wait for the store",
            hint="`facta up` catches up by itself; when the number grows, give it a faster disk",
        )
    ]


def disk(data: Path) -> list[models.Finding]:
    """Whether the data folder's disk has room; an unknown folder is no finding."""
    try:
        usage = shutil.disk_usage(data)
    except OSError:
        return []
    if usage.free >= min(NEARLY_FULL_BYTES, usage.total * NEARLY_FULL_SHARE):
        return []
    return [
        models.Finding(
            check="disk nearly full",
            what=f"{usage.free / 2**30:.1f} GiB of {usage.total / 2**30:.1f} GiB are free",
            hint="make room or move FACTA_DATA: with a full disk senders get 503",
        )
    ]


def _counted(row: dict[str, Any]) -> models.Finding | None:
    """A finding of counts; where some turns are well, the instrumentation is."""
    check, bad, total = row["check"], row["bad"], row["total"]
    if check in _ALL_OF_THEM and bad < total:
        return None
    what, hint = _HINTS[check]
    return models.Finding(
        check=check,
        subject=row["subject"],
        count=bad,
        what=f"{what} ({bad:,} of {total:,})",
        hint=hint,
    )
