from __future__ import annotations

import pytest
from pydantic import ValidationError

from redstart.core.report import Case, Outcome, Verdict
from redstart.toolkit.honesty.verdict.verdict import judge, tampered

P, F, E, S = Outcome.passed, Outcome.failed, Outcome.error, Outcome.skipped


def cases(**outcomes: Outcome) -> list[Case]:
    return [Case(id=name, outcome=outcome) for name, outcome in outcomes.items()]


BEFORE = cases(red=F, green=P, skipped=S)


def test_every_target_green_and_nothing_worse_is_honest():
    verdict = judge(BEFORE, cases(red=P, green=P, skipped=S), ["red"])
    assert verdict.honest_green
    assert verdict.fixed.first == ("red",)


@pytest.mark.parametrize(
    ("after", "field", "named"),
    [
        (cases(red=F, green=P, skipped=S), "still_red", "red"),
        (cases(red=E, green=P, skipped=S), "still_red", "red"),
        (cases(green=P, skipped=S), "missing", "red"),
        (cases(red=S, green=P, skipped=S), "newly_skipped", "red"),
        (cases(red=P, green=F, skipped=S), "newly_red", "green"),
        (cases(red=P, skipped=S), "missing", "green"),
        (cases(red=P, green=S, skipped=S), "newly_skipped", "green"),
        (cases(red=P, green=P, skipped=F), "newly_red", "skipped"),
        (cases(red=P, green=P), "missing", "skipped"),
        (cases(red=P, green=P, skipped=S, new=F), "newly_red", "new"),
    ],
)
def test_what_is_not_green(after, field, named):
    verdict = judge(BEFORE, after, ["red"])
    assert not verdict.honest_green
    assert getattr(verdict, field).first == (named,)


def test_a_skipped_test_that_now_passes_and_a_new_green_one_are_no_harm():
    assert judge(BEFORE, cases(red=P, green=P, skipped=P, new=P), ["red"]).honest_green


def test_other_red_tests_may_stay_red_where_only_some_are_targets():
    before = cases(a=F, b=F)
    assert judge(before, cases(a=P, b=F), ["a"]).honest_green


@pytest.mark.parametrize(
    ("container", "child"), [("tests/test_a.py", "tests/test_a.py::test_x"), ("tests.test_a", "tests.test_a.T.test_x")]
)
def test_a_file_that_could_not_be_collected(container, child):
    before = [Case(id=container, outcome=E)]
    assert judge(before, [Case(id=child, outcome=P)], [container]).honest_green
    assert judge(before, [Case(id=child, outcome=F)], [container]).still_red.count == 1
    assert judge(before, [Case(id=child, outcome=S)], [container]).missing.count == 1
    assert judge(before, [], [container]).missing.count == 1
    assert judge(before, [Case(id=container + "x::y", outcome=P)], [container]).missing.count == 1


def test_a_target_that_is_red_in_a_repeat_is_flaky_and_not_green():
    after = cases(red=P, green=P, skipped=S)
    verdict = judge(BEFORE, after, ["red"], repeats=[cases(red=P), cases(red=F)])
    assert (verdict.flaky.first, verdict.honest_green) == (("red",), False)
    assert judge(BEFORE, after, ["red"], repeats=[cases(red=P)]).honest_green


def test_nothing_fixed_is_not_green():
    assert not Verdict().honest_green
    assert not judge(cases(a=P), cases(a=P), []).honest_green


def test_a_contradiction_or_a_changed_test_is_not_green():
    after = cases(red=P, green=P, skipped=S)
    assert not judge(BEFORE, after, ["red"], unexplained="exit code 3").honest_green
    changed = tampered(["tests/a.py", "b.py"], lambda path: "a test" if path.startswith("tests") else "")
    assert changed == ("tests/a.py",)
    assert not judge(BEFORE, after, ["red"], tampered=changed).honest_green


def test_ten_thousand_tests_are_judged_quickly():
    import time

    before = [Case(id=f"tests/test_{n % 97}.py::test_{n}", outcome=F if n % 3 == 0 else P) for n in range(10_000)]
    red = [case.id for case in before if case.red]
    began = time.process_time()
    verdict = judge(before, [], red)
    assert verdict.missing.count == 10_000
    assert time.process_time() - began < 2


def test_a_verdict_of_an_earlier_version_is_read_without_the_field_that_is_gone():
    stored = judge(BEFORE, cases(red=P, green=P, skipped=P), ["red"]).model_dump(mode="json")
    read = Verdict.model_validate({**stored, "new_findings": 0})
    assert read.honest_green
    assert read.model_dump(mode="json") == stored
    with pytest.raises(ValidationError):
        Verdict.model_validate({**stored, "newly_found": 0})


def test_a_green_run_of_fewer_tests_than_before_is_a_contradiction():
    before = [Case(id="red", outcome=F), Case(id="twin", outcome=P), Case(id="twin", outcome=P)]
    fewer = judge(before, cases(red=P, twin=P), ["red"])
    assert fewer.unexplained == "2 tests ran where 3 ran before"
    assert not fewer.honest_green
    assert judge(before, [Case(id="red", outcome=P), *before[1:]], ["red"]).honest_green
