"""Checks that a change does not worsen a program's metric, by repeated, alternating measurements."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.noun import clip
from redstart.core.shell import Execution
from redstart.core.wishes import Metric, MetricDirection
from redstart.ports.sandbox.port import SandboxSession

RUNS = 5
"""Measurements of each version."""

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]*\w)")
_TOLD = 200


class MetricJudgement(NamedTuple):
    """The result of the measurements and its reason."""

    holds: bool
    words: str
    is_measured: bool = True
    """Whether the version before the change could be measured; if not, no change can be judged."""


class MeasurementSeries(NamedTuple):
    """The measurements of one version, or, if it could not be measured, what it printed instead."""

    values: tuple[float, ...] = ()
    printed: str = ""

    @property
    def middle(self) -> float:
        return median(self.values)

    @property
    def spread(self) -> float:
        """The range of the measurements of this version."""
        return max(self.values) - min(self.values)


async def weigh(
    sandbox: SandboxSession, metric: Metric, asked: Execution, before: Snapshot, after: Snapshot
) -> MetricJudgement:
    """Measure the versions before and after a change and the initial one, alternating, and compare them.

    The version after may not be worse than another version by more than the spread of that other version.
    `asked` is how to run the command. Raises what the sandbox raises.
    """
    versions = {item.tree: item for item in (before, after, metric.start)}
    taken = await _measured(sandbox, [asked.model_copy(update={"snapshot": version}) for version in versions.values()])
    series = dict(zip(versions, taken, strict=True))
    was, now, first = series[before.tree], series[after.tree], series[metric.start.tree]
    if not was.values:
        words = f"the metric could not be measured: {was.printed or 'it printed no number'}"
        return MetricJudgement(holds=False, words=words, is_measured=False)
    if not now.values:
        return MetricJudgement(
            holds=False, words=f"the metric could not be measured with it: {now.printed or 'no number'}"
        )
    if is_worse(was, now, metric.better):
        return MetricJudgement(holds=False, words=_lost(was, now, metric.better, "before"))
    if first.values and is_worse(first, now, metric.better):
        return MetricJudgement(holds=False, words=_lost(first, now, metric.better, "at the start"))
    return MetricJudgement(holds=True, words=f"the metric is {now.middle:g}, was {was.middle:g}")


async def _measured(sandbox: SandboxSession, asked: Sequence[Execution]) -> list[MeasurementSeries]:
    """Measure each execution; one that fails once is not run again."""
    found = [MeasurementSeries() for _ in asked]
    for turn in range(RUNS):
        for place, execution in enumerate(asked):
            if len(found[place].values) < turn:
                continue
            done = await sandbox.run(execution)
            value = last_number(done.output) if done.exit_code == 0 else None
            told = clip(" ".join(done.output.split()[-20:]), _TOLD)
            found[place] = (
                MeasurementSeries((), told) if value is None else MeasurementSeries((*found[place].values, value))
            )
    return found


def last_number(output: str) -> float | None:
    """Return the last number in a text; None if there is none."""
    found = _NUMBER.findall(output)
    return float(found[-1].replace("_", "")) if found else None


def is_worse(was: MeasurementSeries, now: MeasurementSeries, better: MetricDirection) -> bool:
    loss = now.middle - was.middle if better is MetricDirection.smaller else was.middle - now.middle
    return loss > was.spread


def _lost(was: MeasurementSeries, now: MeasurementSeries, better: MetricDirection, when: str) -> str:
    differs = f", which differs by {was.spread:g} from run to run" if was.spread else ""
    return f"the metric got worse: {now.middle:g}, {when} {was.middle:g}{differs} ({better.value} is better)"
