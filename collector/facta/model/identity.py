"""Who sends, and what became of what they sent."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """A sender as its token names it: never as its telemetry claims."""

    tenant: str
    producer: str
    scopes: frozenset[str] = frozenset()


class Denied(Exception):  # noqa: N818 - named for what the sender is told
    """The sender may not do this. `status` is 401 or 403; `message` goes to the sender."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a batch that was taken.

    `rejected` counts the records that were refused after decoding, beyond `Batch.rejected`.
    `message` says why, in English, without a value from the payload; "" when there is nothing to
    say.
    """

    rejected: int = 0
    message: str = ""
