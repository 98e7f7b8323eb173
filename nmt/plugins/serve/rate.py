"""Requests per minute of each client."""

import time
from collections import OrderedDict

MOST_CLIENTS = 100_000
"""Clients that are remembered; the longest unseen one is forgotten."""


class Rate:
    """A bucket for each client, which holds the requests of a minute and fills up evenly."""

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self.buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str, now: float | None = None) -> float:
        """Seconds until the client may ask again; 0 if it may now, which then counts."""
        now = time.monotonic() if now is None else now
        left, before = self.buckets.pop(client, (float(self.per_minute), now))
        left = min(self.per_minute, left + (now - before) * self.per_minute / 60)
        allowed = left >= 1
        self.buckets[client] = (left - allowed, now)
        if len(self.buckets) > MOST_CLIENTS:
            self.buckets.popitem(last=False)
        return 0.0 if allowed else (1 - left) * 60 / self.per_minute
