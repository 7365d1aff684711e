"""No question contains a secret, and ordinary code is unchanged."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from pathlib import Path

import pytest

from redstart.core.chat import Ask, Message, Role, Tier, ToolCall
from redstart.ports.model.secret_mask import MaskedModel, find_secrets, mask
from redstart.testing.model import ScriptedModel
from support.fake_keys import SHAPED, generate_text


@pytest.mark.parametrize("kind", SHAPED)
@pytest.mark.parametrize(
    "template", ['key = "{}"', "{}", "use {} here.", "<data>\nA={}\n</data>", "https://x.example/?k={}&b=1"]
)
def test_keys_of_known_shapes_are_masked_everywhere(kind, template):
    text = template.format(SHAPED[kind])
    masked_text = mask(text)
    assert SHAPED[kind] not in masked_text
    assert f"«secret:{kind}»" in masked_text or "«secret:assigned»" in masked_text
    assert mask(masked_text) == masked_text


@pytest.mark.parametrize("label", ["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
@pytest.mark.parametrize("join", ["\n", "\\n"])
def test_private_key_is_masked_even_if_truncated_or_on_one_line(label, join):
    lines = [generate_text(64) for _ in range(6)]
    body = join.join(lines)
    private_key = f"-----BEGIN {label}-----{join}{body}{join}-----END {label}-----"
    for text in (f'KEY = "{private_key}"\nafter = 1', private_key[: len(private_key) // 2]):
        masked_text = mask(text)
        assert not [line for line in lines if line in masked_text or line[:20] in masked_text]
        assert "«secret:private-key»" in masked_text
    assert mask(f'KEY = "{private_key}"\nafter = 1').endswith("after = 1")


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("postgresql://app:{}@db.example:5432/shop", "tR4n-sport"),
        ("https://:{}@example.com/x.git", "c0rrect-horse"),
        ("curl -H 'Authorization: Bearer {}'", generate_text(40)),
        ("aws_secret_access_key = {}", generate_text(38) + "+/"),
        ('{{"client_secret": "{}"}}', generate_text(32)),
        ("export STRIPE_TOKEN={}", generate_text(28)),
        ("AccountKey={};EndpointSuffix=core", generate_text(86) + "=="),
        ("api_key: {}", generate_text(32, "0123456789abcdef")),
    ],
)
def test_passwords_in_urls_headers_and_assignments_are_masked(text, secret):
    masked_text = mask(text.format(secret))
    before, after = text.replace("{{", "{").replace("}}", "}").split("{}")
    assert secret not in masked_text
    assert masked_text.startswith(before)
    assert masked_text.endswith(after)


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
def test_ordinary_code_is_unchanged(text):
    assert mask(text) == text


@pytest.mark.slow
def test_own_source_contains_no_false_positive():
    source = Path(__file__).parents[4] / "src" / "redstart"
    files = [path for path in source.rglob("*") if path.suffix in (".py", ".md", ".toml")]
    changed = [path.name for path in files if mask(text := path.read_text(encoding="utf-8")) != text]
    assert len(files) > 100
    assert changed == []


def test_values_of_secret_variables_are_masked():
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
    values = find_secrets(environ)
    assert values == {"planted-0123456789": "shop_api_key", "planted-0123456789-longer": "service_token"}
    text = "a planted-0123456789 b 'planted-0123456789-longer' cplanted-0123456789"
    assert mask(text, values) == "a «secret:shop_api_key» b '«secret:service_token»' cplanted-0123456789"


def test_every_message_and_call_is_masked_and_nothing_else_changes():
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
    (sent_ask,) = model.questions
    sent_json = sent_ask.model_dump_json()
    assert key not in sent_json
    assert "planted-value-1" not in sent_json
    assert sent_ask.messages[1].text == "user «secret:mine»"
    assert [message.role for message in sent_ask.messages] == [message.role for message in messages]
    assert sent_ask.messages[3].reply_to == "1"
    assert (sent_ask.max_tokens, sent_ask.site, sent_ask.question) == (7, "1/patch/0", "patch")


def test_question_without_secrets_is_unchanged():
    model = ScriptedModel(["fine"])
    ask = Ask(question="plan", tier=Tier.fast, messages=(Message(role=Role.user, text="plain"),))
    asyncio.run(MaskedModel(model, {}).ask(ask))
    assert model.questions == [ask]
