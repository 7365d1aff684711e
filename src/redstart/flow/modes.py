"""The order of the steps of each mode. All other differences are in the steps, in one file per mode."""

from __future__ import annotations

from redstart.core.run import Mode, Step

_PATCH_STEPS = (Step.patch, Step.apply, Step.check, Step.test, Step.reflect, Step.remember, Step.decide)

MODES: dict[Mode, tuple[Step, ...]] = {
    Mode.fix: (Step.reproduce, Step.plan, Step.retrieve, Step.audit, *_PATCH_STEPS),
    Mode.create: (Step.plan, Step.reproduce, Step.retrieve, Step.audit, *_PATCH_STEPS),
    Mode.improve: (Step.audit, Step.plan, Step.reproduce, Step.retrieve, *_PATCH_STEPS),
    Mode.audit: (Step.plan, Step.retrieve, Step.audit, Step.decide),
}
