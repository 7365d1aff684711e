from datetime import datetime
from zoneinfo import ZoneInfo


def noon() -> datetime:
    return datetime(2026, 6, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
