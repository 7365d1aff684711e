"""Check that a change does not worsen a program's metric, by repeated, alternating measurements."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from redstart.core.change import Snapshot
from redstart.core.frozen import clip
from redstart.core.run_preferences import Metric, MetricDirection
from redstart.core.shell import Execution
from redstart.ports.sandbox.port import SandboxSession

RUNS = 5
"""Measurements of each version."""

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]*\w)")
_MAX_OUTPUT_CHARACTERS = 200


class MetricJudgement(NamedTuple):
    """The result of the measurements and its reason."""

    is_met: bool
    message: str
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
    sandbox: SandboxSession, metric: Metric, execution: Execution, before: Snapshot, after: Snapshot
) -> MetricJudgement:
    """Measure the versions before and after a change and the initial one, alternating, and compare them.

    The version after may not be worse than another version by more than the spread of that other version.
    `execution` is how to run the command. Raises what the sandbox raises.
    """
    versions = {item.tree: item for item in (before, after, metric.start)}
    measurements = await _measure(
        sandbox, [execution.model_copy(update={"snapshot": version}) for version in versions.values()]
    )
    series = dict(zip(versions, measurements, strict=True))
    previous, current, start = series[before.tree], series[after.tree], series[metric.start.tree]
    if not previous.values:
        message = f"the metric could not be measured: {previous.printed or 'it printed no number'}"
        return MetricJudgement(is_met=False, message=message, is_measured=False)
    if not current.values:
        return MetricJudgement(
            is_met=False, message=f"the metric could not be measured with it: {current.printed or 'no number'}"
        )
    if is_worse(previous, current, metric.better):
        return MetricJudgement(is_met=False, message=_describe_loss(previous, current, metric.better, "before"))
    if start.values and is_worse(start, current, metric.better):
        return MetricJudgement(is_met=False, message=_describe_loss(start, current, metric.better, "at the start"))
    return MetricJudgement(is_met=True, message=f"the metric is {current.middle:g}, was {previous.middle:g}")


async def _measure(sandbox: SandboxSession, executions: Sequence[Execution]) -> list[MeasurementSeries]:
    """Measure each execution; one that fails once is not run again."""
    series = [MeasurementSeries() for _ in executions]
    for turn in range(RUNS):
        for place, execution in enumerate(executions):
            if len(series[place].values) < turn:
                continue
            completed = await sandbox.run(execution)
            value = find_last_number(completed.output) if completed.exit_code == 0 else None
            printed = clip(" ".join(completed.output.split()[-20:]), _MAX_OUTPUT_CHARACTERS)
            series[place] = (
                MeasurementSeries((), printed) if value is None else MeasurementSeries((*series[place].values, value))
            )
    return series


def find_last_number(output: str) -> float | None:
    """Return the last number in a text; None if there is none."""
    numbers = _NUMBER.findall(output)
    return float(numbers[-1].replace("_", "")) if numbers else None


def is_worse(previous: MeasurementSeries, current: MeasurementSeries, direction: MetricDirection) -> bool:
    loss = (
        current.middle - previous.middle if direction is MetricDirection.smaller else previous.middle - current.middle
    )
    return loss > previous.spread


def _describe_loss(
    previous: MeasurementSeries, current: MeasurementSeries, direction: MetricDirection, label: str
) -> str:
    spread_note = f", which differs by {previous.spread:g} from run to run" if previous.spread else ""
    return (
        f"the metric got worse: {current.middle:g}, {label} {previous.middle:g}{spread_note} "
        f"({direction.value} is better)"
    )
