"""Read an issue's text from a file, a page or the command line. Its author is not trusted: the text is data."""

from __future__ import annotations

import json
import re
import time
from html.parser import HTMLParser
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from redstart.core.errors import ConfigError, PortError
from redstart.core.frozen import clip
from redstart.core.run import GOAL_LIMIT

MAX_READ_BYTES = 1 << 20
"""The maximum number of bytes to read of a file or page."""
SECONDS = 20.0
"""The time limit to fetch a page."""
_PIECE = 1 << 16
_ISSUE = re.compile(r"^/(?P<repo>[\w.-]+/[\w.-]+)/(?:issues|pull)/(?P<number>\d+)/?$")
_FILE = re.compile(r"[^\s:]+\.(?:md|txt|rst|json|html?)")
_BLOCKS = re.compile(r"p|div|br|li|ul|ol|pre|h[1-6]|tr|table|section|article|blockquote")
_SKIPPED_TAGS = re.compile(r"script|style|noscript|svg|template|head|nav|footer")
_REMEDY = "save the text in a file: redstart fix --issue FILE"


class FetchedPage(NamedTuple):
    """A page that was fetched from an address."""

    kind: str
    """Its media type."""
    text: str


def read_issue(source: str) -> str:
    """Return the text of an issue from a file, an address or the text itself, cut to what a run can hold.

    Raises `ConfigError` if there is no text, and `PortError` if an address cannot be read.
    """
    text = _load_text(source.strip()).strip()
    if not text:
        raise ConfigError("the issue is empty", remedy="describe the problem: redstart fix --issue FILE, TEXT or URL")
    return clip(text, GOAL_LIMIT)


def _load_text(source: str) -> str:
    if re.match(r"https?://\S+$", source, re.IGNORECASE):
        return _fetch_text(source)
    if len(source) < GOAL_LIMIT and "\n" not in source and Path(source).is_file():
        with Path(source).open("rb") as file:
            return file.read(MAX_READ_BYTES).decode(errors="replace")
    if _FILE.fullmatch(source):
        raise ConfigError(f"no such file: {source}", remedy="give a file, a URL, or the text of the issue")
    return source


def _fetch_text(address: str) -> str:
    """Fetch the text at an address. If the address is an issue of a forge with GitHub's API, use the API."""
    if (source := find_api_address(address)) and (text := _extract_json_text(_fetch_page(source, or_none=True))):
        return text
    page = _fetch_page(address)
    if page is None:
        raise PortError(f"{address} cannot be read: no such page", remedy=_REMEDY)
    return _extract_json_text(page) or (extract_text(page.text) if "html" in page.kind else page.text)


def find_api_address(address: str) -> str:
    """Return the API address of this issue, which returns JSON; empty if the address is not that of an issue."""
    parts = urlsplit(address)
    match = _ISSUE.match(parts.path)
    if match is None:
        return ""
    is_github = parts.netloc.lower() in ("github.com", "www.github.com")
    host = "https://api.github.com" if is_github else f"{parts.scheme}://{parts.netloc}/api/v3"
    return f"{host}/repos/{match['repo']}/issues/{match['number']}"


def _extract_json_text(page: FetchedPage | None) -> str:
    if page is None or "json" not in page.kind:
        return ""
    try:
        content: object = json.loads(page.text)
    except ValueError:
        return ""
    if not isinstance(content, dict):
        return ""
    fields = cast("dict[str, Any]", content)
    return "\n\n".join(str(fields[name]) for name in ("title", "body") if fields.get(name))


def _fetch_page(address: str, *, or_none: bool = False) -> FetchedPage | None:
    """Fetch a page; None if it does not exist or, with `or_none`, if it cannot be read. Raises `PortError`."""
    request = Request(address, headers={"Accept": "application/json, text/html, text/plain", "User-Agent": "redstart"})  # noqa: S310
    try:
        with cast("HTTPResponse", _create_opener().open(request, timeout=SECONDS)) as reply:
            kind = reply.headers.get_content_type()
            charset = reply.headers.get_content_charset() or "utf-8"
            return FetchedPage(kind, _read(reply).decode(charset, errors="replace"))
    except HTTPError as error:
        with error:
            if or_none or error.code == 404:
                return None
        raise PortError(f"{address} cannot be read: {error.code} {error.reason}", remedy=_REMEDY) from error
    except (OSError, HTTPException, LookupError) as error:
        if or_none:
            return None
        raise PortError(f"{address} cannot be read: {error}", remedy=_REMEDY) from error


def _create_opener() -> OpenerDirector:
    """Make an opener that supports only HTTP and HTTPS, so that no redirect leads to another scheme."""
    opener = OpenerDirector()
    errors = (HTTPDefaultErrorHandler, HTTPRedirectHandler, HTTPErrorProcessor)
    for handler in (ProxyHandler, HTTPHandler, HTTPSHandler, *errors):
        opener.add_handler(handler())
    return opener


def _read(reply: HTTPResponse) -> bytes:
    """Read up to the size limit within the time limit. Raises `TimeoutError`."""
    deadline = time.monotonic() + SECONDS
    data = b""
    while len(data) < MAX_READ_BYTES and (piece := reply.read1(_PIECE)):
        data += piece
        if time.monotonic() > deadline:
            raise TimeoutError(f"not complete after {SECONDS:g} seconds")
    return data[:MAX_READ_BYTES]


def extract_text(page: str) -> str:
    """Extract the visible text of an HTML page."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.text_pieces).splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text_pieces: list[str] = []
        self._skipped_tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if _SKIPPED_TAGS.fullmatch(tag):
            self._skipped_tags.append(tag)
        if _BLOCKS.fullmatch(tag):
            self.text_pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._skipped_tags:
            while self._skipped_tags.pop() != tag:
                pass
        if _BLOCKS.fullmatch(tag):
            self.text_pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._skipped_tags:
            self.text_pieces.append(data)
