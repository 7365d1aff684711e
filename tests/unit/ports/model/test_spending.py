from __future__ import annotations

from redstart.core.chat import Answer, AnswerFault, Usage
from redstart.ports.model.prices import by_model


def said(model: str, *tokens: int, usd: float | None = 0.0, fault: AnswerFault | None = None) -> Answer:
    names = ("input_tokens", "output_tokens", "cached_tokens")
    usage = Usage.model_validate({**dict(zip(names, tokens, strict=False)), "usd": usd})
    return Answer(text="x", model=model, usage=usage, fault=fault)


def test_each_model_has_its_share_in_the_order_of_its_first_answer() -> None:
    shares = by_model(
        [
            said("fast", 100, 10, usd=0.5),
            said("strong", 1000, 200, 600, usd=2.0),
            said("fast", 50, 5, usd=0.25, fault=AnswerFault.truncated),
            said("strong", 0, 0, fault=AnswerFault.budget),
        ]
    )
    assert [(share.model, share.answers, share.input_tokens, share.output_tokens, share.usd) for share in shares] == [
        ("fast", 2, 150, 15, 0.75),
        ("strong", 1, 1000, 200, 2.0),
    ]
    assert [share.hit_rate for share in shares] == [0.0, 0.6]


def test_a_price_that_nobody_knows_is_not_nothing() -> None:
    (local,) = by_model([said("local", 10, 1, usd=None)])
    assert local.usd is None


def test_nothing_was_asked() -> None:
    assert by_model([]) == []
    assert by_model([said("m", 0, 0)])[0].hit_rate == 0.0
