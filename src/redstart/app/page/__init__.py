"""One self-contained HTML page: it loads nothing, and every text in it is escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from redstart.core.errors import ConfigError

MAX_NAME_LENGTH = 300


def render_document(title: str, body: Sequence[str], scripts: Sequence[str] = (), styles: str = "") -> str:
    """Render a page that loads nothing and runs only these scripts. `body` is HTML in which all texts are escaped.

    The styles of every page come before `styles`.
    """
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_build_content_policy(scripts)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)}</title>",
            f"<style>{read_page_file(__name__, 'page.css')}\n{styles}</style></head><body><main>",
            *body,
            "</main>",
            *(f"<script>{script}</script>" for script in scripts),
            "</body></html>\n",
        ]
    )


def escape_name(text: str) -> str:
    """Escape a name of any origin and limit its length."""
    return escape(text[:MAX_NAME_LENGTH])


def read_page_file(package: str, *names: str) -> str:
    """Read a style sheet or script that belongs to that package."""
    return files(package).joinpath(*names).read_text(encoding="utf-8")


def write_page(file: Path, page: str) -> int:
    """Write a page and return its size in bytes. Raises `ConfigError` if the file cannot be written."""
    # Characters of a name that are not valid Unicode are replaced.
    data = page.encode(errors="replace")
    try:
        file.write_bytes(data)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}", remedy="choose another file") from error
    return len(data)


def _build_content_policy(scripts: Sequence[str]) -> str:
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    sources = " ".join(f"'sha256-{item}'" for item in hashes) or "'none'"
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src {sources}; base-uri 'none'; form-action 'none'"
