"""The running collector: wires intake, ledger, store and API together."""

from facta.app.demo import demo
from facta.app.serve import up

__all__ = ["demo", "up"]
