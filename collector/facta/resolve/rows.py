"""The rows of the resolved tables, one function a table; columns as in schema/migrations."""

import hashlib
from typing import Any

import orjson

from facta.resolve.calls import Call, Value, chosen
from facta.resolve.chains import Chains, Link
from facta.resolve.effects import Effect
from facta.resolve.holes import Ux
from facta.resolve.sessions import Session
from facta.resolve.turns import RANK, Seen, Turn

Row = dict[str, Any]
_INNER = {"twin", "streamed_apart"}  # how a turn was put together is not part of what it was
INLINE = 16_384


def key_of(*parts: object) -> str:
    """A row's identity inside its session."""
    text = "\x00".join(str(part) for part in parts)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def preview(text: str) -> str:
    """A text as it stands in a row: whole up to INLINE characters, then cut (the commit has it all)."""
    return text if len(text) <= INLINE else text[:INLINE]


def turn_row(turn: Turn, delta: tuple[str, int, bool]) -> Row:
    """A turn; `delta` is (turn that has the same first items, how many, whether history was rewritten)."""
    row: Row = {name: turn.setting(name) for name in _TEXTS}
    row = {name: value if isinstance(value, str) else "" for name, value in row.items()}
    row |= {
        name: turn.usage(name)
        for name in ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")
    }
    row |= _lists(turn) | _side("request", turn.request) | _side("response", turn.response)
    attempt, cost = turn.setting("attempt"), turn.setting("reported_cost")
    return row | {
        "session_id": turn.session,
        "row_key": turn.turn_id,
        "turn_id": turn.turn_id,
        "ordinal": turn.ordinal,
        "parent_turn_id": turn.parent.turn_id if turn.parent else "",
        "link_basis": turn.basis,
        "service": turn.service,
        "agent": turn.first("agent"),
        "response_id": turn.first("response_id"),
        "store": turn.setting("store"),
        "background": turn.setting("background"),
        "include": turn.setting("include") or [],
        "attempt": int(attempt)
        if isinstance(attempt, (int, float)) and 0 <= attempt < 2**32
        else None,
        "reported_cost": float(cost) if isinstance(cost, (int, float)) else None,
        "started_ns": turn.started_ns,
        "ended_ns": turn.ended_ns,
        "error": turn.first("error"),
        "instructions_commit": turn.first("instructions"),
        "tools_commit": turn.first("tools"),
        "context_of": delta[0],
        "context_kept": delta[1],
        "context_rewritten": delta[2],
    }


_TEXTS = (
    "provider", "surface", "protocol", "endpoint", "deployment", "api", "operation", "request_model",
    "response_model", "previous_response_id", "conversation_id", "effort", "thinking", "reasoning_context",
)  # fmt: skip


def _side(name: str, items: Row | None) -> Row:
    return {
        f"{name}_head": items["head"] if items else "",
        f"{name}_items": items["n"] if items else None,
    }


def _lists(turn: Turn) -> Row:
    seen = turn.seen
    reasons: list[str] = next(
        (s.body["finish_reasons"] for s in seen if s.body["finish_reasons"]), []
    )
    hidden = [
        name
        for name, side in (("request", turn.request), ("response", turn.response))
        if side is None
    ]
    return {
        "finish_reasons": reasons,
        "observers": sorted({s.o.observer for s in seen}),
        "conventions": sorted({s.o.convention for s in seen}),
        "scopes": sorted({f"{s.o.scope_name} {s.o.scope_version}".strip() for s in seen}),
        "schema_urls": sorted({s.o.schema_url for s in seen if s.o.schema_url}),
        "trace_ids": sorted(turn.traces),
        "span_ids": sorted({s.o.span_id for s in seen if s.o.span_id}),
        "not_observable": hidden,
        "flags": sorted(
            {flag for s in seen for flag in s.body["flags"] if flag not in _INNER} | _conflict(turn)
        ),
        "attributes_commit": sorted(
            {s.body["attributes"] for s in seen if s.body.get("attributes")}
        ),
    }


def _conflict(turn: Turn) -> set[str]:
    """One span told twice with different responses is a conflict."""
    told: dict[tuple[str, str, str, str], set[str]] = {}
    for s in turn.seen:
        cut = any("truncated" in flag for flag in s.body["flags"])
        if s.body.get("response") and s.body["role"] == "whole" and s.o.span_id and not cut:
            key = (s.o.trace_id, s.o.span_id, s.o.scope_name, s.o.scope_version)
            told.setdefault(key, set()).add(s.body["response"]["head"])
    return {"conflict"} if any(len(heads) > 1 for heads in told.values()) else set()


