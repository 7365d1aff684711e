from collections import Counter
from collections.abc import Iterable

from logdigest.parse import Record


def busiest(records: Iterable[Record], limit: int = 3) -> list[str]:
    """The paths that were asked for most, by number of requests, then by name."""
    counts = Counter(record.path for record in records)
    return sorted(counts, key=lambda path: (-counts[path], path))[:limit]


def error_rate(records: Iterable[Record]) -> float:
    """The share of server errors (500 and above), 0.0 for no records."""
    statuses = [record.status for record in records]
    return sum(status > 500 for status in statuses) / max(len(statuses), 1)
