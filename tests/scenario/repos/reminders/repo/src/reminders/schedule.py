"""When a reminder is due."""

from reminders.units import days_of


def next_run(last, interval):
    """The day after `last` on which the reminder runs again."""
    return last + datetime.timedelta(days=days_of(interval))


def due(last, interval, today):
    """Whether the reminder should run today. One that never ran is always due."""
    return last is None or next_run(last, interval) <= today
