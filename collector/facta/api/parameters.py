"""What the lists take in their query strings: filters, a time range, a page.

A filter is an exact value. Names that a list does not know are an error, so that a misspelt filter
never answers with everything.
"""

import calendar
import re
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

NANOSECOND = 1_000_000_000
_LATEST = 2**63 - 1
_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)


def nanoseconds(value: object) -> int:
    """A time as nanoseconds since 1970, from RFC 3339 or from the number itself."""
    text = str(value).strip()
    if re.fullmatch(r"\d{1,19}", text, re.ASCII):
        found = int(text)
    elif match := _RFC3339.fullmatch(text):
        day, clock, fraction, zone = match.groups()
        zone = "+00:00" if zone in "Zz" else zone
        try:
            at = datetime.fromisoformat(f"{day}T{clock}{zone}")
            found = calendar.timegm(at.utctimetuple()) * NANOSECOND
        except (ValueError, OverflowError):
            raise ValueError("no such time") from None
        found += int((fraction or "0").ljust(9, "0"))
    else:
        raise ValueError("a time is RFC 3339 (2026-01-31T12:00:00Z) or nanoseconds since 1970")
    if not 0 <= found <= _LATEST:
        raise ValueError("a time lies between 1970 and 2262")
    return found


def _until(value: object) -> int:
    """As `nanoseconds`; the first instant is asked for as the one after it, since 0 means no limit."""
    return max(nanoseconds(value), 1)


Time = Annotated[int, BeforeValidator(nanoseconds, json_schema_input_type=str)]
Until = Annotated[int, BeforeValidator(_until, json_schema_input_type=str)]
Text = Annotated[str, Field(max_length=4096)]


class Paged(BaseModel):
    """Which page of a list."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    limit: int = Field(100, ge=1, le=1000)
    cursor: str = Field("", max_length=16384)

    def given(self) -> dict[str, Any]:
        """The filters, by the names that the views bind them under."""
        return self.model_dump(exclude={"limit", "cursor"})


class InSession(Paged):
    """Filters of every list of a session's rows."""

    session_id: Text = ""
    service: Text = ""


class Timed(InSession):
    """With a time range: from `since` on, before `until`."""

    since: Time = 0
    until: Until = 0


class SessionFilter(Timed):
    model: Text = ""
    agent: Text = ""
    claim: Text = ""
    gap: Text = ""


class TurnFilter(Timed):
    turn_id: Text = ""
    provider: Text = ""
    request_model: Text = ""
    response_model: Text = ""
    response_id: Text = ""
    conversation_id: Text = ""
    agent: Text = ""
    trace_id: Text = ""


class ContextFilter(Timed):
    turn_id: Text = ""
    direction: Text = ""
    role: Text = ""


class CallFilter(Timed):
    turn_id: Text = ""
    call_id: Text = ""
    tool: Text = ""
    status: Text = ""
    trace_id: Text = ""


class EffectFilter(Timed):
    turn_id: Text = ""
    call_id: Text = ""
    operation: Text = ""
    target: Text = ""
    status: Text = ""
    basis: Text = ""
    trace_id: Text = ""


class RetrievalFilter(Timed):
    trace_id: Text = ""


class EvaluationFilter(Timed):
    turn_id: Text = ""
    name: Text = ""
    label: Text = ""
    reads: Text = ""
    trace_id: Text = ""


class TransitionFilter(Timed):
    name: Text = ""
    trace_id: Text = ""


class RefusalFilter(Timed):
    reason: Text = ""
    sha256: Text = ""
    trace_id: Text = ""


class ControlFilter(Paged):
    session_id: Text = ""
    rule: Text = ""
    path: Text = ""
    class_: Text = Field("", alias="class", serialization_alias="class")
    severity: Text = ""

    def given(self) -> dict[str, Any]:
        return self.model_dump(exclude={"limit", "cursor"}, by_alias=True)


class UxFilter(Timed):
    turn_id: Text = ""
    ux_kind: Text = ""
    direction: Text = ""


class SightingFilter(InSession):
    """`any_hash` is compared with both hashes."""

    turn_id: Text = ""
    direction: Text = ""
    kind: Text = ""
    state: Text = ""
    sealed_by: Text = ""
    sha256: Text = ""
    sha256_decoded: Text = ""
    any_hash: Text = ""
    since: Time = 0
    until: Until = 0
