"""From a request's bytes to its outcome: what HTTP and gRPC have in common.

Everything that takes time runs in threads. Small bodies have threads enough to wait for the disk
together; a body over 1 MiB, before or after decompression, waits for one of two threads of its own,
so that large ones never stand in front of small ones and never fill the memory together.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import PurePath
from traceback import walk_tb

from facta.intake import json, protobuf
from facta.intake.answers import Form, Tally
from facta.intake.decompress import Inflated, inflate
from facta.intake.errors import BodyTooLarge, DecodeFailed
from facta.intake.limits import MEBIBYTE, Limits
from facta.intake.protobuf import Signal
from facta.model.identity import Identity, Outcome
from facta.model.records import Batch, Refusal

Accept = Callable[[Batch, Identity], Outcome]

LARGE = MEBIBYTE
_LARGE_THREADS = 2
_NOUNS = {"traces": "span", "logs": "log record"}

log = logging.getLogger("facta.intake")


@dataclass(frozen=True, slots=True)
class Delivery:
    """One request's body as it was sent, and how to read it."""

    signal: Signal
    form: Form
    coding: str
    chunks: Sequence[bytes]
    identity: Identity

    @property
    def size(self) -> int:
        """Bytes as sent."""
        return sum(map(len, self.chunks))

    def refusal(self, reason: str) -> Refusal:
        """The whole body as a visible gap."""
        digest = hashlib.sha256()
        for chunk in self.chunks:
            digest.update(chunk)
        return Refusal(reason, "body", self.size, digest.hexdigest())


class Receiver:
    """Decodes deliveries and hands them to `accept`, both in its own threads."""

    def __init__(self, accept: Accept, limits: Limits) -> None:
        self.limits = limits
        # At most so many large bodies are held while they arrive or wait.
        self.large_bodies = asyncio.Semaphore(2 * _LARGE_THREADS)
        self._accept = accept
        self._small = ThreadPoolExecutor(limits.threads, "facta-intake")
        self._large = ThreadPoolExecutor(_LARGE_THREADS, "facta-intake-large")

    async def receive(self, delivery: Delivery) -> Outcome:
        """Decode and accept. Raises DecodeFailed, BodyTooLarge, and what `accept` raises."""
        loop = asyncio.get_running_loop()
        small = min(LARGE, self.limits.body)
        if delivery.size <= small:
            outcome = await loop.run_in_executor(self._small, self._take_small, delivery, small)
            if outcome is not None:
                return outcome
        return await loop.run_in_executor(self._large, self._take, delivery)

    async def refuse(self, refusal: Refusal, identity: Identity) -> None:
        """Record a body that was not even read."""
        batch = Batch(refusals=[refusal])
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._small, self._accept, batch, identity)

    def close(self) -> None:
        """Wait for what is being taken in, and end the threads."""
        self._small.shutdown()
        self._large.shutdown()

    def _take_small(self, delivery: Delivery, limit: int) -> Outcome | None:
        """None when the body turns out to be large."""
        try:
            inflated = inflate(delivery.chunks, delivery.coding, limit)
        except BodyTooLarge:
            return None
        return self._read(delivery, inflated)

    def _take(self, delivery: Delivery) -> Outcome:
        try:
            inflated = inflate(delivery.chunks, delivery.coding, self.limits.body)
        except BodyTooLarge:
            reason = f"over the limit of {self.limits.body} bytes for a body"
            self._accept(Batch(refusals=[delivery.refusal(reason)]), delivery.identity)
            raise
        return self._read(delivery, inflated)

    def _read(self, delivery: Delivery, inflated: Inflated) -> Outcome:
        """Decode and accept slice by slice.

        When a later slice cannot be taken, the sender repeats the whole request; what was taken of
        it already is recognised by its ids.
        """
        tally = Tally(_NOUNS[delivery.signal])
        try:
            for batch in self._slices(delivery, inflated):
                outcome = Outcome()
                if batch.records or batch.refusals:
                    outcome = self._accept(batch, delivery.identity)
                tally.add(batch, outcome)
        except DecodeFailed:
            refusal = delivery.refusal("nothing in the body can be decoded")
            self._accept(Batch(refusals=[refusal]), delivery.identity)
            raise
        told = tally.outcome()
        if told.message:
            log.info("partly refused: %d %s(s) rejected", told.rejected, _NOUNS[delivery.signal])
        return told

    def _slices(self, delivery: Delivery, inflated: Inflated) -> Iterator[Batch]:
        decode = protobuf.decode_slices if delivery.form == "protobuf" else json.decode_slices
        kept = 0
        for batch in decode(inflated.data, delivery.signal, self.limits):
            kept += len(batch.records)
            yield batch
        if not inflated.damage:
            return
        if not kept:
            raise DecodeFailed(f"Nothing in the body can be decoded: {inflated.damage}.")
        yield Batch(refusals=[delivery.refusal(inflated.damage)])


def log_failure(error: BaseException) -> None:
    """Log where a program error happened: never its text, which may hold a payload's value."""
    frames = [
        f"{PurePath(frame.f_code.co_filename).name}:{line}"
        for frame, line in walk_tb(error.__traceback__)
    ]
    log.error("request failed: %s at %s", type(error).__name__, " < ".join(reversed(frames)))
