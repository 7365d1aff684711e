"""HTTP requests to a model's endpoint. Only this file imports `httpx2`, which is slow to load."""
# ruff: noqa: PLC0415

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import httpx2


class HttpResponse(NamedTuple):
    status: int
    body: bytes


class BrokenConnection(Exception):
    """The connection failed or broke. `sent` says whether the request may have reached the server."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.was_sent = sent


class AnswerTooLong(Exception):
    """The answer is longer than the limit."""


def create_ssl_context() -> ssl.SSLContext:
    """Create an SSL context. This is slow; one context serves every call."""
    import httpx2

    return httpx2.create_ssl_context()


def create_client(ssl_context: ssl.SSLContext, timeout: float) -> httpx2.AsyncClient:
    """Create a client for one call. The caller closes it after the call."""
    import httpx2

    # A model on this machine is reached directly, even if the environment sets a proxy.
    mounts: dict[str, None] = {"all://localhost": None, "all://127.0.0.1": None, "all://[::1]": None}
    return httpx2.AsyncClient(verify=ssl_context, timeout=timeout, mounts=mounts)


async def post(
    http: httpx2.AsyncClient, url: str, document: object, *, headers: Mapping[str, str], longest: int
) -> HttpResponse:
    """Send a document as JSON and return the response, whatever its status. Redirects are not followed.

    Raises `AnswerTooLong` for more than `longest` bytes, `BrokenConnection`, and `TimeoutError` when the client's
    timeout expires.
    """
    return await _exchange(http, "POST", url, document, headers, longest)


async def get(http: httpx2.AsyncClient, url: str, *, headers: Mapping[str, str], longest: int) -> HttpResponse:
    """Request a URL without a body. Otherwise like `post`."""
    return await _exchange(http, "GET", url, None, headers, longest)


async def _exchange(
    http: httpx2.AsyncClient, method: str, url: str, document: object, headers: Mapping[str, str], longest: int
) -> HttpResponse:
    import httpx2

    try:
        # Not compressed, so that the counted bytes are the received bytes.
        request_headers = {**headers, "Accept-Encoding": "identity"}
        async with http.stream(method, url, json=document, headers=request_headers) as response:
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > longest:
                    raise AnswerTooLong
            return HttpResponse(response.status_code, bytes(body))
    except httpx2.TimeoutException:
        raise TimeoutError from None
    except httpx2.ConnectError as error:
        raise BrokenConnection(str(error), sent=False) from None
    except (httpx2.TransportError, httpx2.DecodingError) as error:
        raise BrokenConnection(str(error) or type(error).__name__, sent=True) from None
