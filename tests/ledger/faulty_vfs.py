"""A disk that forgets what was not synced and fails when it is told to, under SQLite and beside it.

`Disk` keeps, for each file, what is on stable storage and which writes since are only in the page
cache; and for each name, whether the directory that holds it was synced. The real files hold what
a process would see. `FaultyVFS` puts it under apsw, `FaultyFiles` under the ledger's other file
operations. `cut` makes a directory as it would be after a power cut, `killed` a disk as it is after
the process alone was killed.
"""

import errno
import random
import shutil
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import apsw

from facta.ledger.files import Files

Mode = Literal["dropped", "prefix", "pieces"]
MODES: tuple[Mode, ...] = ("dropped", "prefix", "pieces")
PIECE = 512
CODES = {
    "write": apsw.SQLITE_FULL,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "open": apsw.SQLITE_CANTOPEN,
    "delete": apsw.SQLITE_IOERR_DELETE,
}


@dataclass(slots=True)
class Content:
    """A file: its bytes on stable storage, and what came since, as (offset, data) or a new size."""

    stable: bytes = b""
    pending: list[tuple[int, bytes] | int] = field(default_factory=list)

    def sync(self) -> None:
        self.stable = self.after(self.pending)
        self.pending = []

    def after(self, operations: list[tuple[int, bytes] | int]) -> bytes:
        raw = bytearray(self.stable)
        for operation in operations:
            if isinstance(operation, int):
                del raw[operation:]
                raw.extend(bytes(operation - len(raw)))
                continue
            offset, data = operation
            raw.extend(bytes(max(0, offset - len(raw))))
            raw[offset : offset + len(data)] = data
        return bytes(raw)

    def survivor(self, mode: Mode, rng: random.Random) -> bytes:
        """What a power cut leaves: none of what is pending, a prefix, or pieces in any order."""
        if mode == "dropped":
            return self.stable
        if mode == "prefix":
            return self.after(self.pending[: rng.randint(0, len(self.pending))])
        return self.after([piece for piece in self._pieces() if rng.random() < 0.5])

    def _pieces(self) -> list[tuple[int, bytes] | int]:
        pieces: list[tuple[int, bytes] | int] = []
        for operation in self.pending:
            if isinstance(operation, int):
                pieces.append(operation)
                continue
            offset, data = operation
            pieces += [(offset + at, data[at : at + PIECE]) for at in range(0, len(data), PIECE)]
        return pieces


class PoweredOffError(OSError):
    """The disk is gone."""


class Disk:
    """The state of all files, the count of operations, and the fault to come.

    `fail` is (operation, n, times): the n-th operation of that name (from 1), and those after it up
    to `times`, raise and do nothing. `cut_at` is the number of the operation, of any name, before
    which the power goes, `cut_after` the number of operations from the first failure until then.
    `forgets` is a disk of which a failed sync loses what was pending for good, though processes
    still see it, as Linux does. `lies` is a disk whose sync does nothing.
    """

    def __init__(
        self,
        *,
        fail: tuple[str, int, int] | None = None,
        cut_at: int | None = None,
        cut_after: int | None = None,
        forgets: bool = False,
        lies: bool = False,
    ) -> None:
        self.now: dict[Path, Content] = {}
        self.stable: dict[Path, Content] = {}
        self.counts: Counter[str] = Counter()
        self.failed = 0
        self.off = False
        self._fail = fail
        self._cut_at = cut_at
        self._cut_after = cut_after
        self._forgets = forgets
        self._lies = lies
        self._lock = threading.RLock()

    def operation(self, name: str) -> None:
        """Count an operation; raise when it is the one to fail, or the disk is off."""
        with self._lock:
            if not self.off:
                self.counts[name] += 1
                self.off = self.counts.total() == self._cut_at
            if self.off:
                raise PoweredOffError(errno.EIO, "the disk is gone")
            if self._fail is None or name != self._fail[0]:
                return
            if self._fail[1] <= self.counts[name] < self._fail[1] + self._fail[2]:
                self.failed += 1
                if self._cut_after is not None and self._cut_at is None:
                    self._cut_at = self.counts.total() + self._cut_after
                raise OSError(errno.ENOSPC, "made to fail")

    def opened(self, path: Path, *, is_new: bool) -> None:
        with self._lock:
            if is_new:
                self.now[path] = Content()
            elif path not in self.now:
                self.now[path] = self.stable[path] = Content(path.read_bytes())

    def wrote(self, path: Path, operation: tuple[int, bytes] | int) -> None:
        with self._lock:
            if path in self.now:
                self.now[path].pending.append(operation)

    def synced(self, path: Path) -> None:
        with self._lock:
            if path in self.now and not self._lies:
                self.now[path].sync()

    def failed_to_sync(self, path: Path) -> None:
        with self._lock:
            if path in self.now and self._forgets:
                self.now[path].pending = []

    def removed(self, path: Path) -> None:
        with self._lock:
            self.now.pop(path, None)

    def renamed(self, source: Path, target: Path) -> None:
        with self._lock:
            self.now[target] = self.now.pop(source)

    def synced_directory(self, directory: Path) -> None:
        with self._lock:
            if self._lies:
                return
            for path in {*self.now, *self.stable}:
                if path.parent == directory:
                    self._sync_name(path)

    def _sync_name(self, path: Path) -> None:
        if path in self.now:
            self.stable[path] = self.now[path]
        else:
            del self.stable[path]

    def cut(self, source: Path, target: Path, mode: Mode, rng: random.Random) -> None:
        """Write into `target` what of `source` is there after a power cut."""
        for path in sorted({*self.now, *self.stable}):
            content = self.stable.get(path)
            if mode != "dropped" and rng.random() < 0.5:
                content = self.now.get(path)
            if content is not None:
                place = target / path.relative_to(source)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content.survivor(mode, rng))

    def killed(self, source: Path, target: Path) -> "Disk":
        """The disk after a kill, with `target` in the place of `source`: nothing seen is lost yet."""
        ignore = shutil.ignore_patterns("*-shm")
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=ignore)
        disk = Disk()
        copies = {id(c): Content(c.stable, list(c.pending)) for c in self._contents()}
        for mine, its in ((self.now, disk.now), (self.stable, disk.stable)):
            for path, content in mine.items():
                its[target / path.relative_to(source)] = copies[id(content)]
        return disk

    def _contents(self) -> list[Content]:
        return [*self.now.values(), *self.stable.values()]


