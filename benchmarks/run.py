"""Measures one collector under agent runs, over real OTLP/HTTP with a real `facta up`.

Each request is one turn of one session, as an agent's exporter sends it: a model span that repeats
the whole history, a tool span, and the HTTP span of the tool's effect. Printed are the rate and
latency of acknowledged requests, how long the store took to catch up, bytes on disk per turn, and
the peak memory of the process.
"""

import argparse
import hashlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import quantiles

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span

FACTA = Path(sys.executable).with_name("facta")
SECOND = 1_000_000_000
PATIENCE = 300


def digest(*parts: object, size: int) -> bytes:
    """The same id for the same parts in every run."""
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=size).digest()


def add_span(into: ScopeSpans, name: str, ids: tuple[bytes, bytes, bytes], at: int) -> Span:
    """A span of one second; `ids` are trace, span and parent."""
    span = into.spans.add(name=name, start_time_unix_nano=at, end_time_unix_nano=at + SECOND)
    span.trace_id, span.span_id, span.parent_span_id = ids
    return span


def put(span: Span, **attributes: str | int) -> None:
    """Attributes, with `__` in a name for a dot."""
    for name, value in attributes.items():
        target = span.attributes.add(key=name.replace("__", ".")).value
        if isinstance(value, int):
            target.int_value = value
        else:
            target.string_value = value


def message(role: str, **part: object) -> dict[str, object]:
    return {"role": role, "parts": [part]}


def turn(session: int, number: int, began: int) -> bytes:
    """One request body: turn `number` of a session, with the history of those before it."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    service = resource.resource.attributes.add(key="service.name").value
    service.string_value = "benchmark"
    scope = resource.scope_spans.add()
    scope.scope.name = "opentelemetry.instrumentation.openai_v2"

    history = [message("user", type="text", content=f"Order {session}: what is its state?")]
    for past in range(number):
        call = f"call_{session}_{past}"
        arguments = {"order": session, "page": past}
        history += [
            message("assistant", type="tool_call", id=call, name="look_up", arguments=arguments),
            message("tool", type="tool_call_response", id=call, response=f"row {past} " * 40),
        ]
    call = f"call_{session}_{number}"
    arguments = {"order": session, "page": number}
    answer = [message("assistant", type="tool_call", id=call, name="look_up", arguments=arguments)]

    trace = digest(session, began, size=16)
    root, tool, effect = (digest(session, number, kind, size=8) for kind in "mte")
    at = began + number * 4 * SECOND
    chat = add_span(scope, "chat gpt-5", (trace, root, b""), at)
    put(
        chat,
        gen_ai__operation__name="chat",
        gen_ai__provider__name="openai",
        gen_ai__request__model="gpt-5",
        gen_ai__response__id=f"resp_{session}_{number}",
        gen_ai__conversation__id=f"conversation-{session}",
        gen_ai__usage__input_tokens=100 + 80 * number,
        gen_ai__usage__output_tokens=30,
        gen_ai__input__messages=json.dumps(history),
        gen_ai__output__messages=json.dumps(answer),
    )
    ran = add_span(scope, "execute_tool look_up", (trace, tool, b""), at + SECOND)
    put(
        ran,
        gen_ai__operation__name="execute_tool",
        gen_ai__tool__name="look_up",
        gen_ai__tool__call__id=call,
        gen_ai__tool__call__arguments=json.dumps(arguments),
        gen_ai__tool__call__result=f"row {number} " * 40,
    )
    sent = add_span(scope, "GET", (trace, effect, tool), at + SECOND)
    sent.kind = Span.SPAN_KIND_CLIENT
    put(
        sent,
        http__request__method="GET",
        url__full=f"http://orders.example/{session}?page={number}",
        http__response__status_code=200,
    )
    return request.SerializeToString()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def wait_ready(client: httpx.Client, process: subprocess.Popen[bytes]) -> None:
    """Until the collector answers on /ready."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"the collector ended with {process.returncode}")
        try:
            if client.get("/ready").is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise SystemExit(f"the collector was not ready within {PATIENCE} s")


def send_session(base: str, session: int, turns: int) -> list[float]:
    """Send a session's turns one after the other; seconds until each was acknowledged."""
    began = time.time_ns() - turns * 4 * SECOND
    taken = []
    with httpx.Client(base_url=base, timeout=PATIENCE) as client:
        for number in range(turns):
            body = turn(session, number, began)
            start = time.perf_counter()
            answer = client.post(
                "/v1/traces", content=body, headers={"Content-Type": "application/x-protobuf"}
            )
            taken.append(time.perf_counter() - start)
            if answer.status_code != httpx.codes.OK:
                raise SystemExit(f"a request was answered with {answer.status_code}")
    return taken


def wait_settled(client: httpx.Client) -> None:
    """Until everything in the ledger is in the store and resolved."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        status = client.get("/api/v1/status").raise_for_status().json()
        if status["resolved"] and status["ledger_rows"] == status["projected_rows"]:
            return
        time.sleep(0.1)
    raise SystemExit(f"the store had not caught up within {PATIENCE} s")


def peak_mebibytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def bytes_on_disk(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def measure(base: str, options: argparse.Namespace) -> None:
    """Send everything, wait for the store, print the figures that time gives."""
    start = time.monotonic()
    with ThreadPoolExecutor(options.clients) as pool:
        sent = pool.map(lambda s: send_session(base, s, options.turns), range(options.sessions))
        taken = [seconds for session in sent for seconds in session]
    acknowledged = time.monotonic() - start
    with httpx.Client(base_url=base, timeout=PATIENCE) as client:
        wait_settled(client)
    settled = time.monotonic() - start - acknowledged
    cuts = quantiles(taken, n=100)
    print(f"acknowledged      {len(taken) / acknowledged:10.0f} turns/s, three spans each")
    print(f"latency, median   {cuts[49] * 1000:10.1f} ms")
    print(f"latency, 99 %     {cuts[98] * 1000:10.1f} ms")
    print(f"store caught up   {settled:10.1f} s after the last answer")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure one collector under agent runs.")
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--turns", type=int, default=20, help="turns of each session")
    parser.add_argument("--clients", type=int, default=4, help="senders at the same time")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        ours = {"FACTA_DATA": folder, "FACTA_HTTP_PORT": str(port)}
        ours |= {"FACTA_GRPC_PORT": str(free_port()), "FACTA_LOG_LEVEL": "warning"}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FACTA_")}
        process = subprocess.Popen([FACTA, "up", "--no-dashboard"], env=kept | ours)
        base = f"http://127.0.0.1:{port}"
        try:
            with httpx.Client(base_url=base, timeout=PATIENCE) as client:
                wait_ready(client, process)
            measure(base, options)
            turns = options.sessions * options.turns
            print(f"on disk           {bytes_on_disk(Path(folder)) / turns:10.0f} bytes per turn")
            print(f"peak memory       {peak_mebibytes(process.pid):10.0f} MiB")
        finally:
            process.terminate()
            process.wait(60)


if __name__ == "__main__":
    main()
