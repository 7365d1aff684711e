"""The instruments that an evaluation can be done with instead of a model, by name."""

from __future__ import annotations

from redstart.app.wire import House
from redstart.core.errors import ConfigError
from redstart.evals.measure import true_fixes
from redstart.evals.oracles import NoisyOracle, OracleAtRecall
from redstart.evals.outcome import Key
from redstart.evals.runner import ModelFor
from redstart.evals.sealed import Site
from redstart.ports.model.port import Model

PREFIX = "instrument:"
KNOWN = f"{PREFIX}{OracleAtRecall.name} or {PREFIX}{NoisyOracle.name}:RIGHT[:RISE]"


def instrument_for(house: House, name: str) -> ModelFor | None:
    """What gives each run its instrument; None where `name` is that of a model.

    A noisy oracle is right with the probability RIGHT, which rises by RISE with each attempt. Raises `ConfigError` for
    an instrument that is none.
    """
    if not name.startswith(PREFIX):
        return None
    kind, *numbers = name.removeprefix(PREFIX).split(":")
    if kind == OracleAtRecall.name and not numbers:
        return lambda site, _key: OracleAtRecall(true_fixes(house, site))
    if kind != NoisyOracle.name or len(numbers) not in (1, 2):
        raise ConfigError(f"there is no instrument {name}", remedy=f"there is {KNOWN}")
    try:
        right, rise = (*map(float, numbers), 0.0)[:2]
    except ValueError as error:
        raise ConfigError(f"{name}: a probability is a number from 0 to 1") from error

    def noisy(site: Site, key: Key) -> Model:
        return NoisyOracle(true_fixes(house, site), right=right, rise=rise, seed=str(key))

    return noisy
