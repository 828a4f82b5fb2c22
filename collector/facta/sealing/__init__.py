"""Sealing: the room after which nothing holds a provider's ciphertext any more.

`seal` takes a record as `intake` made it and gives it back with a mark (model/sealed.py) where each
sealed value stood. What is kept of a value is its size, its hashes and how it was seen.
"""

from facta.sealing.digest import Facts, facts
from facta.sealing.seal import classify, seal

__all__ = ["Facts", "classify", "facts", "seal"]
