from datetime import date

import pytest

from reminders import due, next_run


def test_next_run_of_a_weekly_reminder():
    assert next_run(date(2024, 2, 26), "weekly") == date(2024, 3, 4)


def test_not_due_before_its_day():
    assert not due(date(2024, 5, 1), "fortnightly", today=date(2024, 5, 14))


def test_never_run_is_due():
    assert due(None, "daily", today=date(2024, 5, 1))


def test_unknown_interval():
    with pytest.raises(ValueError, match="hourly"):
        from reminders.units import days_of

        days_of("hourly")
