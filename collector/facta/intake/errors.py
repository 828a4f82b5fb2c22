"""Why something could not be taken in. No text here or made from here holds a payload's value."""

import hashlib

from facta.model.records import Refusal


class Refused(Exception):  # noqa: N818 - one item is refused; not an error of the program
    """One item cannot be read as it stands; the text is the reason."""

    @property
    def reason(self) -> str:
        """Why, in a few words."""
        return str(self)


class RecordRefused(Exception):  # noqa: N818 - as above
    """A whole span or log record is refused. `damaged`: its encoding is broken, not its ids only."""

    def __init__(self, reason: str, *, damaged: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.damaged = damaged


class DecodeFailed(Exception):  # noqa: N818 - named for what the sender is told
    """Nothing of a body can be decoded (HTTP 400)."""


class BodyTooLarge(Exception):  # noqa: N818 - as above
    """A body is over the limit, before or after decompression (HTTP 413)."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The body is over the limit of {limit} bytes after decompression. "
            "Do not send it again: send smaller batches, or raise the limit."
        )


class Unsupported(Exception):  # noqa: N818 - as above
    """A content type or content encoding that is not read here (HTTP 415)."""


def refusal(reason: str, place: str, raw: bytes | memoryview) -> Refusal:
    """The visible gap where `raw` stood."""
    return Refusal(reason, place, len(raw), hashlib.sha256(raw).hexdigest())
