"""The list of conventions agrees with the code that reads them."""

import yaml

from facta.assets import ROOT
from facta.conventions import CONVENTIONS, effects


def test_every_convention_is_described() -> None:
    text = (ROOT / "schema" / "conventions" / "conventions.yaml").read_text(encoding="utf-8")
    described = {entry["name"] for entry in yaml.safe_load(text)}
    assert described == {c.NAME for c in CONVENTIONS} | {effects.NAME, "otel.log"}
    assert all(entry["yields"] and entry["cannot"] for entry in yaml.safe_load(text))
