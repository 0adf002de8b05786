"""Talking to a running DuckLM: where it is, its token, requests, and streams that survive a lost connection."""

import asyncio
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx
import msgspec
from msgspec import Struct

from api.cli.running import NOT_RUNNING, read_server_file
from api.cli.sse import ServerEvent, SseReader
from api.settings import Settings
from domain.errors import AccessDenied, BadInput, DuckError, NotFound, SetupError, StorageError
from domain.events import REGISTRY, Envelope, Unreadable

SILENCE_SECONDS = 35.0
"""Three heartbeats of a stream; longer silence means that the connection is dead."""
GIVE_UP_SECONDS = 30.0
PAGE = 500
ID_LENGTH = 36


def one_task(given: str, found: list[str]) -> str:
    """The one task that was meant. Raises ``NotFound`` or ``BadInput``."""
    if not found and given == "last":
        raise NotFound('there is no task yet; `ducklm ask "…"` makes one')
    if not found:
        raise NotFound(f"there is no task {given!r}; `ducklm tasks` lists them")
    if len(found) > 1:
        raise BadInput(f"{len(found)} tasks end with {given!r}; give more of the id")
    return found[0]


class Server(Struct, frozen=True):
    """Where a DuckLM listens."""

    url: str
    token: str

    @property
    def is_local(self) -> bool:
        return urlsplit(self.url).hostname in ("localhost", "127.0.0.1", "::1")


def find_server(settings: Settings, url: str | None = None) -> Server | None:
    """The server at ``url``, or the one that runs over this home; None when there is none. Raises ``BadInput``."""
    if url:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadInput(f"{url!r} is no address of a DuckLM: write http://HOST:PORT")
        server = Server(url.rstrip("/"), settings.token)
        # The token of this machine's own server is nobody else's business.
        return Server(server.url, read_token(settings)) if server.is_local else server
    running = read_server_file(settings.home_path)
    return Server(running.url, read_token(settings)) if running and _answers(running.url) else None


def need_server(settings: Settings, url: str | None = None) -> Server:
    """As :func:`find_server`, but raises ``SetupError`` when there is none."""
    server = find_server(settings, url)
    if server is None:
        raise SetupError(NOT_RUNNING)
    return server


def read_token(settings: Settings) -> str:
    """The token that is set or kept; "" when there is none yet."""
    if settings.token:
        return settings.token
    try:
        return (settings.home_path / "token").read_text().strip()
    except OSError:
        return ""


def _answers(url: str) -> bool:
    """Whether anything listens there: a crash leaves its server file behind."""
    try:
        httpx.get(f"{url}/health", timeout=5, trust_env=False)
    except httpx.ConnectError:
        return False
    except httpx.HTTPError:
        return True
    return True


