"""The tree: known roots of RFC 6962, and the frontier against the recursive definition."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facta.ledger.merkle import EMPTY_ROOT, Frontier, node_of

# Certificate Transparency's reference inputs and roots (certificate-transparency, tree test data).
INPUTS = (
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
)
ROOTS = (
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
)
hashes = st.lists(st.binary(min_size=32, max_size=32), max_size=70)


def recursive_root(leaves: list[bytes]) -> bytes:
    if len(leaves) < 2:
        return leaves[0] if leaves else EMPTY_ROOT
    half = 1 << ((len(leaves) - 1).bit_length() - 1)
    return node_of(recursive_root(leaves[:half]), recursive_root(leaves[half:]))


def test_known_roots() -> None:
    tree = Frontier()
    assert tree.root().hex() == ROOTS[0]
    for size, text in enumerate(INPUTS, 1):
        tree.append(hashlib.sha256(b"\0" + bytes.fromhex(text)).digest())
        assert (tree.size, tree.root().hex()) == (size, ROOTS[size])


@given(hashes)
def test_the_frontier_has_the_root_of_the_definition(leaves: list[bytes]) -> None:
    tree = Frontier()
    tree.extend(leaves)
    assert tree.root() == recursive_root(leaves)
    assert len(tree.roots) == len(leaves).bit_count()


@given(hashes, st.integers(0, 70))
def test_a_frontier_that_was_kept_goes_on(leaves: list[bytes], at: int) -> None:
    tree = Frontier()
    tree.extend(leaves[:at])
    kept = Frontier.from_bytes(tree.to_bytes())
    copied = tree.copy()
    kept.extend(leaves[at:])
    assert kept.root() == recursive_root(leaves)
    assert copied == tree


@pytest.mark.parametrize("raw", [b"", b"\0" * 7, (1).to_bytes(8, "big"), bytes(8) + bytes(32)])
def test_bytes_that_are_no_frontier_are_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match="not a frontier"):
        Frontier.from_bytes(raw)
