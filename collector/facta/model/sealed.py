"""What is kept of a sealed value, and how its place is marked in the text around it.

The value itself (ciphertext, signature, compaction artefact) never leaves `sealing`. In its place
stands a mark that later rooms find and render. A mark holds a nonce drawn per record, so that text
from outside cannot forge one.
"""

import re
import secrets
from dataclasses import dataclass, field
from typing import Literal

State = Literal["whole", "truncated", "withheld", "redacted"]
SealedBy = Literal["place", "known", "structure", "shape"]


@dataclass(frozen=True, slots=True)
class Sealed:
    """One sighting's facts about a sealed value.

    `kind` says what it is (openai.reasoning, openai.compaction, anthropic.signature,
    anthropic.redacted_thinking, gemini.thought_signature, bedrock.reasoning, xai.reasoning,
    tool_sealed, handle, placeholder, unknown); `state` how it was seen. `size` counts characters
    of text, or bytes of bytes. `sha256` is of the text (or bytes) as received, `sha256_decoded` of
    the base64-decoded bytes; both lower-case hex, both empty unless `state` is "whole" (a cut
    value's hash must not be compared). `alphabet` is "standard", "url", "" (neither shown) or
    "bytes". `confidence` is 0..1.
    """

    kind: str
    state: State
    size: int
    sha256: str
    sha256_decoded: str
    alphabet: str
    sealed_by: SealedBy
    confidence: float

    def label(self) -> str:
        """The text that stands where the value stood: the same for the same sighting, always."""
        digest = f" sha256:{self.sha256[:16]}" if self.sha256 else ""
        return f"[sealed {self.kind} {self.state} {self.size}{digest}]"


@dataclass(slots=True)
class Marks:
    """The sealed values of one record, and the marks that stand for them in its strings."""

    nonce: str = field(default_factory=lambda: secrets.token_hex(6))
    sealed: list[Sealed] = field(default_factory=list)

    def add(self, sealed: Sealed) -> str:
        """Keep one sighting and return the mark to put in its place (safe inside JSON strings)."""
        self.sealed.append(sealed)
        return f"\ue000{self.nonce}:{len(self.sealed) - 1}\ue001"

    def _pattern(self) -> re.Pattern[str]:
        return re.compile(f"\ue000{self.nonce}:(\\d+)\ue001")

    def find(self, text: str) -> list[Sealed]:
        """The sealed values marked in `text`, in order."""
        if "\ue000" not in text:
            return []
        return [self.sealed[int(m[1])] for m in self._pattern().finditer(text)]

    def render(self, text: str) -> str:
        """`text` with every mark replaced by its label."""
        if "\ue000" not in text:
            return text
        return self._pattern().sub(lambda m: self.sealed[int(m[1])].label(), text)

    def is_mark(self, text: str) -> bool:
        """Whether `text` is one mark and nothing else."""
        return text.startswith("\ue000") and self._pattern().fullmatch(text) is not None
