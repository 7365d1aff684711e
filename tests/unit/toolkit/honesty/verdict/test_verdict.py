from __future__ import annotations

import pytest
from pydantic import ValidationError

from redstart.core.report import Case, Outcome, Verdict
from redstart.toolkit.honesty.verdict.verdict import find_tampered_paths, judge

P, F, E, S = Outcome.passed, Outcome.failed, Outcome.error, Outcome.skipped


def create_cases(**outcomes: Outcome) -> list[Case]:
    return [Case(id=name, outcome=outcome) for name, outcome in outcomes.items()]


BEFORE = create_cases(red=F, green=P, skipped=S)


def test_patch_that_fixes_all_targets_without_regression_is_honest():
    verdict = judge(BEFORE, create_cases(red=P, green=P, skipped=S), ["red"])
    assert verdict.is_green
    assert verdict.fixed.first == ("red",)


@pytest.mark.parametrize(
    ("after", "field", "expected_id"),
    [
        (create_cases(red=F, green=P, skipped=S), "still_red", "red"),
        (create_cases(red=E, green=P, skipped=S), "still_red", "red"),
        (create_cases(green=P, skipped=S), "missing", "red"),
        (create_cases(red=S, green=P, skipped=S), "newly_skipped", "red"),
        (create_cases(red=P, green=F, skipped=S), "newly_red", "green"),
        (create_cases(red=P, skipped=S), "missing", "green"),
        (create_cases(red=P, green=S, skipped=S), "newly_skipped", "green"),
        (create_cases(red=P, green=P, skipped=F), "newly_red", "skipped"),
        (create_cases(red=P, green=P), "missing", "skipped"),
        (create_cases(red=P, green=P, skipped=S, new=F), "newly_red", "new"),
    ],
)
def test_failing_missing_or_skipped_test_prevents_a_pass(after, field, expected_id):
    verdict = judge(BEFORE, after, ["red"])
    assert not verdict.is_green
    assert getattr(verdict, field).first == (expected_id,)


def test_passing_skipped_or_new_test_does_no_harm():
    assert judge(BEFORE, create_cases(red=P, green=P, skipped=P, new=P), ["red"]).is_green


def test_failing_tests_outside_the_targets_may_keep_failing():
    before = create_cases(a=F, b=F)
    assert judge(before, create_cases(a=P, b=F), ["a"]).is_green


@pytest.mark.parametrize(
    ("container", "child"), [("tests/test_a.py", "tests/test_a.py::test_x"), ("tests.test_a", "tests.test_a.T.test_x")]
)
def test_uncollected_file_is_fixed_only_if_its_tests_pass(container, child):
    before = [Case(id=container, outcome=E)]
    assert judge(before, [Case(id=child, outcome=P)], [container]).is_green
    assert judge(before, [Case(id=child, outcome=F)], [container]).still_red.count == 1
    assert judge(before, [Case(id=child, outcome=S)], [container]).missing.count == 1
    assert judge(before, [], [container]).missing.count == 1
    assert judge(before, [Case(id=container + "x::y", outcome=P)], [container]).missing.count == 1


def test_target_that_fails_in_a_rerun_is_flaky():
    after = create_cases(red=P, green=P, skipped=S)
    verdict = judge(BEFORE, after, ["red"], repeats=[create_cases(red=P), create_cases(red=F)])
    assert (verdict.flaky.first, verdict.is_green) == (("red",), False)
    assert judge(BEFORE, after, ["red"], repeats=[create_cases(red=P)]).is_green


def test_verdict_without_a_fixed_target_is_not_a_pass():
    assert not Verdict().is_green
    assert not judge(create_cases(a=P), create_cases(a=P), []).is_green


def test_contradiction_or_changed_test_prevents_a_pass():
    after = create_cases(red=P, green=P, skipped=S)
    assert not judge(BEFORE, after, ["red"], unexplained="exit code 3").is_green
    changed = find_tampered_paths(["tests/a.py", "b.py"], lambda path: "a test" if path.startswith("tests") else "")
    assert changed == ("tests/a.py",)
    assert not judge(BEFORE, after, ["red"], tampered=changed).is_green


