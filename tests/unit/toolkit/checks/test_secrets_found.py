"""Secrets in code, and strings that are not secrets."""

from __future__ import annotations

import pytest

from redstart.core.finding import FindingKind
from redstart.toolkit.checks.secrets import find_secrets, is_secret
from redstart.toolkit.checks.source import create_source

KEY = "AKIA" + "Z7QPLXW3MVNT5RKD"
TOKEN = "ghp_" + "Zk83LmQpX2vT9RwYc7BnHd5SfGj4KaEo1UiN"
PRIVATE = "-----BEGIN RSA PRIVATE" + " KEY-----\\nMIIEpAIBAAKCAQEA7x8s9Qw2kL5mN3pR6tV8yB1c"


@pytest.mark.parametrize(
    "line",
    [
        f"KEY = '{KEY}'",
        f"headers = ['{TOKEN}']",
        f"KEY = '{PRIVATE}'",
        "password = 'hunter2'",
        "connect(password='Tr0ub4dor&3')",
        "settings = {'api_key': '3kTz9QpLw8XvB2nM7rYc'}",
        "def connect(password='Tr0ub4dor&3'): pass",
        "ok = password == 'letmein42'",
        "self.client_secret = 'b7e23ec29af22b0b4e41da31'",
        "os.environ.get('API_KEY', '3kTz9QpLw8XvB2nM7rYc')",
        "url = 'postgresql://shop:v9Kq2Lx8Tz@db.internal/shop'",
        "headers = {'Authorization': 'Bearer 3kTz9QpLw8XvB2nM7rYc'}",
        "clientSecret = 'b7e23ec29af22b0b4e41da31'",
    ],
)
def test_secret_is_found(line: str) -> None:
    (secret_finding,) = find_secrets([create_source("shop/a.py", f"import os\n{line}\n".encode())])
    assert (secret_finding.line, secret_finding.kind) == (2, FindingKind.secret)
    assert "Tr0ub4dor" not in secret_finding.message


@pytest.mark.parametrize(
    "line",
    [
        "KEY = 'AKIAIOSFODNN7EXAMPLE'",
        "MODELS = {'ANTHROPIC_API_KEY': 'anthropic:claude-sonnet-5-5', 'OPENAI_API_KEY': 'openai:gpt-6.1-sol'}",
        "password = 'changeme'",
        "API_KEY = 'your-api-key-here'",
        "API_KEY = '<token>'",
        "TOKEN = os.environ['TOKEN']",
        "PASSWORD_FIELD = 'password'",
        "token_url = 'https://login.example.com/oauth/token'",
        "token_type = 'bearer'",
        "secret = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'",
        "checksum = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'",
        "url = 'postgresql://user:password@localhost/shop'",
        "password = getpass('password: ')",
        "password = 'xxxxxxxx'",
        "password_hash = '$2b$12$LQv3c1yqBWVHxkd0LHAkCOYz6TtxMQJqhN8'",
        "secret_name = 'prod/db/password'",
    ],
)
def test_harmless_string_is_not_a_secret(line: str) -> None:
    assert find_secrets([create_source("shop/a.py", f"{line}\n".encode())]) == []


def test_test_data_is_not_a_secret_but_a_real_key_in_a_test_is() -> None:
    text = f"password = 'Tr0ub4dor&3'\nkey = '{KEY}'\n".encode()
    assert [secret.line for secret in find_secrets([create_source("tests/test_a.py", text)])] == [2]


def test_settings_files_are_scanned_but_their_examples_are_not() -> None:
    text = b"# settings\nDB_PASSWORD=v9Kq2Lx8Tz\nDB_HOST=localhost\n"
    assert [secret.line for secret in find_secrets([create_source(".env", text)])] == [2]
    assert find_secrets([create_source(".env.example", text)]) == []


def test_binaries_and_lock_files_are_skipped() -> None:
    text = f"key = '{KEY}'\n".encode()
    assert find_secrets([create_source("a.bin", b"\0" + text), create_source("poetry.lock", text)]) == []


def test_variable_name_alone_does_not_make_a_secret() -> None:
    assert not is_secret("token", "_sa_default")
    assert not is_secret("colour", "3kTz9QpLw8XvB2nM7rYc")