class Client:
    """Requests to one server. Its problems come back as the errors they were; use it as a context manager."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._http = httpx.AsyncClient(
            base_url=server.url,
            headers={"Authorization": f"Bearer {server.token}"} if server.token else {},
            timeout=httpx.Timeout(120.0, connect=5.0),
            trust_env=not server.is_local,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self._http.aclose()

    async def get(self, path: str, **params: Any) -> Any:
        """Raises ``DuckError``."""
        return await self._ask("GET", path, params={k: v for k, v in params.items() if v is not None})

    async def post(self, path: str, body: Any = None) -> Any:
        """Raises ``DuckError``."""
        return await self._ask("POST", path, json=body)

    async def items(self, path: str, limit: int, **params: Any) -> list[dict[str, Any]]:
        """Up to ``limit`` entries of a list, page by page."""
        if limit < 1:
            raise BadInput(f"the limit must be 1 or more, not {limit}")
        found: list[dict[str, Any]] = []
        cursor = None
        while len(found) < limit:
            page = await self.get(path, limit=min(limit - len(found), PAGE), cursor=cursor, **params)
            found += page["items"]
            cursor = page["next"]
            if cursor is None:
                break
        return found

    async def task_id(self, given: str) -> str:
        """The id that ``last`` or the end of an id stands for, or the one given. Raises ``BadInput``."""
        if len(given) >= ID_LENGTH:
            return given
        recent = [t["task_id"] for t in await self.items("/v1/tasks", 1 if given == "last" else PAGE)]
        return one_task(given, recent if given == "last" else [t for t in recent if t.endswith(given)])

    async def task_events(self, task_id: str) -> list[Envelope]:
        """All events of a task."""
        found: list[Envelope] = []
        after: Any = 0
        while after is not None:
            page = await self.get(f"/v1/tasks/{task_id}/events", after=after, limit=PAGE)
            found += map(envelope_of, page["items"])
            after = page["next"]
        return found

    async def stream(
        self, method: str, path: str, body: Any = None, after: int | None = None
    ) -> AsyncIterator[ServerEvent]:
        """The events of one connection, as long as it lasts. Raises ``DuckError`` and ``httpx.TransportError``."""
        headers = {"Accept": "text/event-stream"}
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        timeout = httpx.Timeout(SILENCE_SECONDS, connect=5.0)
        async with self._http.stream(method, path, json=body, headers=headers, timeout=timeout) as response:
            if not response.is_success:
                await response.aread()
                raise error_of(response)
            reader = SseReader()
            async for chunk in response.aiter_bytes():
                for event in reader.feed(chunk):
                    yield event

    async def follow(self, task_id: str, after: int, on_loss: Callable[[str], None]) -> AsyncIterator[ServerEvent]:
        """A task's events after a position until it ends, over as many connections as it takes."""
        lost_for = pause = 0.0
        while True:
            trouble = "the connection was closed"
            try:
                async for event in self.stream("GET", f"/v1/tasks/{task_id}/events", after=after):
                    lost_for = pause = 0.0
                    after = event.position or after
                    if event.name == "error":
                        trouble = str(event.data.get("detail", "the server reported an error"))
                        break
                    yield event
                    if event.name == "done":
                        return
            except StorageError as error:
                trouble = str(error)
            except httpx.TransportError as error:
                trouble = str(error) or type(error).__name__
            if lost_for >= GIVE_UP_SECONDS:
                raise SetupError(
                    f"the connection to {self.server.url} is lost ({trouble}). The task is kept and goes on when DuckLM "
                    f"runs: `ducklm up`, then `ducklm tasks show {task_id}`"
                )
            on_loss(trouble)
            pause = min(pause * 2 or 0.3, 3.0)
            lost_for += pause
            await asyncio.sleep(pause)

    async def _ask(self, method: str, path: str, **more: Any) -> Any:
        try:
            response = await self._http.request(method, path, **more)
        except httpx.ConnectError as error:
            raise SetupError(f"nothing answers at {self.server.url}: {NOT_RUNNING}") from error
        except httpx.HTTPError as error:
            raise SetupError(f"{self.server.url} did not answer: {str(error) or type(error).__name__}") from error
        if not response.is_success:
            raise error_of(response)
        try:
            return response.json()
        except ValueError as error:
            raise SetupError(f"what answers at {self.server.url} is no DuckLM") from error


def error_of(response: httpx.Response) -> DuckError:
    """The error that a problem tells of."""
    try:
        problem = response.json()
        slug = str(problem["type"]).rsplit(":", 1)[-1]
        detail = str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        return SetupError(f"what answers at {response.url.host} is no DuckLM (status {response.status_code})")
    from api.problems import TABLE  # loads the web framework, which is for servers

    cls = next((cls for cls, kind in TABLE.items() if kind.slug == slug), DuckError)
    if cls is AccessDenied:
        detail += "; set DUCKLM_TOKEN, or DUCKLM_HOME to the folder of the server that runs"
    return cls(detail)


def envelope_of(view: dict[str, Any]) -> Envelope:
    """An event as the API shows it, back as what it was."""
    tag, raw = view["type"], view["data"]
    try:
        data: Any = msgspec.convert(raw, REGISTRY[tag])
    except (KeyError, msgspec.ValidationError) as error:
        known = isinstance(raw, dict) and raw.keys() == {"tag", "raw", "problem"}
        data = Unreadable(**raw) if known else Unreadable(tag, raw, str(error))
    return msgspec.structs.replace(msgspec.convert({**view, "data": {}}, Envelope), data=data)
