"""The read API over HTTP: lists, sessions, timelines; tokens and their scopes; a client of it."""

from facta.api.app import create_app
from facta.api.own import LedgerStatus
from facta.api.tokens import Token, TokenError, Tokens

__all__ = ["LedgerStatus", "Token", "TokenError", "Tokens", "create_app"]
