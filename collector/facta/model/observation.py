"""Observations: what the ledger holds, and the objects that they refer to.

A text never stands in an observation: its commitment does. Texts, items and the links of item
lists are *objects*, kept once per tenant under their commitment, so a request that repeats a long
history costs only what is new in it.
"""

import hashlib
import hmac
from dataclasses import dataclass
from typing import Literal

ObjectKind = Literal["deed", "text", "ux", "item", "link"]


@dataclass(frozen=True, slots=True)
class Object:
    """Something kept once per distinct content and tenant.

    `commit` is 64 hex digits. `kind` says how it was used: deed (argument, result, effect: always
    evidence), text (message text: evidence unless it is known as ux), ux (summary or thinking
    text), item (canonical JSON of one item), link (one link of an item list: parent and item).
    The same commit may come with several kinds. `salt` and `sha256` are empty for item and link.
    """

    commit: str
    kind: ObjectKind
    data: bytes
    salt: str = ""
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """One statement, never changed: who says it, about which span, and what (canonical JSON in `body`).

    `kind` is turn, call, effect, retrieval, evaluation, transition, aside, span or refusal.
    `id` is 32 hex digits: HMAC over the canonical row with the tenant's key, so that the same
    statement has the same id wherever and whenever it arrives. Times are the sender's nanoseconds.
    """

    tenant: str
    producer: str
    service: str
    observer: str
    kind: str
    convention: str
    scope_name: str
    scope_version: str
    schema_url: str
    trace_id: str
    span_id: str
    parent_span_id: str
    session: str
    start_ns: int
    end_ns: int
    body: bytes
    id: str = ""


@dataclass(frozen=True, slots=True)
class Append:
    """What one request adds to the ledger: observations in order, with the objects they need."""

    observations: list[Observation]
    objects: list[Object]


def salt_of(tenant_key: bytes, sha256: str) -> str:
    """The salt of a content, 32 hex digits: the same content has the same salt."""
    return hmac.new(tenant_key, bytes.fromhex(sha256), hashlib.sha256).hexdigest()[:32]


def commit_of(tenant_key: bytes, content: bytes) -> tuple[str, str, str]:
    """(commit, salt, sha256) of a content: commit = sha256(salt || content), all as hex."""
    sha256 = hashlib.sha256(content).hexdigest()
    salt = salt_of(tenant_key, sha256)
    return hashlib.sha256(bytes.fromhex(salt) + content).hexdigest(), salt, sha256
