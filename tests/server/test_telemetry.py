"""Spans and metrics arrive at a real OTLP receiver, and nothing of OpenTelemetry is loaded without one."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from gzip import decompress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the extra `otel` is not installed")

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ra.providers.script import Call, Step
from tests.cli.conftest import Shell
from tests.server.conftest import Daemon, Model


class Receiver(ThreadingHTTPServer):
    """Decodes what exporters post."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans: list[Any] = []
        self.metrics: dict[str, Any] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        body = decompress(raw) if self.headers.get("Content-Encoding") == "gzip" else raw
        if self.path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.server.spans += [span for scope in resource.scope_spans for span in scope.spans]
        else:
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                metrics = [metric for scope in resource.scope_metrics for metric in scope.metrics]
                self.server.metrics |= {metric.name: metric for metric in metrics}
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def attributes(item: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in item.attributes}


def test_a_served_run_is_exported_as_spans_and_metrics(
    receiver: Receiver, shell: Shell, model: Model, start: Any
) -> None:
    (shell.project / "notes.txt").write_text("7731\n")
    model([Step(calls=(Call(name="Read", args={"path": "notes.txt"}),)), Step(text="It is 7731.")])
    shell.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = receiver.url
    daemon: Daemon = start()
    _, answer = daemon.task("What do the notes say?", "t1")
    daemon.stop()
    assert answer["content"] == "It is 7731."
    spans = {span.name: span for span in receiver.spans}
    run = spans["invoke_agent devops-agent"]
    assert attributes(run)["gen_ai.conversation.id"] == answer["sessionId"]
    assert attributes(run)["ra.outcome"] == "answered"
    tool = spans["execute_tool Read"]
    assert (tool.parent_span_id, tool.trace_id) == (run.span_id, run.trace_id)
    chats = [span for span in receiver.spans if span.name.startswith("chat ")]
    told = answer["usage"]
    assert [span.parent_span_id for span in chats] == [run.span_id] * 2
    assert sum(attributes(span)["gen_ai.usage.output_tokens"] for span in chats) == told["outputTokens"]
    assert all(span.end_time_unix_nano >= span.start_time_unix_nano for span in receiver.spans)
    points = receiver.metrics["gen_ai.client.token.usage"].histogram.data_points
    sums = {attributes(point)["gen_ai.token.type"]: point.sum for point in points}
    assert (sums["input"], sums["output"]) == (told["inputTokens"], told["outputTokens"])
    (spent,) = receiver.metrics["ra.cost"].sum.data_points
    assert spent.as_double == pytest.approx(answer["cost"])
    assert {"ra.cache.hit_rate", "ra.runs", "ra.task.wait", "ra.tasks.running", "ra.tasks.waiting"} <= set(
        receiver.metrics
    )


def test_nothing_of_opentelemetry_is_imported_without_an_endpoint(shell: Shell, model: Model) -> None:
    model()
    code = (
        "import sys; from ra.cli.main import start; start(['-q', 'hi'], program='ra'); "
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=shell.project, env=shell.env, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
