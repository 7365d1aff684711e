"""Names of intervals, as they are written in the crontab-like file."""

DAYS = {"daily": 1, "weekly": 7, "fortnightly": 14}


def days_of(interval):
    try:
        return DAYS[interval]
    except KeyError:
        raise ValueError(f"unknown interval: {interval}") from None
