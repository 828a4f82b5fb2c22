"""Errors that more than one room knows."""


class Unavailable(Exception):  # noqa: N818 - named for what the sender is told, not as an error
    """The request cannot be taken now; the sender may try again after `retry_after` seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"cannot take more now: try again after {retry_after} s")
        self.retry_after = retry_after
