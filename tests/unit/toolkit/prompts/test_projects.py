"""What a question says of how tests of a new program are written."""

from __future__ import annotations

import pytest

from redstart.core.run import Suite
from redstart.core.wishes import Asking
from redstart.testing.states import spec
from redstart.toolkit.prompts.projects import rules_of_tests


@pytest.mark.parametrize("runner", ["pytest", "node"])
def test_a_small_model_is_asked_for_few_tests_and_no_properties(runner):
    suite = Suite(runner=runner, command=(runner,), environment="")
    plain = rules_of_tests(spec(suite=suite, offers=("hypothesis",)))
    brief = rules_of_tests(spec(suite=suite, offers=("hypothesis",), asks=Asking(brief=True)))
    assert "at most six short tests" in brief
    assert "at most six" not in plain
    assert "a property with Hypothesis" not in brief
    assert ("a property with Hypothesis" in plain) is (runner == "pytest")
