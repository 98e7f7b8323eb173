"""What Prometheus reads at /metrics (https://prometheus.io/docs/practices/naming)."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily

from nmt.hardware import memory_of

if TYPE_CHECKING:
    from nmt.plugins.serve.model import ServedModel

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
LINES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counters since the server began."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = self.counter("nmt_requests", "Requests, by path and status.", "path", "status")
        self.seconds = Histogram(
            "nmt_request_seconds", "Seconds from request to answer.", ["path"], buckets=SECONDS, registry=self.registry
        )
        self.lines = self.counter("nmt_lines", "Lines asked for, by model.", "model")
        self.characters = self.counter("nmt_characters", "Characters of these lines.", "model")
        self.batch_lines = Histogram(
            "nmt_batch_lines", "Lines that were searched together.", buckets=LINES, registry=self.registry
        )
        self.loads = self.counter("nmt_model_loads", "Times that a model was loaded.", "model")
        self.deaths = self.counter("nmt_model_deaths", "Processes of a model that ended by themselves.", "model")

    def counter(self, name: str, help: str, *labels: str) -> Counter:
        return Counter(name, help, labels, registry=self.registry)

    def watch(self, models: "Callable[[], list[ServedModel]]") -> None:
        """Also tell, when asked, what each model does at the moment."""
        self.registry.register(Gauges(models))


class Gauges:
    """Values that are read when Prometheus asks."""

    def __init__(self, models: "Callable[[], list[ServedModel]]") -> None:
        self.models = models

    def collect(self) -> Iterator[GaugeMetricFamily]:
        waiting = GaugeMetricFamily("nmt_waiting_lines", "Lines that wait for a model.", labels=["model"])
        memory = GaugeMetricFamily("nmt_model_memory_bytes", "Memory of a model's process.", labels=["model"])
        for model in self.models():
            waiting.add_metric([model.name], model.waiting.lines)
            process = model.process
            pid = process.process.pid if process and not process.ended else None
            memory.add_metric([model.name], memory_of(pid) if pid else 0)
        yield from (waiting, memory)
