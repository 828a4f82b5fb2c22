"""What tests of several folders share."""

import os

import pytest
from hypothesis import settings

# Two shared cores make a deadline per example a matter of luck. Examples are drawn from a fixed
# seed in `make test`, so that a red run stays red; `make fuzz` draws new ones.
_FUZZING = "FUZZ_CASES" in os.environ
settings.register_profile("facta", deadline=None, derandomize=not _FUZZING, print_blob=True)
settings.load_profile("facta")


@pytest.fixture(scope="session")
def fuzz_cases() -> int:
    """How many inputs a fuzz test makes: 2,000, or FUZZ_CASES."""
    return int(os.environ.get("FUZZ_CASES", "2000"))


def pytest_make_parametrize_id(val: object) -> str | None:
    """Bytes are named by their length: what they hold (a gzip's clock) may differ between workers."""
    return f"{len(val)} bytes" if isinstance(val, bytes) else None
