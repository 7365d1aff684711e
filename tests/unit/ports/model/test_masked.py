"""No question contains a secret, and ordinary code is unchanged."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import random
import string
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redstart.core.chat import Ask, Message, Role, Tier, ToolCall
from redstart.ports.model.mask import MaskedModel, mask, secrets_of
from redstart.testing.model import ScriptedModel

CHANCE = random.Random(7)
WORD = string.ascii_letters + string.digits


def drawn(count: int, letters: str = WORD) -> str:
    return "".join(CHANCE.choice(letters) for _ in range(count - 2)) + "a7"


def token() -> str:
    parts = [json.dumps({"alg": "HS256", "typ": "JWT"}), json.dumps({"sub": drawn(10)})]
    return ".".join([*(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts), drawn(43)])


# Assembled here, so that no text of the repository looks like a key.
SHAPED = {
    "anthropic-key": "sk-" + "ant-api03-" + drawn(60),
    "openai-key": "sk-" + "proj-" + drawn(48),
    "openrouter-key": "sk-" + "or-v1-" + drawn(64, "0123456789abcdef"),
    "groq-key": "gsk" + "_" + drawn(52),
    "huggingface-token": "hf" + "_" + drawn(34),
    "google-key": "AI" + "za" + drawn(35),
    "aws-key": "AKI" + "A" + "Q3EGRUXZ7MWPKL2H",
    "github-token": "gh" + "p_" + drawn(36),
    "gitlab-token": "gl" + "pat-" + drawn(20),
    "slack-token": "xo" + "xb-" + "824650317204-" + drawn(24),
    "stripe-key": "sk" + "_live_" + drawn(24),
    "npm-token": "np" + "m_" + drawn(36),
    "sendgrid-key": "S" + "G." + drawn(22) + "." + drawn(43),
    "telegram-token": "123456789" + ":AA" + drawn(33),
    "jwt": token(),
}


@pytest.mark.parametrize("kind", SHAPED)
@pytest.mark.parametrize(
    "around", ['key = "{}"', "{}", "use {} here.", "<data>\nA={}\n</data>", "https://x.example/?k={}&b=1"]
)
def test_keys_of_known_shapes_are_masked_wherever_they_stand(kind, around):
    text = around.format(SHAPED[kind])
    masked = mask(text)
    assert SHAPED[kind] not in masked
    assert f"«secret:{kind}»" in masked or "«secret:assigned»" in masked
    assert mask(masked) == masked


@pytest.mark.parametrize("begin", ["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
@pytest.mark.parametrize("join", ["\n", "\\n"])
def test_a_private_key_is_masked_also_where_it_is_cut_or_on_one_line(begin, join):
    lines = [drawn(64) for _ in range(6)]
    body = join.join(lines)
    whole = f"-----BEGIN {begin}-----{join}{body}{join}-----END {begin}-----"
    for text in (f'KEY = "{whole}"\nafter = 1', whole[: len(whole) // 2]):
        masked = mask(text)
        assert not [line for line in lines if line in masked or line[:20] in masked]
        assert "«secret:private-key»" in masked
    assert mask(f'KEY = "{whole}"\nafter = 1').endswith("after = 1")


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("postgresql://app:{}@db.example:5432/shop", "tR4n-sport"),
        ("https://:{}@example.com/x.git", "c0rrect-horse"),
        ("curl -H 'Authorization: Bearer {}'", drawn(40)),
        ("aws_secret_access_key = {}", drawn(38) + "+/"),
        ('{{"client_secret": "{}"}}', drawn(32)),
        ("export STRIPE_TOKEN={}", drawn(28)),
        ("AccountKey={};EndpointSuffix=core", drawn(86) + "=="),
        ("api_key: {}", drawn(32, "0123456789abcdef")),
    ],
)
def test_passwords_in_urls_headers_and_assignments_are_masked_and_what_is_around_stays(text, secret):
    masked = mask(text.format(secret))
    before, after = text.replace("{{", "{").replace("}}", "}").split("{}")
    assert secret not in masked
    assert masked.startswith(before)
    assert masked.endswith(after)


HARMLESS = [
    f'sha256 = "{hashlib.sha256(b"x").hexdigest()}"',
    f"commit {hashlib.sha1(b'y').hexdigest()}",
    f"id = '{uuid.UUID(int=0x1234567812345678123456781234567A)}'",
    f'session_key = "{uuid.UUID(int=0x2234567812345678123456781234567B)}"',
    'def login(user, password="hunter2"):\n    assert check(password)',
    'password = "correct horse battery staple"',
    "https://user:password@example.com, redis://:secret@localhost:6379/0",
    "postgresql://{user}:{password}@{host}/db and postgres://u:$PASS@h/d",
    'api_key = os.environ["OPENAI_API_KEY"]',
    "token = get_token_from_the_environment_2()",
    "primary_key = CustomerInvoiceIdentifierColumn2",
    'OPENAI_API_KEY="sk-your-key-here-1234567890abcdefghijkl"',
    'key = "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx1"',
    "AKIAIOSFODNN7EXAMPLE",
    "-----BEGIN PRIVATE KEY-----",
    "sk-learn-is-a-library-for-machine-learning-in-python",
    "cache_key = compute.stable.hash.of.arguments.v2",
    "eyJ is how a token begins",
    "def test_sort_key_of_items_by_name_and_date_2020(): ...",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_code_is_left_alone(text):
    assert mask(text) == text


@pytest.mark.slow
def test_nothing_in_this_projects_own_source_is_taken_for_a_secret():
    source = Path(__file__).parents[4] / "src" / "redstart"
    files = [path for path in source.rglob("*") if path.suffix in (".py", ".md", ".toml")]
    changed = [path.name for path in files if mask(text := path.read_text(encoding="utf-8")) != text]
    assert len(files) > 100
    assert changed == []


def test_values_of_secret_variables_are_masked_and_plain_ones_are_not():
    environ = {
        "SHOP_API_KEY": "planted-0123456789",
        "DB_PASSWORD": "postgres",
        "MY_TOKEN": "short",
        "SSH_KEY_PATH": "/home/shop/key.pem",
        "SECRET_NUMBER": "123456",
        "PWD": "/home/shop/project-1",
        "EDITOR": "planted-in-editor-1",
        "SERVICE_TOKEN": " planted-0123456789-longer ",
    }
    values = secrets_of(environ)
    assert values == {"planted-0123456789": "shop_api_key", "planted-0123456789-longer": "service_token"}
    text = "a planted-0123456789 b 'planted-0123456789-longer' cplanted-0123456789"
    assert mask(text, values) == "a «secret:shop_api_key» b '«secret:service_token»' cplanted-0123456789"


def test_every_message_and_every_call_of_a_question_is_masked_and_nothing_else_changed():
    model = ScriptedModel(["fine"])
    key = SHAPED["anthropic-key"]
    call = ToolCall(id="1", name="read", arguments=f'{{"path": "planted-value-1", "k": "{key}"}}')
    texts = [f"system {key}", "user planted-value-1", "said", f"shown {key}"]
    messages = (
        Message(role=Role.system, text=texts[0]),
        Message(role=Role.user, text=texts[1]),
        Message(role=Role.assistant, text=texts[2], calls=(call,)),
        Message(role=Role.tool, text=texts[3], reply_to="1"),
    )
    ask = Ask(question="patch", tier=Tier.strong, messages=messages, max_tokens=7, site="1/patch/0")
    answer = asyncio.run(MaskedModel(model, {"planted-value-1": "mine"}).ask(ask))
    assert answer.text == "fine"
    (sent,) = model.asks
    whole = sent.model_dump_json()
    assert key not in whole
    assert "planted-value-1" not in whole
    assert sent.messages[1].text == "user «secret:mine»"
    assert [message.role for message in sent.messages] == [message.role for message in messages]
    assert sent.messages[3].reply_to == "1"
    assert (sent.max_tokens, sent.site, sent.question) == (7, "1/patch/0", "patch")


def test_a_question_without_secrets_is_passed_on_as_it_is():
    model = ScriptedModel(["fine"])
    ask = Ask(question="plan", tier=Tier.fast, messages=(Message(role=Role.user, text="plain"),))
    asyncio.run(MaskedModel(model, {}).ask(ask))
    assert model.asks == [ask]


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=300), st.sampled_from(sorted(SHAPED.values())))
def test_masking_twice_changes_nothing_more(text, key):
    masked = mask(f"{text} {key} {text}")
    assert mask(masked) == masked
