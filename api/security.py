"""Who may talk to us: a token on everything but /health and the console's files, and no web page from elsewhere."""

import hmac
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from api.problems import Kind, kind_of, problem
from domain.errors import AccessDenied, DuckError, ForeignOrigin, SetupError, StorageError

COOKIE = "ducklm_token"
_PROTECTED = ("/v1", "/schema")
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


def load_token(home: Path, given: str) -> str:
    """The access token: the given one, the one in ``home/token``, or a new one that is kept there (mode 0600)."""
    if given:
        return given
    path = home / "token"
    try:
        if path.exists():
            token = path.read_text().strip()
            if token:
                return token
        token = secrets.token_urlsafe(24)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(token + "\n")
        return token
    except OSError as error:
        raise SetupError(f"the token file {path} can't be used: {error}") from error


class Gate:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, token: str, hosts: frozenset[str], database_is_there: Callable[[], bool]) -> None:
        self._app = app
        self._database_is_there = database_is_there
        self._token = token.encode()
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
        try:
            self._check_host(headers)
            if (login := self._login(scope)) is not None:
                await _redirect(send, login)
                return
            if _is_protected(scope["path"]):
                self._check_token(headers)
                if scope["path"].startswith("/v1/") and not self._database_is_there():
                    raise StorageError("the database is away; it is tried again all the time, nothing is lost")
            self._check_body(scope["method"], headers)
        except DuckError as error:
            kind = kind_of(error)
            await _problem(send, problem(kind, str(error)))
            return
        except _Unsupported as error:
            kind = Kind(415, "unsupported-media-type", "Unsupported media type", 2)
            await _problem(send, problem(kind, str(error)))
            return
        await self._app(scope, receive, _with_headers(send))

    def _check_host(self, headers: dict[str, str]) -> None:
        host = headers.get("host", "")
        if not self._known(host):
            raise ForeignOrigin(
                f"the host {host!r} is not one this server answers to; add it to DUCKLM_ALLOWED_HOSTS if it is yours"
            )
        origin = headers.get("origin")
        if origin is not None and (origin == "null" or _netloc(origin) != host):
            raise ForeignOrigin(f"a page of {origin} may not use this server")
        if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
            raise ForeignOrigin("a page from elsewhere may not use this server")

    def _known(self, host: str) -> bool:
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        return name.lower() in self._hosts

    def _login(self, scope: HTTPScope) -> str | None:
        """A set-cookie value for ``/?token=…`` with the right token."""
        if scope["path"] != "/" or scope["method"] != "GET":
            return None
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [""])[0]
        if given and self._is_token(given):
            return f"{COOKIE}={given}; HttpOnly; SameSite=Strict; Path=/; Max-Age=31536000"
        return None

    def _check_token(self, headers: dict[str, str]) -> None:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is_token(given.strip()):
            return
        # Not SimpleCookie: one odd cookie of another program on the same host makes it drop all of them.
        for pair in headers.get("cookie", "").split(";"):
            name, _, value = pair.strip().partition("=")
            if name == COOKIE and self._is_token(value.strip()):
                return
        raise AccessDenied(
            "no or wrong token; `ducklm up` prints the address with the right one, `ducklm token` the token"
        )

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token)

    def _check_body(self, method: str, headers: dict[str, str]) -> None:
        if method not in _WRITES or (headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers):
            return
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            # A form or text/plain is what a foreign page can send without asking.
            raise _Unsupported(f"send application/json, not {kind or 'a body without a type'}")


class _Unsupported(Exception):
    """Becomes a 415 at once."""


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _is_protected(path: str) -> bool:
    return any(path == p or path.startswith(p + "/") for p in _PROTECTED)


_CSP = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", _CSP),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]  # fmt: skip


def _with_headers(send: Send) -> Send:
    async def wrapped(message: object) -> None:
        if isinstance(message, dict) and message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *(h for h in _HEADERS if h[0] not in present)]
        await send(message)  # type: ignore[arg-type]

    return wrapped


async def _problem(send: Send, body: dict[str, object]) -> None:
    headers = [(b"content-type", b"application/problem+json"), *_HEADERS]
    if body["status"] == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": body["status"], "headers": headers})  # type: ignore[arg-type,misc]
    await send({"type": "http.response.body", "body": msgspec.json.encode(body), "more_body": False})


async def _redirect(send: Send, cookie: str) -> None:
    headers = [(b"location", b"/"), (b"set-cookie", cookie.encode()), (b"cache-control", b"no-store"), *_HEADERS]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b"", "more_body": False})
