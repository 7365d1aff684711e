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
    MOST,
    ROOM,
    STALE,
    alike,
    applying,
    approved,
    drawn,
    duplicate_of,
    fit,
    flipped,
    freshness,
    in_scope,
    merged,
    probability,
)

NOW = 1_000_000_000.0


def lesson(number: str = "a", **changes: object) -> Lesson:
    given: dict[str, object] = {
        "id": number,
        "when": "A parser raises IndexError on an empty line",
        "advice": "Test for the empty line before indexing into the parts",
        "family": "kind",
        "tenant": "home",
        "repo": "shop",
        "provenance": Provenance(repo="shop", commit="c1", run=f"run-{number}", model="m", outcome="verified"),
        "made_at": NOW,
    }
    return Lesson.model_validate({**given, **changes})


HERE = Situation(tenant="home", repo="shop", family="kind")


# -- the models --------------------------------------------------------------------------------------------------------


def test_a_lesson_is_short_by_both_of_its_parts_together():
    assert lesson(when="w" * 100, advice="a" * (LONGEST - 100)).status is LessonStatus.new
    with pytest.raises(ValidationError, match="at most 600"):
        lesson(when="w" * 100, advice="a" * (LONGEST - 99))


def test_counts_take_what_counts():
    counts = LessonCounts()
    for probability_, shown, green in ((0.5, True, True), (0.5, True, False), (0.9, False, True), (0.5, False, False)):
        counts = counts.plus(LessonOutcome(probability=probability_, shown=shown, green=green))
    assert counts == LessonCounts(shown=2, withheld=2, green_when_shown=1, green_when_withheld=1)
    assert counts.plus(LessonOutcome(probability=0.5, shown=True, green=None)) == counts
    assert counts.plus(LessonOutcome(probability=1.0, shown=True, green=True)) == counts


def test_a_lesson_survives_being_written_down():
    one = lesson(scope=LessonScope.everyone, files={"a.py": "1f"}, sources=("run-2",))
    assert Lesson.model_validate_json(one.model_dump_json()) == one
    assert '"global"' in one.model_dump_json()


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
def test_a_scope_is_a_border(scope: LessonScope, tenant: str, repo: str, may: bool):
    situation = HERE.model_copy(update={"tenant": tenant, "repo": repo})
    assert in_scope(lesson(scope=scope), situation) is may
    assert bool(applying([lesson(scope=scope)], situation, NOW)) is may


@pytest.mark.parametrize("status", [LessonStatus.retired, LessonStatus.quarantined])
def test_what_is_retired_or_in_quarantine_never_applies(status: LessonStatus):
    assert applying([lesson(status=status)], HERE, NOW) == []


def test_the_kind_of_bug_fits_and_else_the_words_of_when():
    assert fit(lesson(), HERE) == 1
    elsewhere = HERE.model_copy(
        update={"family": "another", "text": "IndexError: the parser fails on the last empty line"}
    )
    assert 0.5 <= fit(lesson(), elsewhere) < 1
    assert fit(lesson(), elsewhere.model_copy(update={"text": "the parser is slow"})) == 0
    assert fit(lesson(family=""), HERE.model_copy(update={"family": ""})) == 0


def test_the_best_come_first_and_no_more_than_there_is_room_for():
    many = [lesson(str(number)) for number in range(MOST + 3)]
    active = lesson("z", status=LessonStatus.active)
    chosen = applying([*many, active], HERE, NOW)
    assert [item.id for item in chosen] == ["z", "0", "1", "2", "3"]
    long = [lesson(str(number), advice="a" * 500) for number in range(5)]
    assert sum(len(item.when) + len(item.advice) for item in applying(long, HERE, NOW)) <= ROOM
    assert len(applying(long, HERE, NOW)) == 3


def test_age_and_other_code_make_a_lesson_fade():
    assert freshness(lesson(), NOW) == 1
    assert freshness(lesson(), NOW + HALF_LIFE) == pytest.approx(0.5)
    assert freshness(lesson(confirmed_at=NOW + HALF_LIFE), NOW + HALF_LIFE) == 1
    assert freshness(lesson(), NOW, changed=1) == pytest.approx(0.25)
    assert freshness(lesson(), NOW, changed=0.5) == pytest.approx(0.5)
    assert freshness(lesson(), NOW - 5) == 1


def test_one_that_faded_is_not_shown_until_it_is_taught_again():
    late = NOW + 4 * HALF_LIFE
    assert freshness(lesson(), late) < STALE
    assert applying([lesson()], HERE, late) == []
    assert applying([lesson(confirmed_at=late)], HERE, late)
    soon = NOW + 2 * HALF_LIFE
    assert applying([lesson()], HERE, soon)
    assert applying([lesson()], HERE, soon, {"a": 1.0}) == []


def test_one_that_says_what_another_said_never_applies():
    assert applying([lesson(same_as="b")], HERE, NOW) == []


# -- the coin ----------------------------------------------------------------------------------------------------------


def test_the_coin_is_the_same_whenever_it_is_asked_and_whatever_is_beside_it():
    one, two = lesson("a"), lesson("b")
    assert flipped([one, two], "run-7") == flipped([one, two], "run-7")
    alone, beside = flipped([two], "run-7"), flipped([one, two], "run-7")
    assert alone.coins[0] == beside.coins[1]


