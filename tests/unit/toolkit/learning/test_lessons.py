from __future__ import annotations

import pytest
from pydantic import ValidationError

from redstart.core.errors import ConfigError
from redstart.core.lesson import (
    LONGEST,
    Lesson,
    LessonCounts,
    LessonDraws,
    LessonOutcome,
    LessonScope,
    LessonStatus,
    Provenance,
    Situation,
)
from redstart.toolkit.learning.lessons import (
    HALF_LIFE,
    MAX_LESSON_CHARACTERS,
    MAX_LESSONS,
    STALE,
    compute_freshness,
    confirm_with_duplicate,
    create_approved_lesson,
    draw_lessons,
    draw_number,
    find_duplicate,
    fit,
    get_show_probability,
    in_scope,
    measure_similarity,
    select_lessons,
)

NOW = 1_000_000_000.0


def create_lesson(number: str = "a", **changes: object) -> Lesson:
    defaults: dict[str, object] = {
        "id": number,
        "when": "A parser raises IndexError on an empty line",
        "advice": "Test for the empty line before indexing into the parts",
        "family": "kind",
        "tenant": "home",
        "repo": "shop",
        "provenance": Provenance(repo="shop", commit="c1", run=f"run-{number}", model="m", outcome="verified"),
        "made_at": NOW,
    }
    return Lesson.model_validate({**defaults, **changes})


HERE = Situation(tenant="home", repo="shop", family="kind")


# -- the models --------------------------------------------------------------------------------------------------------


def test_length_limit_covers_both_parts_of_a_lesson():
    assert create_lesson(when="w" * 100, advice="a" * (LONGEST - 100)).status is LessonStatus.new
    with pytest.raises(ValidationError, match="at most 600"):
        create_lesson(when="w" * 100, advice="a" * (LONGEST - 99))


def test_only_valid_outcomes_are_counted():
    counts = LessonCounts()
    for probability_, is_shown, is_green in (
        (0.5, True, True),
        (0.5, True, False),
        (0.9, False, True),
        (0.5, False, False),
    ):
        counts = counts.add(LessonOutcome(probability=probability_, shown=is_shown, green=is_green))
    assert counts == LessonCounts(shown=2, withheld=2, green_when_shown=1, green_when_withheld=1)
    assert counts.add(LessonOutcome(probability=0.5, shown=True, green=None)) == counts
    assert counts.add(LessonOutcome(probability=1.0, shown=True, green=True)) == counts


def test_lesson_survives_serialization():
    original = create_lesson(scope=LessonScope.everyone, files={"a.py": "1f"}, sources=("run-2",))
    assert Lesson.model_validate_json(original.model_dump_json()) == original
    assert '"global"' in original.model_dump_json()


# -- which lessons apply -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "tenant", "repo", "may"),
    [
        (LessonScope.repo, "home", "shop", True),
        (LessonScope.repo, "home", "other", False),
        (LessonScope.repo, "else", "shop", False),
        (LessonScope.tenant, "home", "other", True),
        (LessonScope.tenant, "else", "shop", False),
        (LessonScope.everyone, "else", "other", True),
    ],
)
def test_lesson_applies_only_within_its_scope(scope: LessonScope, tenant: str, repo: str, may: bool):
    situation = HERE.model_copy(update={"tenant": tenant, "repo": repo})
    assert in_scope(create_lesson(scope=scope), situation) is may
    assert bool(select_lessons([create_lesson(scope=scope)], situation, NOW)) is may


@pytest.mark.parametrize("status", [LessonStatus.retired, LessonStatus.quarantined])
def test_retired_or_quarantined_lesson_never_applies(status: LessonStatus):
    assert select_lessons([create_lesson(status=status)], HERE, NOW) == []


def test_lesson_matches_by_failure_family_or_by_the_words_of_its_condition():
    assert fit(create_lesson(), HERE) == 1
    other_situation = HERE.model_copy(
        update={"family": "another", "text": "IndexError: the parser fails on the last empty line"}
    )
    assert 0.5 <= fit(create_lesson(), other_situation) < 1
    assert fit(create_lesson(), other_situation.model_copy(update={"text": "the parser is slow"})) == 0
    assert fit(create_lesson(family=""), HERE.model_copy(update={"family": ""})) == 0


