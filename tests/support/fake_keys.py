"""Texts that have the shape of real keys and are none."""

from __future__ import annotations

import base64
import json
import random
import string

CHANCE = random.Random(7)
WORD = string.ascii_letters + string.digits


def generate_text(count: int, alphabet: str = WORD) -> str:
    return "".join(CHANCE.choice(alphabet) for _ in range(count - 2)) + "a7"


def generate_token() -> str:
    parts = [json.dumps({"alg": "HS256", "typ": "JWT"}), json.dumps({"sub": generate_text(10)})]
    return ".".join(
        [*(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts), generate_text(43)]
    )


# Assembled here, so that no text of the repository looks like a key.
SHAPED = {
    "anthropic-key": "sk-" + "ant-api03-" + generate_text(60),
    "openai-key": "sk-" + "proj-" + generate_text(48),
    "openrouter-key": "sk-" + "or-v1-" + generate_text(64, "0123456789abcdef"),
    "groq-key": "gsk" + "_" + generate_text(52),
    "huggingface-token": "hf" + "_" + generate_text(34),
    "google-key": "AI" + "za" + generate_text(35),
    "aws-key": "AKI" + "A" + "Q3EGRUXZ7MWPKL2H",
    "github-token": "gh" + "p_" + generate_text(36),
    "gitlab-token": "gl" + "pat-" + generate_text(20),
    "slack-token": "xo" + "xb-" + "824650317204-" + generate_text(24),
    "stripe-key": "sk" + "_live_" + generate_text(24),
    "npm-token": "np" + "m_" + generate_text(36),
    "sendgrid-key": "S" + "G." + generate_text(22) + "." + generate_text(43),
    "telegram-token": "123456789" + ":AA" + generate_text(33),
    "jwt": generate_token(),
}
