"""What verification shows of the changes already merged. Every docstring here is a description in the schema."""

from __future__ import annotations

from redstart.core.run import Level
from redstart.core.verification import Claim, CodeVersion, UntestedLines, VerificationEnd, VerificationPart


class MergedChange(VerificationPart):
    """A commit of the branch, against its first parent."""

    commit: str
    date: str
    """When it was committed, as YYYY-MM-DD."""
    subject: str
    """The title of the commit; of a merged pull request, its title."""
    author: str
    """The name of the author; of a merge, the author of most of the merged commits."""
    bot: bool = False
    """Whether the author is a bot."""
    agents: tuple[str, ...] = ()
    """The coding agents that are the author or a co-author."""
    end: VerificationEnd | None = None
    """The verdict; None if the change was not examined, because the time was over or no suite could be chosen."""
    reason: str = ""
    """The verdict in one sentence, or why there is none."""
    no_test_ran: bool = False
    """Whether the change concerns no file that a test reads."""
    claims: tuple[Claim, ...] = ()
    """Tests that are hidden, broken, weakened, removed or skipped, and, if the source changed, new tests that pass
    without the change."""
    untested: tuple[UntestedLines, ...] = ()
    """Changed lines that no test runs which imports the file."""


class ChangeCounts(VerificationPart):
    """How many changes. A change can count in several of `green_without`, `weakened`, `untested` and `worse`."""

    changes: int = 0
    judged: int = 0
    """Those with a verdict that rests on tests."""
    proven: int = 0
    """A test fails without the change and passes with it, and nothing got worse."""
    green_without: int = 0
    """The source changed, and a new test passes without the change too."""
    weakened: int = 0
    """A test demands less than before, is gone or does not run any more."""
    untested: int = 0
    """Changed lines that no test runs."""
    worse: int = 0
    """A test fails with the change, or the change hides failures."""
    no_test_ran: int = 0
    """Changes of documentation and other files that no test reads."""
    not_run: int = 0
    """The tests cannot run in this environment."""
    not_examined: int = 0
    """The time was over."""


class ChangeGroup(VerificationPart):
    """The changes of an author or an agent."""

    name: str
    """Empty for the changes that no agent is named in."""
    bot: bool = False
    counts: ChangeCounts


class ChangeHistory(VerificationPart):
    """The verdicts on the changes of a branch in a period."""

    format: str = "redstart-history/1"
    redstart: str
    """The version of Redstart."""
    repo: str
    head: CodeVersion
    """The branch, and the commit that the period ends with."""
    since: str
    """The first day of the period, as YYYY-MM-DD."""
    days: int
    level: Level
    exit_code: int
    summary: tuple[str, ...]
    """What the history shows, one sentence each."""
    counts: ChangeCounts
    authors: tuple[ChangeGroup, ...] = ()
    """Those with the most changes first."""
    agents: tuple[ChangeGroup, ...] = ()
    """A change with several agents counts for each of them."""
    changes: tuple[MergedChange, ...] = ()
    """Newest first."""
