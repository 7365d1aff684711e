"""What each model was asked and what that cost, from the answers that were recorded."""

from __future__ import annotations

from collections.abc import Iterable

from redstart.core.chat import Answer
from redstart.core.noun import Noun
from redstart.ports.model.prices import added


class Share(Noun):
    """One model's share of a run. What failed calls used is with the model that answered in the end."""

    model: str
    answers: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    """Those of the input that came from the provider's cache."""
    usd: float | None
    """None where the price of none of them is known."""

    @property
    def hit_rate(self) -> float:
        """The part of the input that came from the provider's cache."""
        return self.cached_tokens / self.input_tokens if self.input_tokens else 0.0


def by_model(answers: Iterable[Answer]) -> list[Share]:
    """The shares in the order in which the models first answered; questions that were not asked are left out."""
    of_model: dict[str, list[Answer]] = {}
    for answer in answers:
        if answer.asked:
            of_model.setdefault(answer.model, []).append(answer)
    return [_share(model, given) for model, given in of_model.items()]


def _share(model: str, given: list[Answer]) -> Share:
    used = added(answer.usage for answer in given)
    return Share(
        model=model,
        answers=len(given),
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cached_tokens=used.cached_tokens,
        usd=used.usd,
    )
