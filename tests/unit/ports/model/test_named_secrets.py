"""A value under the name of a secret is masked, even if short or split; text that only looks like one is unchanged."""

from __future__ import annotations

import pytest

from redstart.ports.model.secret_mask import mask

# Assembled here, so that no text of the repository looks like a key.
SHORT = "a8F5k2" + "M9x1"
PASSWORD = "Tr0ub4dor" + "&3"
LONG = "Zk3v9Qw7Lm2Xr8" + "Tb5Yc1Nd6Hf4Gs0Pj"
KEY = "sk-" + "ant-api03-" + LONG

SECRETS = {
    "annotated": f'api_key: str = "{SHORT}"',
    "annotated optional": f"api_key: str | None = '{SHORT}'",
    "annotated generic": f'password: Optional[str] = "{PASSWORD}"',
    "field": f'password: SecretStr = SecretStr("{PASSWORD}")',
    "default of a field": f'api_key: str = Field(default="{SHORT}")',
    "environ": f'token = os.environ.get("X_TOKEN", "{SHORT}")',
    "getenv": f"os.getenv('API_KEY', '{SHORT}')",
    "config": f'SECRET = config("SECRET_KEY", default="{SHORT}")',
    "or": f'key = os.environ.get("API_KEY") or "{SHORT}"',
    "javascript": f'const k = process.env.API_KEY || "{SHORT}";',
    "nullish": f'const k = process.env.authToken ?? "{SHORT}";',
    "yaml": f"db:\n  password: {PASSWORD}\n  port: 1",
    "yaml list": f"- api_key: {SHORT}  # mine",
    "yaml quoted": f'client_secret: "{SHORT}"',
    "dict": f'{{"client_secret": "{SHORT}", "id": 1}}',
    "dict of python": f"'password': '{PASSWORD}',",
    "subscript": f'os.environ["DB_PASSWORD"] = "{PASSWORD}"',
    "keyword": f'connect(user="app", password="{PASSWORD}")',
    "short": f'AUTH_TOKEN = "{SHORT}"',
    "shell": f"export DB_PASSWORD={PASSWORD}\nrun",
    "env file": f"API_KEY={SHORT}",
    "ini": "db_pass = S3" + "cr3t!pass",
    "camel": f'const slackToken = "{SHORT}"',
    "ruby": f':secret => "{SHORT}"',
    "go": f'apiKey := "{SHORT}"',
    "netrc": "machine git.example.org login me password swordfish",
    "netrc in lines": "machine h\n  login me\n  password swordfish\n",
    "netrc default": "default login me password swordfish",
    "split side by side": f'token = (\n    "{LONG[:15]}"\n    "{LONG[15:]}"\n)',
    "split by plus": f"access_token = '{LONG[:12]}' +\n    '{LONG[12:]}'",
    "split by a backslash": f'api_key = "{LONG[:12]}" \\\n    "{LONG[12:]}"',
    "split within": f'api_key = "{LONG[:12]}\\\n{LONG[12:]}"',
    "split shape": f'client("{KEY[:18]}"\n       "{KEY[18:]}")',
}
HONEST = [
    "token = tokens[0]",
    "password: str",
    "password: str = None",
    "def login(user: str, password: str, token: str | None = None) -> None:",
    "key: Callable[[int], str]",
    "token: UUID4",
    "password: Base64Text",
    'secret_name = "db-2-x9k"',
    'token_type = "x2y4z6a8"',
    'password_field = "user_pw_2x"',
    'api_key = "changeme"',
    'api_key = "change-me-2024"',
    'password = "..."',
    'token = "<token>"',
    'token = "xxx"',
    'secret = "xxxxxxxx1"',
    'password = ""',
    "password:",
    'password = "password123"',
    'password = "test1234"',
    'token = "${TOKEN_2}"',
    'token = "{token2}x"',
    'api_key = os.environ["OPENAI_API_KEY_2"]',
    'os.environ.get("NEO4J_USERNAME", "neo4j")',
    'password = environ.get("NEO4J_PASSWORD", "")',
    'models = {"OPENAI_API_KEY": "openai:gpt-6.1-sol"}',
    'sort_key = "a1b2c3d4e5"',
    'cache_key: str = "user:v2:list9x"',
    'token = "sha256"',
    "token = lexer.next2()",
    "token = a2 if b3 else c4",
    "if x2: pass",
    'compass = "n0rth-a1b2c3"',
    "secret = p2p_secret_of(x)",
    'eos_token = "</s>"',
    "password: !vault |",
    "password: ${DB_PASSWORD}",
    "password: {{ db_password2 }}",
    'if token == "x1y2z3w4":',
    "the machine of the login asks for a password swordfish",
    "machine h login me password <password>",
    'names = "alpha1beta2"\n    "gamma3delta4"',
    'token = "2024-01-02T03:04"',
    'secret = "./keys/a1b2.pem"',
]


@pytest.mark.parametrize("name", SECRETS)
def test_secret_is_masked(name: str) -> None:
    masked_text = mask(SECRETS[name])
    for part in (SHORT, PASSWORD, "swordfish", "cr3t!pass", LONG[:12], LONG[15:]):
        assert part not in masked_text
    assert "«secret:" in masked_text
    assert mask(masked_text) == masked_text


@pytest.mark.parametrize("text", HONEST)
def test_code_without_secrets_is_unchanged(text: str) -> None:
    assert mask(text) == text


def test_surrounding_text_is_unchanged() -> None:
    assert mask(SECRETS["dict"]) == '{"client_secret": "«secret:assigned»", "id": 1}'
    assert mask(SECRETS["yaml"]) == "db:\n  password: «secret:assigned»\n  port: 1"
    assert mask(SECRETS["split by plus"]) == "access_token = '«secret:assigned»'"
