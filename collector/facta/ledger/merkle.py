"""The RFC 6962 (section 2.1) Merkle tree over leaf hashes, kept as its frontier.

The frontier is the list of roots of the perfect subtrees from left to right, one for each bit of
the size that is set: all that is needed to append a leaf and to compute the root.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

EMPTY_ROOT = hashlib.sha256(b"").digest()


def node_of(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node (32 bytes)."""
    return hashlib.sha256(b"\x01" + left + right).digest()


@dataclass(slots=True)
class Frontier:
    """A tree of `size` leaves, as the roots of its perfect subtrees, largest first."""

    size: int = 0
    roots: list[bytes] = field(default_factory=list)

    def append(self, leaf: bytes) -> None:
        """Add one leaf hash (32 bytes)."""
        size = self.size
        while size & 1:
            leaf = node_of(self.roots.pop(), leaf)
            size >>= 1
        self.roots.append(leaf)
        self.size += 1

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Add leaf hashes in order."""
        for leaf in leaves:
            self.append(leaf)

    def root(self) -> bytes:
        """The Merkle tree hash of all leaves (32 bytes)."""
        if not self.roots:
            return EMPTY_ROOT
        root = self.roots[-1]
        for left in reversed(self.roots[:-1]):
            root = node_of(left, root)
        return root

    def copy(self) -> "Frontier":
        """Another frontier of the same tree, to go on with."""
        return Frontier(self.size, list(self.roots))

    def to_bytes(self) -> bytes:
        """The size (8 bytes, big-endian), then the subtree roots."""
        return self.size.to_bytes(8, "big") + b"".join(self.roots)

    @classmethod
    def from_bytes(cls, raw: bytes) -> "Frontier":
        """The inverse of `to_bytes`. Raises ValueError when the lengths do not fit."""
        size = int.from_bytes(raw[:8], "big")
        if len(raw) != 8 + 32 * size.bit_count():
            raise ValueError("not a frontier: its length does not fit its size")
        return cls(size, [raw[at : at + 32] for at in range(8, len(raw), 32)])