def context_row(turn: Turn, direction: str, link: Link, chains: Chains, ux: Ux) -> Row:
    """One item of a turn; texts of the ux lane are named by commitment and size alone."""
    return {
        "session_id": turn.session,
        "row_key": key_of(turn.turn_id, direction, link.depth),
        "turn_id": turn.turn_id,
        "direction": direction,
        "position": link.depth,
        "prefix_hash": link.name,
        "role": link.item["role"],
        "item_id": link.item.get("id", ""),
        "parts": orjson.dumps([shown_part(p, chains, ux) for p in link.item["parts"]]).decode(),
    }


_NAMES = (("commit", "t"), ("size", "n"), ("call_id", "c"), ("tool", "o"), ("is_error", "e"))


def shown_part(part: Row, chains: Chains, ux: Ux) -> Row:
    """A part with its text inline where it is evidence, with holes where it holds summaries."""
    out: Row = {"kind": part["k"]}
    out |= {long: part[short] for long, short in _NAMES if short in part}
    if "s" in part:
        out["sealed"] = [dict(zip(_SEALED, s, strict=True)) for s in part["s"]]
    deed = part["k"] in ("call", "result")
    if part["k"] == "reasoning" or (not deed and part.get("t") in ux.texts):
        return out | {"ux": True}
    if "t" not in part:
        return out
    text = chains.text(part["t"])
    if text is None:
        return out | {"erased": True}
    shown, holes = (text, []) if deed else ux.cut(part["t"], text)
    if holes:
        return out | {"text": shown, "cut": False, "holes": [hole._asdict() for hole in holes]}
    return out | {"text": preview(text), "cut": len(text) > INLINE}


_SEALED = (
    "kind",
    "state",
    "size",
    "sha256",
    "sha256_decoded",
    "alphabet",
    "sealed_by",
    "confidence",
)


def sighting_row(
    session: str,
    turn_id: str,
    direction: str,
    place: tuple[str, int, str, str],
    sealed: list[Any],
    observers: list[str],
) -> Row:
    """One sealed value at one place; `place` is (position, item, prefix hash, attribute)."""
    position, item, prefix, attribute = place
    row = dict(zip(_SEALED, sealed, strict=True))
    return row | {
        "session_id": session,
        "row_key": key_of(
            turn_id, direction, position, attribute if not position else "", *sealed[:5]
        ),
        "turn_id": turn_id,
        "direction": direction,
        "position": position,
        "item": item,
        "prefix_hash": prefix,
        "place": attribute,
        "observers": observers,
    }


def call_row(call: Call, session: str, chains: Chains) -> Row:
    """A call with what was asked, what came back, and by whom each is known."""
    arguments, args_conflict, args_changed = chosen(call.arguments)
    result, result_conflict, result_changed = chosen(call.results)
    flags = set(call.flags)
    flags |= {"arguments_changed_later"} if args_changed else set()
    flags |= {"result_changed_later"} if result_changed else set()
    flags |= {"arguments_may_be_truncated"} if arguments and arguments.cut else set()
    flags |= {"result_may_be_truncated"} if result and result.cut else set()
    whole = [v for v in call.arguments if not v.cut]
    if len({v.commit for v in whole}) > len({v.canonical for v in whole}):
        flags.add("raw_bytes_changed")
    flags |= {"result_not_observed"} if result is None else set()
    conflict = args_conflict or result_conflict
    spans = sorted(call.spans, key=Seen.order)
    status, error = _status(call, spans, result, chains)
    starts = [s.o.start_ns for s in spans if s.o.start_ns]
    return {
        "session_id": session,
        "row_key": key_of(call.key),
        "turn_id": call.turn.turn_id if call.turn else "",
        "call_id": call.call_id,
        "tool": call.tool,
        "arguments": preview(_text(arguments, chains)),
        "arguments_commit": arguments.commit if arguments else "",
        "arguments_canonical": arguments.canonical if arguments else "",
        "arguments_observer": arguments.observer if arguments else "",
        "result": preview(_text(result, chains)) if result else None,
        "result_commit": result.commit if result else "",
        "result_observer": result.observer if result else "",
        "result_turn_id": result.turn_id if result else "",
        "status": status,
        "error": error,
        "started_ns": min(starts) if starts else (call.turn.ended_ns if call.turn else 0),
        "duration_ns": next(
            (s.body["duration_ns"] for s in spans if s.body["duration_ns"] is not None), None
        ),
        "observers": sorted(
            {v.observer for v in call.arguments + call.results} | {s.o.observer for s in spans},
            key=lambda o: RANK.get(o, 9),
        ),
        "conflict": conflict,
        "alternatives": _alternatives(call, chains) if conflict else "",
        "flags": sorted(flags | ({"not_executed"} if status == "rejected" else set())),
        "trace_id": spans[0].o.trace_id if spans else "",
        "span_id": spans[0].o.span_id if spans else "",
    }


