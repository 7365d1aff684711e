"""The contract of all shared rate limits. Subclass it as `Test...` and provide the fixture `rates`."""

from __future__ import annotations

import pytest

from redstart.ports.model.routes import RateLimits

NOW = 1_900_000_000.0


class RatesContract:
    def test_first_minute_of_tokens_is_available_without_waiting(self, rates: RateLimits) -> None:
        assert [rates.take("model", 30, 60, NOW) for _ in range(2)] == [0.0, 0.0]
        assert rates.take("model", 30, 60, NOW) == pytest.approx(30.0)
        assert rates.take("model", 30, 60, NOW) == pytest.approx(60.0)

    def test_tokens_refill_evenly_up_to_the_minute_limit(self, rates: RateLimits) -> None:
        assert rates.take("model", 60, 60, NOW) == 0.0
        assert rates.take("model", 10, 60, NOW + 10) == pytest.approx(0.0, abs=1e-6)
        assert rates.take("model", 10, 60, NOW + 10) == pytest.approx(10.0)
        assert rates.take("model", 61, 60, NOW + 10_000) == 0.0, "more than a minute's worth is that"
        assert rates.take("model", 1, 60, NOW + 10_000) == pytest.approx(1.0)

    def test_unused_tokens_are_returned(self, rates: RateLimits) -> None:
        rates.take("model", 60, 60, NOW)
        rates.give_back("model", 20, 60, NOW)
        assert rates.take("model", 20, 60, NOW) == pytest.approx(0.0)
        rates.give_back("model", -5, 60, NOW)
        assert rates.take("model", 1, 60, NOW) == pytest.approx(6.0), "more was used than was taken"
        rates.give_back("model", 1000, 60, NOW)
        assert [rates.take("model", 60, 60, NOW), rates.take("model", 6, 60, NOW)] == [0.0, pytest.approx(6.0)]

    def test_each_name_has_its_own_limit(self, rates: RateLimits) -> None:
        rates.take("one", 60, 60, NOW)
        assert rates.take("two", 60, 60, NOW) == 0.0
        assert rates.take("one", 6, 60, NOW) == pytest.approx(6.0)

    def test_clock_that_lags_adds_no_tokens(self, rates: RateLimits) -> None:
        rates.take("model", 60, 60, NOW)
        assert rates.take("model", 6, 60, NOW - 30) == pytest.approx(6.0)
        assert rates.take("model", 0, 60, NOW) == pytest.approx(6.0), "the half minute is not added again"
