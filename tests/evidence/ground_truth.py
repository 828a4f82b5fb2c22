"""What a run's payloads hold, by the ground truth beside them, and what of it came out."""

import base64
import binascii
import hashlib
import json
import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tests.evidence.harness import DATA, Memory, Row, Tables, files_of

SEALED: dict[str, dict[str, Any]] = json.loads((DATA / "EXPECT.json").read_text())["sealed"]
LANES = {"evidence": "evidence.", "ux": "ux."}
_FACTS = ("chars", "sha256_of_text", "sha256_of_decoded_bytes")
_TEXTS = {SEALED[name]["sha256_of_text"] for name in SEALED}


@cache
def runs_that_are(name: str) -> frozenset[str]:
    """The runs that RUNS.tsv calls so: read, or not yet."""
    rows = [line.split("\t") for line in (DATA / "RUNS.tsv").read_text().splitlines()]
    return frozenset(run for run, which in rows if which == name)


@cache
def sessions_of(run: str) -> int | None:
    """How many sessions a run is: one but for those that SESSIONS.tsv names; None for any."""
    rows = [line.split("\t") for line in (DATA / "SESSIONS.tsv").read_text().splitlines()]
    told = {row[0]: row[1] for row in rows}.get(run, "1")
    return None if told == "any" else int(told)


@cache
def readable(run: str) -> str:
    """All text of a run's payloads, with the escapes of JSON undone as often as they are nested."""
    text = "\n".join(file.read_bytes().decode("utf-8", "replace") for _, file in files_of(run))
    for _ in range(4):
        text = text.replace('\\"', '"').replace("\\\\", "\\")
    return text


def _locations(run: str) -> list[list[str]]:
    rows = (DATA / "LOCATIONS.tsv").read_text().splitlines()[1:]
    return [cells for row in rows if (cells := (row + "\t" * 9).split("\t"))[0] == run]


def fragments(run: str) -> tuple[set[str], set[bytes]]:
    """Pieces of each sealed value that a run holds: of its text and hex, and of its bytes."""
    texts, raw = {"SEALEDCANARY"}, set()
    for found in set(re.findall(r"[A-Za-z0-9+/_=-]{64,}", readable(run))):
        value = found.split("__thought__")[-1]
        if "SEALEDCANARY" not in value and hashlib.sha256(value.encode()).hexdigest() not in _TEXTS:
            continue
        pieces = {value[at : at + 16] for at in range(0, len(value) - 16, 12)}
        texts |= pieces | {piece.encode().hex() for piece in pieces}
        try:
            data = base64.b64decode(value.replace("-", "+").replace("_", "/") + "==")
        except binascii.Error:
            continue
        raw |= {data[at : at + 12] for at in range(0, len(data) - 12, 12)}
    return texts, raw


@dataclass
class Outcome:
    """What came out of one run: its tables and what its ledger holds."""

    run: str
    tables: Tables
    ledger: Memory
    wrong: list[str] = field(default_factory=list)

    def rows(self, table: str) -> list[Row]:
        """The rows of a table."""
        return self.tables.get(table, [])

    def lane(self, name: str) -> str:
        """All text of one lane's tables."""
        shown = {t: rows for t, rows in self.tables.items() if t.startswith(LANES[name])}
        return json.dumps(shown, ensure_ascii=False)

    def say(self, holds: bool, line: str) -> None:
        """Note what is wrong."""
        if not holds:
            self.wrong.append(line)


def check(outcome: Outcome) -> list[str]:
    """What is wrong with a run, a line each."""
    for rule in (_sealed, _leaks, _summaries, _strays, _calls, _sessions):
        rule(outcome)
    return outcome.wrong


def _sealed(out: Outcome) -> None:
    seen = [
        (match[1], match[2])
        for row in _locations(out.run)
        for match in re.finditer(r"(\w+):([a-z,-]+?)x\d", row[7])
    ]
    whole = {name for name, state in seen if state.startswith("full")}
    shown = [s for s in out.rows("evidence.sightings") if s["state"] == "whole"]
    facts = {(s["size"], s["sha256"], s["sha256_decoded"]) for s in shown}
    decoded = {s["sha256_decoded"] for s in shown}
    for name in sorted(whole):
        want = tuple(SEALED[name][fact] for fact in _FACTS)
        given = want in facts or ((name, "full") not in seen and want[2] in decoded)
        out.say(given, f"{name} is not given back with its size and hashes")
    known = {SEALED[name]["sha256_of_decoded_bytes"] for name in SEALED}
    out.say(decoded <= known, "something is sealed as whole that is no sealed value")
    cut = {name for name, state in seen if state == "truncated"} - whole
    told = any(s["state"] == "truncated" for s in out.rows("evidence.sightings"))
    out.say(told or not cut, "a cut value is not told as truncated")


def _leaks(out: Outcome) -> None:
    texts, raw = fragments(out.run)
    lanes = [(name, out.lane(name)) for name in LANES]
    lanes += [("observations", _latin(o.body)) for o in out.ledger.observations]
    lanes += [(f"a kept {o.kind}", _latin(o.data)) for o in out.ledger.kept.values()]
    for place, text in lanes:
        out.say(not any(piece in text for piece in texts), f"a piece of a sealed value in {place}")
    for o in out.ledger.kept.values():
        out.say(not any(piece in o.data for piece in raw), f"sealed bytes in a kept {o.kind}")


def _latin(data: bytes) -> str:
    return data.decode("latin-1")


def _summaries(out: Outcome) -> None:
    summaries = json.dumps(out.rows("ux.summaries"), ensure_ascii=False)
    for canary in ("UXCANARY-1 ", "UXCANARY-1b ", "UXCANARY-3 "):
        if canary in readable(out.run):
            out.say(canary in summaries, f"{canary}is not among the summaries")
    out.say("UXCANARY" not in out.lane("evidence"), "a summary lies in the evidence lane")


def _strays(out: Outcome) -> None:
    ux, evidence = out.lane("ux"), out.lane("evidence")
    plain = any(row[1] == "UX" and "{text}" in row[4] for row in _locations(out.run))
    for canary in ("PROMPTCANARY", "ARGCANARY", "RESULTCANARY", "SYSCANARY"):
        out.say(canary not in ux, f"{canary} in the ux lane")
    for canary in ("PROMPTCANARY", "ARGCANARY", "RESULTCANARY", "ANSWERCANARY"):
        unclear = canary == "ANSWERCANARY" and plain and "may_be_summary" in ux
        there = canary not in readable(out.run) or canary in evidence or unclear
        out.say(there, f"{canary} in no evidence table")


def _calls(out: Outcome) -> None:
    for number in "123":
        if f"ARGCANARY-{number}" not in readable(out.run):
            continue
        calls = out.rows("evidence.tool_calls")
        found = [c for c in calls if f"ARGCANARY-{number}" in c["arguments"]]
        out.say(len(found) == 1, f"call {number} is there {len(found)} times")
        canary = f"RESULTCANARY-{number}"
        if canary in readable(out.run):
            there = [c for c in found if canary in (c["result"] or "")]
            out.say(len(there) == 1, f"result {number} is not at its call")


def _sessions(out: Outcome) -> None:
    want, found = sessions_of(out.run), len(out.rows("evidence.sessions"))
    out.say(want is None or found == want, f"{found} sessions")
