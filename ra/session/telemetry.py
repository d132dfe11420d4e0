"""Spans and metrics of runs for OpenTelemetry, by its GenAI conventions; made from the events that every face hears.

It is there when `OTEL_EXPORTER_OTLP_ENDPOINT` is set, and nothing of OpenTelemetry is imported otherwise.
"""

import os
import time
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from ra.core.errors import UserError
from ra.core.events import Compacted, Event, RunEnded, ToolEnded, ToolStarted, TurnEnded, TurnStarted
from ra.core.model import Usage

if TYPE_CHECKING:
    from opentelemetry.trace import Span

VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"


class QueueLoad(Protocol):
    """Tells how many tasks run and wait now."""

    def current(self) -> tuple[int, int]: ...


def telemetry(env: Mapping[str, str]) -> "Telemetry | None":
    """What the environment asks for. Raises UserError when the extra is not installed."""
    if not env.get(VARIABLE):
        return None
    try:
        return _shared()
    except ImportError as error:
        raise UserError(f"{VARIABLE} is set: install ra with its extra, `pip install 'ra-agent[otel]'`.") from error


@cache
def _shared() -> "Telemetry":
    """One for the process: its exporters have threads of their own."""
    return Telemetry()


class Telemetry:
    """Exports over OTLP and HTTP, as the variables OTEL_… say."""

    def __init__(self) -> None:
        # A quarter of a second of imports, only for those who export.
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        from ra.core.version import __version__

        name = os.environ.get("OTEL_SERVICE_NAME") or "ra"
        resource = Resource.create({"service.name": name, "service.version": __version__})
        traces = TracerProvider(resource=resource)
        traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        metrics = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource=resource)
        self._providers = traces, metrics
        self.tracer = traces.get_tracer("ra", __version__)
        meter = metrics.get_meter("ra", __version__)
        self._meter = meter
        self.tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "Tokens of model calls by kind.")
        self.seconds = meter.create_histogram("gen_ai.client.operation.duration", "s", "How long model calls took.")
        self.dollars = meter.create_counter("ra.cost", "USD", "Dollars of calls with a known price.")
        self.hit_rate = meter.create_histogram("ra.cache.hit_rate", "1", "Share of the input read from the cache.")
        self.runs = meter.create_counter("ra.runs", "{run}", "Runs that ended, by outcome.")
        self.errors = meter.create_counter("ra.errors", "{error}", "Runs that failed.")
        self.wait = meter.create_histogram("ra.task.wait", "s", "How long tasks waited before they began.")

    def watch(self, load: QueueLoad) -> None:
        """Export the length of a queue."""
        from opentelemetry.metrics import CallbackOptions, Observation

        def running(_: CallbackOptions) -> list[Observation]:
            return [Observation(load.current()[0])]

        def waiting(_: CallbackOptions) -> list[Observation]:
            return [Observation(load.current()[1])]

        self._meter.create_observable_gauge("ra.tasks.running", [running], "{task}", "Tasks that run now.")
        self._meter.create_observable_gauge("ra.tasks.waiting", [waiting], "{task}", "Tasks that wait in line.")

    def run(self, *, agent: str, conversation: str, provider: str, model: str) -> "RunTrace":
        return RunTrace(self, agent, conversation, provider, model)

    def close(self) -> None:
        """Send what there is."""
        for provider in self._providers:
            provider.force_flush(5_000)


class RunTrace:
    """The span of a run, with those of its model calls, tools and compactions under it."""

    def __init__(self, telemetry: Telemetry, agent: str, conversation: str, provider: str, model: str) -> None:
        self._telemetry = telemetry
        self._common = {"gen_ai.provider.name": provider, "gen_ai.request.model": model}
        self._run = telemetry.tracer.start_span(
            f"invoke_agent {agent}",
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": agent,
                "gen_ai.conversation.id": conversation,
                **self._common,
            },
        )
        self._turn: Span | None = None
        self._began = 0.0
        self._tools: dict[str, Span] = {}

    def hear(self, event: Event) -> None:
        match event:
            case TurnStarted():
                self._end_turn("given up")
                self._began = time.monotonic()
                model = self._common["gen_ai.request.model"]
                self._turn = self._span(f"chat {model}", {"gen_ai.operation.name": "chat", **self._common})
            case TurnEnded(model=model, usage=usage, dollars=dollars):
                self._count(model, usage, dollars)
            case ToolStarted(call):
                attributes = {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": call.name,
                    "gen_ai.tool.call.id": call.id,
                }
                self._tools[call.id] = self._span(f"execute_tool {call.name}", attributes)
            case ToolEnded(call, result, _):
                if (span := self._tools.pop(call.id, None)) is not None:
                    self._close(span, "tool error" if result.is_error else "")
            case Compacted(fact):
                span = self._span("compaction", {"ra.compaction.strategy": fact.strategy})
                self._close(span, "")
            case RunEnded():
                self._end(event)

    def _count(self, model: str, usage: Usage, dollars: str) -> None:
        telemetry, labels = self._telemetry, {**self._common, "gen_ai.operation.name": "chat"}
        kinds = {
            "input": usage.input,
            "output": usage.output,
            "cache_read": usage.cache_read,
            "cache_write": usage.cache_write,
        }
        for kind, number in kinds.items():
            telemetry.tokens.record(number, {**labels, "gen_ai.token.type": kind})
        telemetry.seconds.record(time.monotonic() - self._began, labels)
        if dollars:
            telemetry.dollars.add(float(dollars), labels)
        if usage.total_input:
            telemetry.hit_rate.record(usage.cache_read / usage.total_input, labels)
        if self._turn is not None:
            self._turn.set_attributes(
                {
                    "gen_ai.response.model": model,
                    "gen_ai.usage.input_tokens": usage.total_input,
                    "gen_ai.usage.output_tokens": usage.output,
                    "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
                    "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
                    "ra.cost.usd": float(dollars or 0),
                }
            )
        self._end_turn("")

    def _end(self, end: RunEnded) -> None:
        self._end_turn(end.error)
        for span in self._tools.values():
            self._close(span, "interrupted")
        self._tools.clear()
        self._run.set_attributes(
            {
                "gen_ai.usage.input_tokens": end.usage.total_input,
                "gen_ai.usage.output_tokens": end.usage.output,
                "ra.outcome": end.outcome,
                "ra.iterations": end.iterations,
                "ra.cost.usd": float(end.dollars or 0),
            }
        )
        self._telemetry.runs.add(1, {"ra.outcome": end.outcome})
        if end.outcome == "failed":
            self._telemetry.errors.add(1)
        self._close(self._run, end.error)

    def _span(self, name: str, attributes: dict[str, Any]) -> "Span":
        from opentelemetry.trace import set_span_in_context

        context = set_span_in_context(self._run)
        return self._telemetry.tracer.start_span(name, context=context, attributes=attributes)

    def _end_turn(self, error: str) -> None:
        if self._turn is not None:
            self._close(self._turn, error)
            self._turn = None

    @staticmethod
    def _close(span: "Span", error: str) -> None:
        if error:
            from opentelemetry.trace import StatusCode

            span.set_status(StatusCode.ERROR, error[:500])
        span.end()
