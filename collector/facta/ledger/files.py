"""The file operations that SQLite does not do itself, in one place so that tests can fault them."""

import fcntl
import os
import shutil
from pathlib import Path

from facta.ledger.errors import LedgerLockedError


class Files:
    """File operations on the ledger's directory. All raise OSError."""

    def make_directory(self, path: Path) -> None:
        """Make a directory that only its owner can enter, and its parents, where missing."""
        path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def write(self, path: Path, data: bytes) -> None:
        """Write a whole file that only its owner can read, and fsync it."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        """Give a file its final name (durable after `sync_directory`)."""
        source.rename(target)

    def unlink(self, path: Path) -> None:
        """Remove a file if it is there (durable after `sync_directory`)."""
        path.unlink(missing_ok=True)

    def sync_directory(self, path: Path) -> None:
        """Put the names in a directory on stable storage."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def free_bytes(self, path: Path) -> int:
        """Bytes that can still be written on the file system that holds `path`."""
        return shutil.disk_usage(path).free

    def used_bytes(self, path: Path) -> int:
        """Bytes in all files directly in a directory."""
        return sum(entry.stat().st_size for entry in os.scandir(path) if entry.is_file())


class Lock:
    """An exclusive lock on a directory, held by the kernel until this process ends or releases it."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(self._descriptor, 20).decode("ascii", "replace").strip() or "unknown"
            os.close(self._descriptor)
            raise LedgerLockedError(
                f"the ledger in {path.parent} is in use by process {holder}: "
                "stop it, or set another data directory"
            ) from None
        os.truncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let another process have the directory; once is enough."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