def test_ten_thousand_tests_are_judged_quickly():
    import time

    before = [Case(id=f"tests/test_{n % 97}.py::test_{n}", outcome=F if n % 3 == 0 else P) for n in range(10_000)]
    failing_ids = [case.id for case in before if case.is_red]
    began = time.process_time()
    verdict = judge(before, [], failing_ids)
    assert verdict.missing.count == 10_000
    assert time.process_time() - began < 2


def test_verdict_of_an_earlier_version_is_read_without_the_removed_field():
    stored = judge(BEFORE, create_cases(red=P, green=P, skipped=P), ["red"]).model_dump(mode="json")
    read = Verdict.model_validate({**stored, "new_findings": 0})
    assert read.is_green
    assert read.model_dump(mode="json") == stored
    with pytest.raises(ValidationError):
        Verdict.model_validate({**stored, "newly_found": 0})


def test_passing_run_with_fewer_tests_than_before_is_a_contradiction():
    before = [Case(id="red", outcome=F), Case(id="twin", outcome=P), Case(id="twin", outcome=P)]
    verdict = judge(before, create_cases(red=P, twin=P), ["red"])
    assert verdict.unexplained == "2 tests ran where 3 ran before"
    assert not verdict.is_green
    assert judge(before, [Case(id="red", outcome=P), *before[1:]], ["red"]).is_green


def test_new_failing_test_counts_against_the_patch_wherever_it_is():
    after = create_cases(red=P, green=P, skipped=S)
    for new in ("tests/test_b.py::T::test_new", "tests.test_b.T.test_new", "new"):
        assert judge(BEFORE, [*after, Case(id=new, outcome=F)], ["red"]).newly_red.first == (new,)


def test_new_failing_test_in_a_target_file_counts_for_that_target_alone():
    target = "tests/test_a.py"
    after = [Case(id=f"{target}::test_x", outcome=P), Case(id=f"{target}::test_y", outcome=F)]
    verdict = judge([Case(id=target, outcome=E)], after, [target])
    assert (verdict.still_red.first, verdict.newly_red.first) == ((target,), ())


def test_unsteady_tests_do_not_count_against_the_patch():
    after = create_cases(red=P, green=F, skipped=F)
    assert judge(BEFORE, after, ["red"], unsteady=["green"]).newly_red.first == ("skipped",)


def test_target_that_passes_without_the_patch_is_not_fixed_by_it():
    after = create_cases(red=P, green=P, skipped=S)
    verdict = judge(BEFORE, after, ["red"], unpatched=create_cases(red=P, green=P))
    assert (verdict.green_without.first, verdict.is_green) == (("red",), False)
    assert judge(BEFORE, after, ["red"], unpatched=create_cases(red=F, green=P)).is_green


def test_disappeared_failing_test_does_no_harm():
    before = create_cases(red=F, broken=F)
    verdict = judge(before, [*create_cases(red=P), Case(id="other", outcome=P)], ["red"])
    assert (verdict.missing.count, verdict.is_green) == (0, True)


def test_newly_skipped_failing_test_is_named():
    assert judge(create_cases(red=F, broken=F), create_cases(red=P, broken=S), ["red"]).newly_skipped.count == 1


def test_contradiction_of_the_run_is_told_before_the_number_of_tests():
    verdict = judge(BEFORE, create_cases(red=P), ["red"], unexplained="exit code 3")
    assert verdict.unexplained == "exit code 3"


def test_at_most_twenty_changed_tests_are_stored():
    tampered = [f"tests/test_{number:02}.py" for number in range(30)]
    assert judge(BEFORE, BEFORE, ["red"], tampered=tampered).tampered == tuple(tampered[:20])


def test_changed_protected_paths_are_sorted():
    assert find_tampered_paths(["b", "a", "c"], lambda path: path != "c") == ("a", "b")
