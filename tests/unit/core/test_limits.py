"""The limit on attempts, by its name of today and by the earlier one."""

from __future__ import annotations

import json

from redstart.core.caps import Limits


def test_stored_limits_of_an_earlier_version_are_read():
    stored = Limits(attempts=7, usd=1.5).model_dump()
    stored["iterations"] = stored.pop("attempts")
    assert Limits.model_validate_json(json.dumps(stored)) == Limits(attempts=7, usd=1.5)


def test_the_name_of_today_wins_where_both_are_given():
    assert Limits.model_validate({"iterations": 3, "attempts": 4}).attempts == 4
