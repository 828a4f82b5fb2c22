"""What links one observation to another: claims, traces, and items that a model issued.

A *link key* names something issued (a response id, a call id, a sealed value, the list that ends in
an answer); the turn that issued it and the requests that carry it share the key. Equal prompts give
no key. Call ids that are mere counters (`call_0`) are no key of their own: there the context counts.
"""

import re
from typing import Any, NamedTuple

from facta.model.observation import Observation
from facta.resolve.chains import EMPTY, Chains, extend

WINDOW = 64
_NO_STATE = {"placeholder", "handle"}
_LONG, _DRAWN = 20, 6  # characters of an id, and of its last piece, that a counter does not reach
_STRONG = re.compile(r"[A-Za-z0-9+/=]*[A-Za-z][A-Za-z0-9+/=]*")


class Key(NamedTuple):
    """One link key: its basis, the service it holds within ("" for every one), and its value."""

    basis: str
    service: str
    value: str


def strong(call_id: str) -> bool:
    """Whether a call id is drawn at random, so that it names one call and no other."""
    tail = re.split(r"[_\-:.]", call_id)[-1]
    return len(call_id) >= _LONG or (
        len(tail) >= _DRAWN and _STRONG.fullmatch(tail) is not None and not tail.isalpha()
    )


def _sealed(part: dict[str, Any]) -> list[str]:
    return [
        s[4] or s[3]
        for s in part.get("s", ())
        if s[1] == "whole" and s[0] not in _NO_STATE and (s[4] or s[3])
    ]


def issued(o: Observation, body: dict[str, Any], chains: Chains) -> list[Key]:
    """The keys of what a turn's response issued."""
    out: list[Key] = []
    if body.get("response_id"):
        out.append(Key("response_id", o.service, body["response_id"]))
    response, request = body.get("response"), body.get("request")
    if not response:
        return out
    before = chains.link(request["head"]) if request else None
    context = start = before.context if before else EMPTY
    for link in chains.items(response["head"]):
        context = extend(context, link.item)
        for part in link.item["parts"]:
            if part["k"] == "call" and strong(part.get("c", "")):
                out.append(Key("call_id", o.service, part["c"]))
            out += [Key("sealed", o.service, name) for name in _sealed(part)]
    if context != start and request:
        out.append(Key("context", o.service, context))
    return out


def used(o: Observation, body: dict[str, Any], chains: Chains) -> list[Key]:
    """The keys of what a turn's request carries, latest first."""
    out: list[Key] = []
    previous = body["settings"].get("previous_response_id")
    if previous:
        out.append(Key("response_id", o.service, previous))
    request = body.get("request")
    answered = False
    for link in chains.back(request["head"], WINDOW) if request else ():
        role = link.item["role"]
        if role == "assistant" and not answered:
            out.append(Key("context", o.service, link.context))
        answered = role == "assistant"
        for part in reversed(link.item["parts"]):
            if part["k"] in ("call", "result") and strong(part.get("c", "")):
                out.append(Key("call_id", o.service, part["c"]))
            out += [Key("sealed", o.service, name) for name in _sealed(part)]
    return list(dict.fromkeys(out))


def both(o: Observation, body: dict[str, Any], chains: Chains) -> tuple[list[Key], list[Key]]:
    """(issued, used) of an observation's own lists, worked out once."""
    if not o.id or o.id not in chains.keys:
        chains.keys[o.id] = (issued(o, body, chains), used(o, body, chains))
    found: tuple[list[Key], list[Key]] = chains.keys[o.id]
    return found


def cluster_keys(o: Observation, body: dict[str, Any], chains: Chains) -> list[str]:
    """Everything by which an observation may belong together with others, as texts.

    Observations that share one of these are resolved together; whether they are of one session is
    decided there.
    """
    out = [f"trace {o.trace_id}"] if o.trace_id else []
    if o.session:
        out.append(f"claim {o.service} {o.session}")
    if o.kind == "turn":
        keys = [key for keys in both(o, body, chains) for key in keys]
        out += [" ".join(key) for key in keys]
        out += [
            f"anywhere {key.basis} {key.value}"
            for key in keys
            if key.basis in ("call_id", "response_id")
        ]
        if body.get("request") and (not body.get("response") or "streamed_apart" in body["flags"]):
            out.append(f"asked {o.service} {body['request']['head']}")
        if body.get("group"):
            out.append(f"group {o.service} {body['group']}")
    elif o.kind == "call" and strong(body["call_id"]):
        out.append(f"call_id {o.service} {body['call_id']}")
    elif o.kind == "effect" and strong(body["call_id"]):
        out.append(f"anywhere call_id {body['call_id']}")
    elif o.kind == "evaluation" and body["response_id"]:
        out.append(f"anywhere response_id {body['response_id']}")
    return out or [f"alone {o.id}"]