def test_best_lessons_come_first_within_the_limits():
    lessons = [create_lesson(str(number)) for number in range(MAX_LESSONS + 3)]
    active_lesson = create_lesson("z", status=LessonStatus.active)
    selected = select_lessons([*lessons, active_lesson], HERE, NOW)
    assert [item.id for item in selected] == ["z", "0", "1", "2", "3"]
    long = [create_lesson(str(number), advice="a" * 500) for number in range(5)]
    assert sum(len(item.when) + len(item.advice) for item in select_lessons(long, HERE, NOW)) <= MAX_LESSON_CHARACTERS
    assert len(select_lessons(long, HERE, NOW)) == 3


def test_age_and_code_changes_make_a_lesson_fade():
    assert compute_freshness(create_lesson(), NOW) == 1
    assert compute_freshness(create_lesson(), NOW + HALF_LIFE) == pytest.approx(0.5)
    assert compute_freshness(create_lesson(confirmed_at=NOW + HALF_LIFE), NOW + HALF_LIFE) == 1
    assert compute_freshness(create_lesson(), NOW, changed=1) == pytest.approx(0.25)
    assert compute_freshness(create_lesson(), NOW, changed=0.5) == pytest.approx(0.5)
    assert compute_freshness(create_lesson(), NOW - 5) == 1


def test_faded_lesson_is_hidden_until_it_is_taught_again():
    late_time = NOW + 4 * HALF_LIFE
    assert compute_freshness(create_lesson(), late_time) < STALE
    assert select_lessons([create_lesson()], HERE, late_time) == []
    assert select_lessons([create_lesson(confirmed_at=late_time)], HERE, late_time)
    soon = NOW + 2 * HALF_LIFE
    assert select_lessons([create_lesson()], HERE, soon)
    assert select_lessons([create_lesson()], HERE, soon, {"a": 1.0}) == []


def test_duplicate_lesson_never_applies():
    assert select_lessons([create_lesson(same_as="b")], HERE, NOW) == []


# -- the coin ----------------------------------------------------------------------------------------------------------


def test_draw_is_repeatable_and_independent_of_other_lessons():
    first_lesson, second_lesson = create_lesson("a"), create_lesson("b")
    assert draw_lessons([first_lesson, second_lesson], "run-7") == draw_lessons([first_lesson, second_lesson], "run-7")
    draws_alone, draws_together = (
        draw_lessons([second_lesson], "run-7"),
        draw_lessons([first_lesson, second_lesson], "run-7"),
    )
    assert draws_alone.coins[0] == draws_together.coins[1]


def test_new_lessons_are_shown_half_the_time_and_active_ones_90_percent():
    for status, share in ((LessonStatus.new, 0.5), (LessonStatus.active, 0.9)):
        coins = [draw_lessons([create_lesson(status=status)], f"run-{number}").coins[0] for number in range(4000)]
        assert {coin.probability for coin in coins} == {share}
        assert sum(coin.shown for coin in coins) / 4000 == pytest.approx(share, abs=0.03)


def test_draws_of_two_lessons_in_a_run_are_independent():
    pairs = [
        (draw_number(f"run-{number}", "a") < 0.5, draw_number(f"run-{number}", "b") < 0.5) for number in range(4000)
    ]
    assert sum(pair == other_shown for pair, other_shown in pairs) / 4000 == pytest.approx(0.5, abs=0.03)


def test_without_exploration_all_lessons_are_shown_and_nothing_is_learned():
    draws = draw_lessons([create_lesson("a"), create_lesson("b", status=LessonStatus.active)], "run-1", explore=False)
    assert draws.shown == ("a", "b")
    assert draws.withheld == ()
    assert all(coin.probability == 1 for coin in draws.coins)
    assert not LessonOutcome(probability=draws.coins[0].probability, shown=True, green=True).counts


def test_retired_lesson_is_never_shown():
    retired = create_lesson(status=LessonStatus.retired)
    assert get_show_probability(LessonStatus.retired) == get_show_probability(LessonStatus.quarantined) == 0
    assert draw_lessons([retired], "run-1").shown == draw_lessons([retired], "run-1", explore=False).shown == ()


