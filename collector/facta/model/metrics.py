"""What Facta counts about itself, in Prometheus' text format. Labels are our words, never content."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """One process's counters; each instance is apart from all others."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self.registry = registry
        self.requests = Counter(
            "facta_requests",
            "Requests that brought telemetry.",
            ["signal", "transport", "status"],
            registry=registry,
        )
        self.records = Counter(
            "facta_records", "Spans and log records that were taken.", ["signal"], registry=registry
        )
        self.rejected = Counter(
            "facta_rejected_records", "Spans and log records that were refused.", registry=registry
        )
        self.observations = Counter(
            "facta_observations", "Observations that were new.", registry=registry
        )
        self.repeated = Counter(
            "facta_repeated_observations", "Observations that were known.", registry=registry
        )
        self.refusals = Counter(
            "facta_refusals", "Values that could not be read.", ["reason"], registry=registry
        )
        self.append_seconds = Histogram(
            "facta_append_seconds", "From batch to stable storage.", registry=registry
        )
        self.ledger_rows = Gauge(
            "facta_ledger_rows", "Observations in the ledger.", registry=registry
        )
        self.projected_rows = Gauge(
            "facta_projected_rows", "Observations in the store.", registry=registry
        )
        self.store_ready = Gauge(
            "facta_store_ready", "1 when the store answers a query.", registry=registry
        )

    def render(self) -> bytes:
        """The text that /metrics answers."""
        return generate_latest(self.registry)
