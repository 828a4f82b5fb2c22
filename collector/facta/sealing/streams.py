"""Values that arrive in pieces: Anthropic's signature_delta, Bedrock's and OpenRouter's deltas."""

from facta.sealing import digest, shapes
from facta.sealing.judging import Spot

_LONE = 200  # characters: a single piece of at least this is taken for the whole value


def join(pieces: list[Spot]) -> None:
    """Make one sighting of the pieces of each value: the first stands for all, the others go.

    Pieces that do not make up a value stay apart, each truncated.
    """
    open_groups: dict[tuple[str, ...], list[Spot]] = {}
    for piece in pieces:
        group = open_groups.get(piece.stream, [])
        if group and _begins_anew(group, piece):
            _close(group)
            group = []
        open_groups[piece.stream] = [*group, piece]
    for group in open_groups.values():
        _close(group)


def _text(spot: Spot) -> str:
    return spot.value if isinstance(spot.value, str) else ""


def _begins_anew(group: list[Spot], piece: Spot) -> bool:
    """Whether the piece starts another value: it has a head, or the last one was padded."""
    if piece.kind == "bedrock.redacted":  # each chunk is padded on its own
        return False
    return bool(shapes.structure(_text(piece))) or _text(group[-1]).endswith("=")


def _close(group: list[Spot]) -> None:
    text = "".join(map(_text, group))
    if any(spot.cut for spot in group) or not _is_whole(text, group):
        for spot in group:
            spot.state = "truncated"
        return
    group[0].value = text
    for spot in group[1:]:
        spot.by = "joined"


def _is_whole(text: str, group: list[Spot]) -> bool:
    if len(text) < shapes.SHORTEST or shapes.overrun(text):
        return False
    if digest.decode(text) is None:
        chunks = [digest.decode(_text(spot)) for spot in group]
        if group[0].kind != "bedrock.redacted" or None in chunks:
            return False
        group[0].plain = b"".join(chunk for chunk in chunks if chunk is not None)
        return True
    lone = len(group) == 1 and len(text) < _LONE
    return not lone or text.endswith("=") or bool(shapes.structure(text))
