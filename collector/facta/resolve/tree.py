"""The spans of a trace as a tree, over all services that took part in it."""

from collections.abc import Iterable, Iterator

from facta.model.observation import Observation

Place = tuple[str, str]
_DEPTH = 256


class Tree:
    """Parents by (trace id, span id); a log record is at its span."""

    def __init__(self, observations: Iterable[Observation]) -> None:
        self._parent: dict[Place, str] = {}
        for o in observations:
            if o.span_id and o.parent_span_id:
                self._parent[o.trace_id, o.span_id] = o.parent_span_id

    def ancestors(self, o: Observation) -> Iterator[Place]:
        """The places above an observation's span, nearest first (bounded, also where spans form a ring)."""
        here = o.span_id
        seen = {here}
        for _ in range(_DEPTH):
            above = self._parent.get((o.trace_id, here), "")
            if not above or above in seen:
                return
            seen.add(above)
            yield o.trace_id, above
            here = above
