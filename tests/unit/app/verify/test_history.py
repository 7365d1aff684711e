"""Who made a change, how changes are counted, and the reports of a history."""

from __future__ import annotations

from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.cells import cell_len

from redstart.app.verify.history.authors import find_agents, parse_contributor
from redstart.app.verify.history.commits import list_commits, parse_period
from redstart.app.verify.history.counts import count_changes, group_by_agent, group_by_author
from redstart.app.verify.history.page import render_history
from redstart.app.verify.history.summary import summarize
from redstart.cli.verify_history import format_history
from redstart.core.errors import ConfigError
from redstart.core.history import ChangeCounts, ChangeHistory, MergedChange
from redstart.core.run import Level
from redstart.core.verification import Claim, ClaimKind, CodeVersion, UntestedLines, VerificationEnd
from support.git_repo import commit_each, git, make_repo, write

HOSTILE = '<script>alert("x")</script> \x1b[2J ' + "long " * 30


def make_change(number: int, end: VerificationEnd | None, **values: object) -> MergedChange:
    change = MergedChange(commit=f"{number:040}", date="2026-11-01", subject=f"change {number}", author="Ann", end=end)
    return change.model_copy(update=values)


def make_claims(*kinds: ClaimKind) -> tuple[Claim, ...]:
    return tuple(Claim(test=f"test_a.py::test_{kind.value}", kind=kind) for kind in kinds)


CHANGES = (
    make_change(1, VerificationEnd.verified, agents=("Claude", "Cursor")),
    make_change(2, VerificationEnd.unproven, claims=make_claims(ClaimKind.green_without)),
    make_change(3, VerificationEnd.weakened, claims=make_claims(ClaimKind.removed, ClaimKind.green_without)),
    make_change(4, VerificationEnd.worse, reason="1 test fails", untested=(UntestedLines(path="a.py", lines=(3, 4)),)),
    make_change(5, VerificationEnd.unproven, no_test_ran=True, author="dependabot[bot]", bot=True),
    make_change(6, VerificationEnd.environment, reason="no module six", claims=make_claims(ClaimKind.weakened)),
    make_change(7, None, author="Bob"),
)


def make_history(*changes: MergedChange) -> ChangeHistory:
    counts = count_changes(changes)
    return ChangeHistory(
        redstart="0.1.0",
        repo="shop",
        head=CodeVersion(name="main", commit="1" * 40, tree="2" * 40),
        since="2026-08-22",
        days=90,
        level=Level.quick,
        exit_code=0,
        summary=tuple(summarize(counts, 90, 5, is_cut=False)),
        counts=counts,
        authors=tuple(group_by_author(changes)),
        agents=tuple(group_by_agent(changes)),
        changes=changes,
    )


@pytest.mark.parametrize(
    ("trailer", "agents"),
    [
        ("Claude Opus 5 <noreply@anthropic.com>", ("Claude",)),
        ("Copilot <198982749+Copilot@users.noreply.github.com>", ("Copilot",)),
        ("Cursor <cursoragent@cursor.com>", ("Cursor",)),
        ("Ann Lee (aider) <ann@example.org>", ("Aider",)),
        ("Claude Moreau <claude@example.org>", ()),
        ("dependabot[bot] <49699333+dependabot[bot]@users.noreply.github.com>", ()),
        ("nonsense", ()),
    ],
)
def test_agent_is_known_by_its_address_and_not_by_a_name_that_people_have(trailer: str, agents: tuple[str, ...]):
    assert find_agents([parse_contributor(trailer)]) == agents


@pytest.mark.parametrize(
    ("trailer", "is_bot"),
    [
        ("dependabot[bot] <49699333+dependabot[bot]@users.noreply.github.com>", True),
        ("Renovate Bot <bot@renovateapp.com>", True),
        ("release-bot <release@example.org>", True),
        ("Abbot <abbot@example.org>", False),
    ],
)
def test_bot_is_known_by_its_name_or_address(trailer: str, is_bot: bool):
    assert parse_contributor(trailer).is_bot is is_bot


def test_period_is_in_days_or_weeks():
    assert (parse_period("90d"), parse_period("12w")) == (90, 84)
    for text in ("90", "0d", "d", "-1d", "3 months"):
        with pytest.raises(ConfigError, match="is not a period"):
            parse_period(text)


