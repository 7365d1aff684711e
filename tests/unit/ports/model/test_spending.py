from __future__ import annotations

from redstart.core.chat import Answer, AnswerFault, Usage
from redstart.ports.model.prices import list_model_shares


def create_answer(model: str, *tokens: int, usd: float | None = 0.0, fault: AnswerFault | None = None) -> Answer:
    names = ("input_tokens", "output_tokens", "cached_tokens")
    usage = Usage.model_validate({**dict(zip(names, tokens, strict=False)), "usd": usd})
    return Answer(text="x", model=model, usage=usage, fault=fault)


def test_models_are_listed_by_first_answer_with_their_share() -> None:
    shares = list_model_shares(
        [
            create_answer("fast", 100, 10, usd=0.5),
            create_answer("strong", 1000, 200, 600, usd=2.0),
            create_answer("fast", 50, 5, usd=0.25, fault=AnswerFault.truncated),
            create_answer("strong", 0, 0, fault=AnswerFault.budget),
        ]
    )
    assert [(share.model, share.answers, share.input_tokens, share.output_tokens, share.usd) for share in shares] == [
        ("fast", 2, 150, 15, 0.75),
        ("strong", 1, 1000, 200, 2.0),
    ]
    assert [share.hit_rate for share in shares] == [0.0, 0.6]


def test_unknown_price_is_not_zero() -> None:
    (local,) = list_model_shares([create_answer("local", 10, 1, usd=None)])
    assert local.usd is None


def test_no_answers_give_no_shares() -> None:
    assert list_model_shares([]) == []
    assert list_model_shares([create_answer("m", 0, 0)])[0].hit_rate == 0.0
