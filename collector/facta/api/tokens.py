"""Tokens: who may send or read what. The file keeps their hashes only.

A token is `facta_` and 32 random bytes; it is shown once, when it is made. The file is read again
whenever it changes, so a revoked token stops working without a restart.
"""

import hashlib
import hmac
import os
import secrets
import tempfile
import threading
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from facta.model.identity import Denied, Identity

SCOPES = ("ingest", "evidence", "ux", "admin")
PREFIX = "facta_"

OPEN = Identity("default", "local", frozenset(SCOPES))
"""Whoever asks when there are no tokens."""


class TokenError(Exception):
    """A token file that cannot be used, or an id that is not in it; one line, no secrets."""


class Token(BaseModel):
    """What is kept of a token; `hash` is the sha256 of its text, as hex."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    id: str
    hash: str = Field(pattern=r"^[0-9a-f]{64}$", repr=False)
    tenant: str
    producer: str
    scopes: list[str]
    created: str

    def identity(self) -> Identity:
        """Whom the token names."""
        return Identity(self.tenant, self.producer, frozenset(self.scopes))


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    tokens: list[Token]


class Tokens:
    """The tokens of one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._stamp: tuple[int, int, int] | None = None
        self._tokens: list[Token] = []

    def all(self) -> list[Token]:
        """The tokens as the file has them now (none where it is missing); raises TokenError."""
        with self._lock:
            try:
                stat = self.path.stat()
                if stat.st_mode & 0o022:
                    raise TokenError(f"{self.path.name}: others may write it; chmod 600")
                stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
                if stamp != self._stamp:
                    data = self.path.read_bytes()
                    self._tokens, self._stamp = _File.model_validate_json(data).tokens, stamp
            except FileNotFoundError:
                self._tokens, self._stamp = [], None
            except (OSError, ValidationError):
                raise TokenError(f"{self.path.name}: not a readable file of tokens") from None
            return list(self._tokens)

    def find(self, authorization: str) -> Token:
        """The token that an Authorization header carries; raises Denied.

        Every hash is compared, so that the time taken says nothing about which one was near.
        """
        scheme, _, text = authorization.partition(" ")
        if scheme.lower() != "bearer" or not text.strip():
            raise Denied(401, "a token is needed: Authorization: Bearer facta_…")
        digest = _hash(text.strip())
        try:
            known = self.all()
        except TokenError:
            raise Denied(401, "the file of tokens cannot be read here") from None
        found = [token for token in known if hmac.compare_digest(token.hash, digest)]
        if not found:
            raise Denied(401, "this token is not known here")
        return found[0]

    def identify(self, authorization: str) -> Identity:
        """Whom an Authorization header names; raises Denied."""
        return self.find(authorization).identity()

    def create(self, scopes: list[str], tenant: str = "default", producer: str = "") -> str:
        """Make a token and keep its hash; the token's text, which is never to be had again."""
        if not scopes or not set(scopes) <= set(SCOPES):
            raise TokenError(f"a scope is one of {', '.join(SCOPES)}")
        if not tenant:
            raise TokenError("a tenant has a name")
        text = PREFIX + secrets.token_urlsafe(32)
        number = secrets.token_hex(4)
        made = Token(
            id=number,
            hash=_hash(text),
            tenant=tenant,
            producer=producer or number,
            scopes=sorted(set(scopes), key=SCOPES.index),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        self._write([*self.all(), made])
        return text

    def revoke(self, number: str) -> None:
        """Forget the token of that id; raises TokenError when there is none."""
        known = self.all()
        kept = [token for token in known if token.id != number]
        if len(kept) == len(known):
            raise TokenError("no token has this id; `facta tokens list` shows them")
        self._write(kept)

    def _write(self, tokens: list[Token]) -> None:
        """Replace the file at once: a reader sees the old or the new one, whole."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        data = _File(tokens=tokens).model_dump_json(indent=2).encode()
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=".tokens-")
        try:
            with os.fdopen(handle, "wb") as file:  # mkstemp makes it 0600
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self.path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def required(path: Path | None, *, on_loopback: bool) -> Tokens | None:
    """The tokens to check, or None where everything is open (loopback, no file named).

    Raises TokenError where Facta must not start: no tokens on any other address, a file without
    a token, a file that cannot be read.
    """
    if path is None:
        if on_loopback:
            return None
        raise TokenError(
            "FACTA_HOST is not loopback: set FACTA_TOKENS to a file made by `facta tokens create`"
        )
    tokens = Tokens(path)
    if not tokens.all():
        raise TokenError("the file in FACTA_TOKENS has no token; make one: `facta tokens create`")
    return tokens


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
