"""Whether a change leaves a program's metric as good as it was, by repeated measurements in turns."""

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
    """What the measurements say, and in words why."""

    holds: bool
    words: str
    is_measured: bool = True
    """Whether the version before the change could be measured: otherwise nothing can be said of any change."""


class MeasurementSeries(NamedTuple):
    """The measurements of one version; none where it could not be measured, and what was printed instead."""

    values: tuple[float, ...] = ()
    printed: str = ""

    @property
    def middle(self) -> float:
        return median(self.values)

    @property
    def spread(self) -> float:
        """By how much one and the same version differs from itself."""
        return max(self.values) - min(self.values)


async def weigh(
    sandbox: SandboxSession, metric: Metric, asked: Execution, before: Snapshot, after: Snapshot
) -> MetricJudgement:
    """Measures the version before a change, the one after it and the first of all, in turns, and compares.

    The version after may not be worse than another by more than that other one's measurements differ among themselves.
    `asked` is how the command is run. Raises what the sandbox raises.
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
    """Of each execution; one that fails once is not run again."""
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
    """The last number in a text; None where there is none."""
    found = _NUMBER.findall(output)
    return float(found[-1].replace("_", "")) if found else None


def is_worse(was: MeasurementSeries, now: MeasurementSeries, better: MetricDirection) -> bool:
    loss = now.middle - was.middle if better is MetricDirection.smaller else was.middle - now.middle
    return loss > was.spread


def _lost(was: MeasurementSeries, now: MeasurementSeries, better: MetricDirection, when: str) -> str:
    differs = f", which differs by {was.spread:g} from run to run" if was.spread else ""
    return f"the metric got worse: {now.middle:g}, {when} {was.middle:g}{differs} ({better.value} is better)"
