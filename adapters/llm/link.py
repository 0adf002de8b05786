"""HTTP to one model server: the connection, its address and key, and errors as ``ModelError``."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec

from adapters.llm.failures import error_body, network_failure, refusal
from adapters.llm.patience import Patience
from adapters.llm.text import cleaned
from domain.errors import ModelError, ModelProtocolError

_LOCAL = {"localhost", "127.0.0.1", "::1"}
_JSON_TIMEOUT = 30.0
"""Seconds for the small requests (/props, /tokenize …), which a server answers even while it generates."""


class HttpRefusal(Exception):
    """An HTTP answer other than 200, before anybody decided what it means."""

    def __init__(self, status: int, error: dict[str, Any]) -> None:
        super().__init__(status)
        self.status = status
        self.error = error


class Link:
    """``url`` is the base without ``/v1``. ``shown`` is what may be printed: never with a user name or password."""

    def __init__(
        self, url: str, api_key: str, connect_timeout: float, transport: httpx.AsyncBaseTransport | None
    ) -> None:
        self.url = base_url(url)
        self.shown = _without_credentials(self.url)
        self.api_key = api_key
        headers = {"Accept-Encoding": "identity"}  # compression would hold back single tokens
        if api_key:
            headers["Authorization"] = f"Bearer {api_key}"
        self._http = httpx.AsyncClient(
            headers=headers,
            timeout=httpx.Timeout(_JSON_TIMEOUT, connect=connect_timeout),
            transport=transport,
            # llama-server closes a connection after a stream and idle ones after 5 s, without a word: never use one twice
            limits=httpx.Limits(max_keepalive_connections=0),
            # a proxy from the environment must not swallow requests to this machine
            trust_env=not _is_local(self.url),
        )
        self._connect_timeout = connect_timeout

    async def get(self, path: str, **params: str) -> dict[str, Any]:
        """The JSON object at ``path``. Raises ``HttpRefusal`` or ``ModelError``."""
        return await self._json("GET", path, params=params)

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The JSON object answered to ``body``. Raises ``HttpRefusal`` or ``ModelError``."""
        return await self._json("POST", path, content=encoded(body), headers={"Content-Type": "application/json"})

    async def alive(self) -> bool:
        """Whether the server answers anything at all within a few seconds."""
        try:
            await self._http.get(self.url + "/health", timeout=5.0)
        except httpx.HTTPError:
            return False
        return True

    @asynccontextmanager
    async def stream(self, path: str, body: dict[str, Any], patience: Patience) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of a streamed answer. Raises ``HttpRefusal`` or ``ModelError``; leaving closes the connection,
        which makes llama-server drop the work at once."""
        try:
            request = self._http.build_request(
                "POST",
                self.url + path,
                content=encoded(body),
                headers={"Content-Type": "application/json"},
                timeout=httpx.Timeout(None, connect=self._connect_timeout),
            )
            response = await patience.wait(self._http.send(request, stream=True))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise network_failure(error, self.shown) from error
        try:
            if response.status_code != 200:
                raise HttpRefusal(response.status_code, error_body(await patience.wait(response.aread())))
            async with aclosing(self._chunks(response, patience)) as chunks:
                yield chunks
        except httpx.HTTPError as error:
            raise network_failure(error, self.shown) from error
        finally:
            await response.aclose()

    def failure(self, refused: HttpRefusal, schema: str = "") -> ModelError:
        return refusal(refused.status, refused.error, self.shown, schema, self.api_key)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _chunks(self, response: httpx.Response, patience: Patience) -> AsyncGenerator[bytes, None]:
        if response.headers.get("content-type", "").startswith("application/json"):
            # It does not stream: the whole answer becomes a stream of one event.
            whole = await patience.wait(response.aread())
            yield b"".join(b"data: " + line + b"\n" for line in whole.splitlines()) + b"\ndata: [DONE]\n\n"
            return
        chunks = response.aiter_bytes()
        while (chunk := await patience.wait(_next(chunks))) is not None:
            yield chunk

    async def _json(self, method: str, path: str, **kwargs: Any) -> dict[str, Any]:
        try:
            response = await self._http.request(method, self.url + path, **kwargs)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise network_failure(error, self.shown) from error
        if response.status_code != 200:
            raise HttpRefusal(response.status_code, error_body(response.content))
        try:
            body = response.json()
        except (ValueError, RecursionError) as error:
            raise ModelProtocolError(f"{self.shown}{path} answered something that is not JSON ({error}).") from error
        return body if isinstance(body, dict) else {"value": body}


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)


def base_url(url: str) -> str:
    """The address without a trailing ``/`` or ``/v1``, which people paste with it."""
    return url.strip().rstrip("/").removesuffix("/v1").rstrip("/")


def _is_local(url: str) -> bool:
    try:
        return urlsplit(url).hostname in _LOCAL
    except ValueError:  # no address at all; the first request says so
        return False


def _without_credentials(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


def encoded(body: dict[str, Any]) -> bytes:
    """JSON bytes. Halves of surrogate pairs, which llama-server refuses too, are replaced."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        return msgspec.json.encode(cleaned(body))
