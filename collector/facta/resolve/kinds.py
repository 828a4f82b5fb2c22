"""What a readable reasoning text is (schema/conventions/ux_kinds.yaml)."""

import re
from functools import cache
from typing import cast

import yaml

from facta.assets import ROOT
from facta.model.facts import UxKind


@cache
def _rules() -> list[tuple[re.Pattern[str], re.Pattern[str], UxKind]]:
    path = ROOT / "schema" / "conventions" / "ux_kinds.yaml"
    return [
        (re.compile(rule["provider"]), re.compile(rule["model"]), cast("UxKind", rule["ux_kind"]))
        for rule in yaml.safe_load(path.read_text(encoding="utf-8"))
    ]


def ux_kind(provider: str, model: str) -> UxKind:
    """The kind of a provider's and model's reasoning text; "unknown" where no rule matches."""
    for by_provider, by_model, kind in _rules():
        if by_provider.fullmatch(provider.lower()) and by_model.fullmatch(model.lower()):
            return kind
    return "unknown"