def test_merge_is_a_change_of_those_who_wrote_it(tmp_path: Path):
    repo = make_repo(tmp_path / "shop", {"a.txt": "1"})
    git(repo, "checkout", "-qb", "feature")
    write(repo, {"a.txt": "2"})
    git(repo, "commit", "-qam", "two\n\nCo-Authored-By: Claude <noreply@anthropic.com>", "--author", "Bob <b@x.org>")
    git(repo, "checkout", "-q", "main")
    git(repo, "merge", "-q", "--no-ff", "feature", "-m", "Merge pull request #7 from bob/feature\n\nRound totals")
    merge, first = list_commits(repo, "main", datetime(2000, 1, 1, tzinfo=UTC))
    assert (merge.subject, merge.author.name, merge.agents) == ("Round totals (#7)", "Bob", ("Claude",))
    assert (merge.parent, first.parent) == (first.id, "")


def test_history_ends_with_the_period(tmp_path: Path):
    repo = make_repo(tmp_path / "shop", {"a.txt": "1"})
    commit_each(repo, [{"a.txt": "2"}])
    commits = list_commits(repo, "main", datetime(2025, 10, 1, tzinfo=UTC))
    assert [commit.subject for commit in commits] == ["commit 1", "start"]
    assert list_commits(repo, "main", datetime(2025, 12, 1, tzinfo=UTC)) == []


def test_change_counts_for_everything_that_its_verdict_shows():
    assert count_changes(CHANGES) == ChangeCounts(
        changes=7,
        judged=4,
        proven=1,
        green_without=2,
        weakened=1,
        untested=1,
        worse=1,
        no_test_ran=1,
        not_run=1,
        not_examined=1,
    )
    authors = [(group.name, group.bot, group.counts.changes) for group in group_by_author(CHANGES)]
    assert authors == [("Ann", False, 5), ("Bob", False, 1), ("dependabot[bot]", True, 1)]
    agents = [(group.name, group.counts.changes) for group in group_by_agent(CHANGES)]
    assert agents == [("", 5), ("Claude", 1), ("Cursor", 1), ("bots", 1)]


def test_summary_names_only_what_was_found():
    assert make_history(*CHANGES).summary == (
        "Of 7 changes in the last 90 days, 2 added tests that pass without the change, 1 weakened a test, 1 changes "
        "lines that no test runs and 1 made tests fail.",
        "1 proven by a test; 1 without a file that a test reads; 1 cannot run in this environment; 1 not examined "
        "within 5 minutes.",
    )
    assert make_history().summary == ("No change in the last 90 days.",)
    assert "none weakened a test" in make_history(CHANGES[0]).summary[0]
    assert "none could be judged by tests" in make_history(CHANGES[5]).summary[0]


def test_text_fits_80_columns_and_lists_a_few_changes_of_each_kind():
    hostile = make_change(8, VerificationEnd.weakened, author=HOSTILE, claims=make_claims(ClaimKind.weakened))
    many = [make_change(10 + number, CHANGES[1].end, claims=CHANGES[1].claims) for number in range(8)]
    history = make_history(*CHANGES, hostile, *many)
    lines = [line.text for line in format_history(history, 80, grouping="author", shows_all=False)]
    assert [line for line in lines if cell_len(line) > 80 and " " in line.strip()] == []
    assert lines[
        lines.index("author".ljust(19) + "  changes  proven  without  weakened  untested  worse     run") + 1
    ] == ("Ann".ljust(19) + "       13       1       10         1         1      1       1")
    assert lines[lines.index("Worse (1): a test fails with the change, or the change hides failures") + 2] == (
        "           1 test fails"
    )
    assert "           a.py, lines 3-4" in lines
    assert "  1 change: no module six" in lines
    assert "  and 5 more: --verbose lists them" in lines
    assert not any("\x1b" in line for line in lines)
    everything = [line.text for line in format_history(history, None, grouping="agent", shows_all=True)]
    assert sum("change 1" in line for line in everything) == 8
    assert not any("more: --verbose" in line for line in everything)


class _Elements(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action")]


def test_page_needs_nothing_beside_itself_and_escapes_every_text_of_the_repo():
    plain, hostile = (
        render_history(
            make_history(
                make_change(
                    1,
                    VerificationEnd.weakened,
                    subject=text,
                    author=text,
                    claims=(Claim(test=text, kind=ClaimKind.weakened, note=text),),
                    untested=(UntestedLines(path=text, lines=(1,)),),
                ),
                make_change(2, VerificationEnd.environment, reason=text, agents=("Claude",)),
            )
        )
        for text in ("plain", HOSTILE)
    )
    assert _Elements(plain).tags == _Elements(hostile).tags
    assert "script" not in _Elements(hostile).tags
    assert _Elements(hostile).addresses == []
    assert "default-src 'none'" in plain
    assert "url(" not in plain
    for text in ("By author", "By agent", "Weakened", "Untested", "Cannot run here", "Every change (2)"):
        assert text in plain