class FaultyFile(apsw.VFSFile):
    def __init__(self, disk: Disk, name: str | apsw.URIFilename, flags: list[int]) -> None:
        path = Path(name.filename() if isinstance(name, apsw.URIFilename) else name)
        is_new = not path.exists()
        super().__init__("", name, flags)
        self._disk, self._path = disk, path
        log = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL
        # SQLite's own layer syncs the directory of a new log at the log's first sync.
        self._syncs_directory = is_new and bool(flags[0] & log)
        disk.opened(path, is_new=is_new)

    def excepthook(self, *_: object) -> bool:
        """SQLite goes on after some errors, as when it closes a file: those are nobody's news."""
        return True

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        _sqlite(self._disk, "write")
        super().xWrite(data, offset)
        self._disk.wrote(self._path, (offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        _sqlite(self._disk, "truncate")
        super().xTruncate(newsize)
        self._disk.wrote(self._path, newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        try:
            _sqlite(self._disk, "sync")
        except apsw.IOError:
            if not self._disk.off:
                self._disk.failed_to_sync(self._path)
            raise
        self._disk.synced(self._path)
        if self._syncs_directory:
            self._disk.synced_directory(self._path.parent)
            self._syncs_directory = False


class FaultyVFS(apsw.VFS):
    """Register it by making it, under `name`; keep it alive while it is in use."""

    def __init__(self, name: str, disk: Disk) -> None:
        self.name, self._disk = name, disk
        super().__init__(name, "")

    def excepthook(self, *_: object) -> bool:
        return True

    def xOpen(  # noqa: N802
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        if name is None:
            return apsw.VFSFile("", name, flags)
        _sqlite(self._disk, "open")
        return FaultyFile(self._disk, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        _sqlite(self._disk, "delete")
        super().xDelete(filename, syncdir)
        self._disk.removed(Path(filename))
        if syncdir:
            self._disk.synced_directory(Path(filename).parent)


def _sqlite(disk: Disk, name: str) -> None:
    try:
        disk.operation(name)
    except PoweredOffError:
        raise apsw.exception_for(apsw.SQLITE_IOERR) from None
    except OSError:
        raise apsw.exception_for(CODES[name]) from None


class FaultyFiles(Files):
    """The ledger's other file operations over the same disk, under names of their own."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def write(self, path: Path, data: bytes) -> None:
        self._disk.operation("file write")
        super().write(path, data)
        self._disk.opened(path, is_new=True)
        self._disk.wrote(path, (0, data))
        self._disk.synced(path)

    def rename(self, source: Path, target: Path) -> None:
        self._disk.operation("file rename")
        super().rename(source, target)
        self._disk.renamed(source, target)

    def unlink(self, path: Path) -> None:
        self._disk.operation("file unlink")
        super().unlink(path)
        self._disk.removed(path)

    def sync_directory(self, path: Path) -> None:
        self._disk.operation("directory sync")
        self._disk.synced_directory(path)

    def free_bytes(self, path: Path) -> int:
        self._disk.operation("disk usage")
        return super().free_bytes(path)
