from collections.abc import Iterator

import pytest
from tests.faults.lives import Nursery


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    """One forking process for the tests of a module."""
    made = Nursery()
    yield made
    made.close()
