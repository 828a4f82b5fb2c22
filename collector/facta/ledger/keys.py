"""Tenant keys: 32 random bytes a tenant, made once, on stable storage before they are first used.

They lie in `keys/` beside the ledger, in one file per tenant with mode 0600, named by the SHA-256 of
the tenant's name. Ids and salts are made with them, so a key that is lost cannot be made again:
a tenant that has rows but no key is an error.
"""

import hashlib
import secrets
import threading
from collections.abc import Callable
from pathlib import Path

from facta.ledger.errors import LedgerDamagedError
from facta.ledger.files import Files

KEY_BYTES = 32


class TenantKeys:
    """The keys in one directory; thread-safe. `has_rows` says whether a tenant is known already."""

    def __init__(self, directory: Path, files: Files, has_rows: Callable[[str], bool]) -> None:
        self._directory = directory
        self._files = files
        self._has_rows = has_rows
        self._keys: dict[str, bytes] = {}
        self._lock = threading.Lock()
        files.make_directory(directory)
        files.sync_directory(directory.parent)

    def key(self, tenant: str) -> bytes:
        """The tenant's key, 32 bytes. Raises OSError, or LedgerDamagedError when it was lost."""
        key = self._keys.get(tenant)
        if key is not None:
            return key
        with self._lock:
            if tenant not in self._keys:
                self._keys[tenant] = self._read(tenant) or self._make(tenant)
            return self._keys[tenant]

    def path(self, tenant: str) -> Path:
        """The file that holds (or will hold) the tenant's key."""
        name = hashlib.sha256(tenant.encode()).hexdigest()[:32]
        return self._directory / f"{name}.key"

    def _read(self, tenant: str) -> bytes | None:
        path = self.path(tenant)
        try:
            key = path.read_bytes()
        except FileNotFoundError:
            if self._has_rows(tenant):
                raise LedgerDamagedError(
                    f"the tenant key keys/{path.name} is missing: restore it from a backup"
                ) from None
            return None
        if len(key) != KEY_BYTES:
            raise LedgerDamagedError(
                f"the tenant key keys/{path.name} is not {KEY_BYTES} bytes: restore it from a backup"
            )
        # Its name may not be on stable storage yet if the process that made it was killed.
        self._files.sync_directory(self._directory)
        return key

    def _make(self, tenant: str) -> bytes:
        path = self.path(tenant)
        key = secrets.token_bytes(KEY_BYTES)
        unfinished = path.with_suffix(".new")
        self._files.write(unfinished, key)
        self._files.rename(unfinished, path)
        self._files.sync_directory(self._directory)
        return key