def test_new_ones_are_shown_half_of_the_time_and_active_ones_nine_times_in_ten():
    for status, share in ((LessonStatus.new, 0.5), (LessonStatus.active, 0.9)):
        coins = [flipped([lesson(status=status)], f"run-{number}").coins[0] for number in range(4000)]
        assert {coin.probability for coin in coins} == {share}
        assert sum(coin.shown for coin in coins) / 4000 == pytest.approx(share, abs=0.03)


def test_the_coins_of_two_lessons_in_a_run_do_not_follow_one_another():
    pairs = [(drawn(f"run-{number}", "a") < 0.5, drawn(f"run-{number}", "b") < 0.5) for number in range(4000)]
    assert sum(pair == other for pair, other in pairs) / 4000 == pytest.approx(0.5, abs=0.03)


def test_without_exploring_all_are_shown_and_nothing_is_learned():
    shown = flipped([lesson("a"), lesson("b", status=LessonStatus.active)], "run-1", explore=False)
    assert shown.shown == ("a", "b")
    assert shown.withheld == ()
    assert all(coin.probability == 1 for coin in shown.coins)
    assert not LessonOutcome(probability=shown.coins[0].probability, shown=True, green=True).counts


def test_what_is_retired_is_not_shown_even_if_it_is_asked_for():
    retired = lesson(status=LessonStatus.retired)
    assert probability(LessonStatus.retired) == probability(LessonStatus.quarantined) == 0
    assert flipped([retired], "run-1").shown == flipped([retired], "run-1", explore=False).shown == ()


def test_what_was_withheld_is_told():
    lessons = [lesson(str(number)) for number in range(20)]
    shown = flipped(lessons, "run-1")
    assert shown.withheld
    assert shown.shown
    assert sorted((*shown.shown, *shown.withheld)) == sorted(item.id for item in lessons)
    assert LessonDraws().shown == LessonDraws().withheld == ()


# -- duplicates --------------------------------------------------------------------------------------------------------


def test_the_same_advice_in_nearly_the_same_words_is_one_lesson():
    again = lesson("b", advice="Test for an empty line before indexing into these parts!")
    assert duplicate_of(again, [lesson()]) == lesson()
    assert duplicate_of(lesson(), [lesson()]) is None
    assert duplicate_of(lesson("b", advice="Strip the line and close the file at the end"), [lesson()]) is None


@pytest.mark.parametrize(
    "advice",
    [
        "Do not test for the empty line before indexing into the parts",
        "Test for the empty line before indexing into the parts[0]",
        "Test for the empty line before indexing into the line_parts",
    ],
)
def test_what_says_no_or_names_another_thing_is_another_lesson(advice: str):
    assert alike(lesson(), lesson("b", advice=advice)) == 0


def test_only_what_reaches_the_same_people_and_kind_of_bug_is_the_same():
    again = lesson("b", repo="other")
    assert duplicate_of(again, [lesson()]) is None
    assert duplicate_of(again, [lesson(scope=LessonScope.tenant)]) is not None
    assert duplicate_of(lesson("b", tenant="else"), [lesson(scope=LessonScope.tenant)]) is None
    assert duplicate_of(lesson("b", tenant="else"), [lesson(scope=LessonScope.everyone)]) is not None
    assert duplicate_of(lesson("b", family="another"), [lesson()]) is None


def test_what_was_retired_does_not_come_back_in_other_words():
    retired = lesson(status=LessonStatus.retired)
    assert duplicate_of(lesson("b"), [retired]) == retired
    assert merged(retired, lesson("b")).status is LessonStatus.retired


def test_merging_keeps_the_text_and_what_was_measured_and_names_the_other_run_once():
    kept = lesson(counts=LessonCounts(shown=3, withheld=2), status=LessonStatus.active)
    again = lesson("b", made_at=NOW + 9)
    both = merged(merged(kept, again), again)
    assert both.sources == ("run-b",)
    assert both.confirmed_at == NOW + 9
    assert (both.advice, both.status, both.counts) == (kept.advice, LessonStatus.active, kept.counts)


# -- approval by a person ----------------------------------------------------------------------------------------------


def test_a_scope_widens_by_a_named_person_and_measuring_begins_anew():
    wide = approved(
        lesson(status=LessonStatus.active, counts=LessonCounts(shown=9)), "owner", NOW + 1, LessonScope.tenant
    )
    assert (wide.scope, wide.status, wide.approved_by) == (LessonScope.tenant, LessonStatus.new, "owner")
    assert (wide.counts, wide.measured_from) == (LessonCounts(), NOW + 1)


def test_nobody_and_a_narrower_scope_are_refused():
    with pytest.raises(ConfigError, match="no person"):
        approved(lesson(), "  ", NOW, LessonScope.tenant)
    with pytest.raises(ConfigError, match="already for tenant"):
        approved(lesson(scope=LessonScope.tenant), "owner", NOW, LessonScope.repo)


def test_approval_lets_out_of_quarantine():
    assert approved(lesson(status=LessonStatus.quarantined), "owner", NOW).status is LessonStatus.new
