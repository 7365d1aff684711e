from logdigest.parse import Record, parse_line
from logdigest.summary import busiest, error_rate

__all__ = ["Record", "busiest", "error_rate", "parse_line"]