def test_withheld_lessons_are_listed():
    lessons = [create_lesson(str(number)) for number in range(20)]
    draws = draw_lessons(lessons, "run-1")
    assert draws.withheld
    assert draws.shown
    assert sorted((*draws.shown, *draws.withheld)) == sorted(item.id for item in lessons)
    assert LessonDraws().shown == LessonDraws().withheld == ()


# -- duplicates --------------------------------------------------------------------------------------------------------


def test_nearly_identical_advice_is_one_lesson():
    similar_lesson = create_lesson("b", advice="Test for an empty line before indexing into these parts!")
    assert find_duplicate(similar_lesson, [create_lesson()]) == create_lesson()
    assert find_duplicate(create_lesson(), [create_lesson()]) is None
    assert (
        find_duplicate(create_lesson("b", advice="Strip the line and close the file at the end"), [create_lesson()])
        is None
    )


@pytest.mark.parametrize(
    "advice",
    [
        "Do not test for the empty line before indexing into the parts",
        "Test for the empty line before indexing into the parts[0]",
        "Test for the empty line before indexing into the line_parts",
    ],
)
def test_negated_or_different_advice_is_another_lesson(advice: str):
    assert measure_similarity(create_lesson(), create_lesson("b", advice=advice)) == 0


def test_duplicates_must_share_audience_and_failure_family():
    similar_lesson = create_lesson("b", repo="other")
    assert find_duplicate(similar_lesson, [create_lesson()]) is None
    assert find_duplicate(similar_lesson, [create_lesson(scope=LessonScope.tenant)]) is not None
    assert find_duplicate(create_lesson("b", tenant="else"), [create_lesson(scope=LessonScope.tenant)]) is None
    assert find_duplicate(create_lesson("b", tenant="else"), [create_lesson(scope=LessonScope.everyone)]) is not None
    assert find_duplicate(create_lesson("b", family="another"), [create_lesson()]) is None


def test_retired_lesson_does_not_return_in_other_words():
    retired = create_lesson(status=LessonStatus.retired)
    assert find_duplicate(create_lesson("b"), [retired]) == retired
    assert confirm_with_duplicate(retired, create_lesson("b")).status is LessonStatus.retired


def test_merging_keeps_text_and_counts_and_names_the_other_run_once():
    kept_lesson = create_lesson(counts=LessonCounts(shown=3, withheld=2), status=LessonStatus.active)
    repeated_lesson = create_lesson("b", made_at=NOW + 9)
    merged_lesson = confirm_with_duplicate(confirm_with_duplicate(kept_lesson, repeated_lesson), repeated_lesson)
    assert merged_lesson.sources == ("run-b",)
    assert merged_lesson.confirmed_at == NOW + 9
    assert (merged_lesson.advice, merged_lesson.status, merged_lesson.counts) == (
        kept_lesson.advice,
        LessonStatus.active,
        kept_lesson.counts,
    )


# -- approval by a person ----------------------------------------------------------------------------------------------


def test_named_person_can_widen_a_scope_and_measurement_restarts():
    widened_lesson = create_approved_lesson(
        create_lesson(status=LessonStatus.active, counts=LessonCounts(shown=9)), "owner", NOW + 1, LessonScope.tenant
    )
    assert (widened_lesson.scope, widened_lesson.status, widened_lesson.approved_by) == (
        LessonScope.tenant,
        LessonStatus.new,
        "owner",
    )
    assert (widened_lesson.counts, widened_lesson.measured_from) == (LessonCounts(), NOW + 1)


def test_anonymous_approval_and_a_narrower_scope_are_refused():
    with pytest.raises(ConfigError, match="no person"):
        create_approved_lesson(create_lesson(), "  ", NOW, LessonScope.tenant)
    with pytest.raises(ConfigError, match="already for tenant"):
        create_approved_lesson(create_lesson(scope=LessonScope.tenant), "owner", NOW, LessonScope.repo)


def test_approval_releases_a_lesson_from_quarantine():
    assert (
        create_approved_lesson(create_lesson(status=LessonStatus.quarantined), "owner", NOW).status is LessonStatus.new
    )
