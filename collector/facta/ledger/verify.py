"""Recomputes the ledger from its rows: ids and leaves from rows, the tree from leaves, commitments
from contents; and names what does not hold.

Whoever can write the files can also make them agree with each other again: that is found only by a
root that somebody else holds.
"""

import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import apsw

from facta.ledger.canonical import NotCanonicalError, decode_row, id_of, leaf_of, without_receipt
from facta.ledger.errors import LedgerDamagedError
from facta.ledger.merkle import Frontier
from facta.ledger.reader import Reader
from facta.ledger.zstd import decompress

_BATCH = 1_000

KeyPath = Callable[[str], Path]


def problems(reader: Reader, key_path: KeyPath) -> Iterator[str]:
    """What does not hold in a ledger, one line each, each kind from its first place on.

    `key_path` tells where a tenant's key lies. Writing may go on meanwhile: one state is read.
    """
    reader.index.execute("BEGIN")
    try:
        yield from _tree(reader, key_path)
        yield from _contents(reader)
    except LedgerDamagedError as error:
        yield str(error)
    except apsw.Error as error:
        yield f"a file of the ledger cannot be read ({type(error).__name__})"
    finally:
        reader.index.execute("ROLLBACK")


def _tree(reader: Reader, key_path: KeyPath) -> Iterator[str]:
    @cache
    def key(tenant: str) -> bytes | None:
        try:
            return key_path(tenant).read_bytes()
        except OSError:
            return None

    kept = Frontier.from_bytes(reader.index.execute("SELECT frontier FROM ledger").get)
    tree = Frontier()
    bad_row = bad_tree = False
    for batch in _leaf_batches(reader):
        rows = reader.raw_rows(batch[0][0], batch[-1][0])
        for seq, id_, leaf in batch:
            if seq != tree.size:
                yield f"seq {tree.size}: its leaf is missing"
                return
            tree.append(leaf)
            problem = "" if bad_row else _row_problem(rows.get(seq), id_, leaf, key)
            if problem:
                yield f"seq {seq}: {problem}"
                bad_row = True
    bad_tree = tree.root() != kept.root() or tree.size != kept.size
    if bad_tree:
        yield f"the leaves make a tree of {tree.size} with another root than the one of {kept.size} kept"


def _leaf_batches(reader: Reader) -> Iterator[list[tuple[int, bytes, bytes]]]:
    after = -1
    while batch := reader.leaves(after, _BATCH):
        yield batch
        after = batch[-1][0]


def _row_problem(
    row: bytes | None, id_: bytes, leaf: bytes, key: Callable[[str], bytes | None]
) -> str:
    if row is None:
        return "its row is missing"
    if leaf_of(row) != leaf:
        return "its row does not have its leaf's hash"
    try:
        tenant = decode_row(row)[0].tenant
    except NotCanonicalError:
        return "its row is not canonical"
    tenant_key = key(tenant)
    if tenant_key is None:
        return "its tenant's key is missing, so its id cannot be checked"
    if id_of(tenant_key, without_receipt(row)) != id_:
        return "its id is not that of its row"
    return ""


def _contents(reader: Reader) -> Iterator[str]:
    """Each object that the index names is where it says, and has its commitment."""
    names = dict(reader.index.execute("SELECT no, name FROM tenants"))
    sql = "SELECT no, hash, tenant FROM objects WHERE segment = ? ORDER BY no"
    for record in reader.segments():
        segment = reader.segment(record.no)
        for no, hash_, tenant in reader.index.execute(sql, (record.no,)):
            problem = _object_problem(segment, no, hash_, names.get(tenant))
            if problem:
                yield f"segment {record.no}, object {no}: {problem}"
                return


def _object_problem(segment: apsw.Connection, no: int, hash_: bytes, tenant: str | None) -> str:
    sql = "SELECT hash, tenant, salt, sha256, data FROM objects WHERE no = ?"
    row = segment.execute(sql, (no,)).fetchone()
    if row is None or row[4] is None:
        return "its data is missing"
    if (row[0], row[1]) != (hash_, tenant):
        return "it is not the one that the index names"
    salt, sha256, frame = row[2:]
    try:
        data = decompress(frame)
    except ValueError:
        return "its data cannot be decompressed"
    if sha256 and hashlib.sha256(data).digest() != sha256:
        return "its data has another hash"
    # Items and links have no salt: the room that makes their commitments checks them.
    if salt and hashlib.sha256(salt + data).digest() != hash_:
        return "its data has another commitment"
    return ""
