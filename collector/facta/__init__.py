"""Facta: a flight recorder for AI agents that keeps what was done apart from what was said."""

__version__ = "0.1.0"