def _text(value: Value | None, chains: Chains) -> str:
    return (chains.text(value.commit) or "") if value else ""


_REFUSALS = (
    "the user doesn't want to proceed", "user rejected tool use", "the user doesn't want to take this action",
    "permission denied by user", "tool call rejected by user", "exec command rejected by user",
)  # fmt: skip
_REJECTED = {"reject", "rejected", "denied", "deny", "abort", "aborted", "user_reject"}


def _status(call: Call, spans: list[Seen], result: Value | None, chains: Chains) -> tuple[str, str]:
    if any(s.body["decision"].lower() in _REJECTED for s in call.decisions):
        return "rejected", ""
    told = [s.body["status"] for s in spans if s.body["status"]]
    if told:
        worst = "error" if "error" in told else told[0]
        return worst, next((s.body["error"] for s in spans if s.body["error"]), "")
    if result is None:
        return "proposed", ""
    if result.is_error:
        text = _text(result, chains)[:200].strip().lower()
        return ("rejected" if text.startswith(_REFUSALS) else "error"), ""
    return "returned", ""


def _alternatives(call: Call, chains: Chains) -> str:
    out = [
        {
            "what": what,
            "observer": v.observer,
            "commit": v.commit,
            "text": preview(_text(v, chains)),
        }
        for what, values in (("arguments", call.arguments), ("result", call.results))
        for v in values
        if v.observer != "later_request"
    ]
    return orjson.dumps(sorted(out, key=lambda v: (v["what"], v["observer"], v["commit"]))).decode()


def effect_row(effect: Effect, session: str) -> Row:
    """An effect with its strongest basis, and the statuses that exclude each other."""
    told = sorted(effect.told, key=Seen.order)
    basis = effect.basis
    shown = [
        {"service": s.o.service, "basis": s.body["basis"], "status": s.body["status"]} for s in told
    ]
    return {
        "session_id": session,
        "row_key": effect.key,
        "call_id": effect.call.call_id if effect.call else told[0].body["call_id"],
        "turn_id": effect.call.turn.turn_id if effect.call and effect.call.turn else "",
        "operation": effect.operation,
        "target": effect.target,
        "status": effect.statuses[0] if effect.statuses else "",
        "basis": basis,
        "observer": told[0].o.observer,
        "service": told[0].o.service,
        "started_ns": min(s.o.start_ns for s in told),
        "ended_ns": max(s.o.end_ns for s in told),
        "flags": ["conflict"] if basis == "conflict" else [],
        "alternatives": orjson.dumps(shown).decode() if basis == "conflict" else "",
        "trace_id": told[0].o.trace_id,
        "span_id": told[0].o.span_id,
    }


def session_row(
    session: Session, counts: dict[str, int], calls: list[Call], gaps: list[str]
) -> Row:
    """A session with what it holds."""
    seen = [s for t in session.turns for s in t.seen] + [s for c in calls for s in c.spans]
    models = {
        m
        for t in session.turns
        for m in (t.setting("response_model") or t.setting("request_model"),)
        if m
    }
    return {
        "session_id": session.session_id,
        "row_key": "session",
        "service": session.service,
        "basis": sorted(session.bases) or ["single"],
        "claims": sorted(session.claims),
        "aliases": sorted(session.aliases),
        "agents": sorted({t.first("agent") for t in session.turns} - {""}),
        "models": sorted(models),
        "started_ns": min((s.o.start_ns for s in seen if s.o.start_ns), default=0),
        "ended_ns": max((s.o.end_ns for s in seen), default=0),
        "turns": len(session.turns),
        "gaps": gaps,
        **counts,
    }
