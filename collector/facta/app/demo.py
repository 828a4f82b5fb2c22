"""`facta demo`: bundled agent runs through real OTLP/HTTP, and what comes of them."""

from facta.settings import Settings


def demo(settings: Settings, *, once: bool, keep: bool) -> int:
    raise NotImplementedError
