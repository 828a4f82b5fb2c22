"""OpenInference (Arize): flattened message attributes beside the raw request and response.

The raw body (`input.value`, `output.value`) is read where it is a provider's, since it alone keeps
item ids, settings and compaction items; the flattened attributes otherwise.
Source: Arize-ai/openinference spec/semantic_conventions.md.
"""

from facta.conventions.bodies import read_request, read_response
from facta.conventions.genai import fact
from facta.conventions.messages import read_items
from facta.conventions.parts import clean_id
from facta.conventions.table import fill
from facta.conventions.values import Attrs, elapsed, nest, number, text_of
from facta.model.facts import Body, Call, Evaluation, Fact, Item, Retrieval, Turn
from facta.model.records import STATUS_ERROR, Record, Value

NAME = "openinference"
_PREFIXES = (
    "llm.input_messages.", "llm.output_messages.", "llm.tools.", "retrieval.documents.",
    "reranker.", "llm.prompts.", "llm.choices.",
)  # fmt: skip
_KEYS = {
    "input.value", "output.value", "llm.invocation_parameters", "llm.tools", "input.mime_type",
    "output.mime_type", "tool.parameters",
}  # fmt: skip


def applies(_record: Record, attrs: Attrs) -> bool:
    """OpenInference spans all name their kind."""
    return "openinference.span.kind" in attrs


def consumed(key: str) -> bool:
    """Whether the facts hold what this attribute says."""
    return key in _KEYS or key.startswith(_PREFIXES)


def facts(record: Record, attrs: Attrs) -> list[Fact]:
    """The one fact of the span's kind."""
    kind = text_of(attrs.get("openinference.span.kind")).upper()
    body: Body
    if kind == "LLM":
        return [fact(_turn(record, attrs), "response", record)]
    if kind == "TOOL":
        body = _call(record, attrs)
        return [fact(body, "tool_span", record)]
    if kind in ("RETRIEVER", "RERANKER"):
        body = _retrieval(record, attrs)
    elif kind == "EVALUATOR":
        body = _evaluation(record, attrs)
    else:
        body = _turn(record, attrs)
        body.role = "aggregate"
        return [fact(body, "later_request", record)]
    return [fact(body, "response", record)]


def _turn(record: Record, attrs: Attrs) -> Turn:
    marks = record.marks
    turn = Turn()
    if not read_request(attrs.get("input.value"), turn, marks):
        messages = nest(attrs, "llm.input_messages")
        turn.input = (
            read_items(messages, marks)
            if messages
            else _plain(attrs.get("input.value"), record, "user")
        )
    if not read_response(attrs.get("output.value"), turn, marks):
        messages = nest(attrs, "llm.output_messages")
        turn.output = (
            read_items(messages, marks, "assistant")
            if messages
            else _plain(attrs.get("output.value"), record, "assistant")
        )
    if record.name == "CompactedResponse" or "compact" in record.name.lower():
        turn.settings["operation"] = "compact"
    fill(turn, attrs)
    if "llm.response.model_name" not in attrs and turn.settings.get("response_model") is None:
        turn.settings["response_model"] = turn.settings.get("request_model", "")
    return turn


def _plain(value: Value, record: Record, role: str) -> list[Item] | None:
    return read_items(value, record.marks, role) if value is not None else None


def _call(record: Record, attrs: Attrs) -> Call:
    marks = record.marks
    arguments, result = attrs.get("input.value"), attrs.get("output.value")
    failed = record.status == STATUS_ERROR
    return Call(
        call_id=clean_id(attrs.get("tool_call.id") or attrs.get("tool.id"), marks),
        tool=marks.render(text_of(attrs.get("tool.name")) or record.name),
        arguments=None if arguments is None else marks.render(text_of(arguments)),
        result=None if result is None else marks.render(text_of(result)),
        status="error" if failed else "ok",
        error=marks.render(record.status_message) if failed else "",
        duration_ns=elapsed(record),
    )


def _retrieval(record: Record, attrs: Attrs) -> Retrieval:
    render = record.marks.render
    ids: list[str] = []
    texts: list[str] = []
    for entry in nest(attrs, "retrieval.documents"):
        inner = entry.get("document") if isinstance(entry, dict) else None
        if isinstance(inner, dict):
            ids.append(render(text_of(inner.get("id"))))
            texts.append(render(text_of(inner.get("content"))))
    return Retrieval(render(text_of(attrs.get("input.value"))), ids, "\n".join(texts))


def _evaluation(record: Record, attrs: Attrs) -> Evaluation:
    score = number(attrs.get("eval.score", attrs.get("evaluation.score")))
    return Evaluation(
        name=record.marks.render(record.name),
        score=float(score) if score is not None else None,
        label=record.marks.render(text_of(attrs.get("eval.label", attrs.get("evaluation.label")))),
        explanation=record.marks.render(text_of(attrs.get("output.value"))),
    )
