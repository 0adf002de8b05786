"""The port ``ModelClient`` over HTTP: a role is asked, the server behind it answers."""

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import httpx

from adapters.llm.link import Link
from adapters.llm.ping import Ping, ping_server
from adapters.llm.probe import probe
from adapters.llm.retry import DEFAULT_RETRIES, RetryPolicy, with_retries
from adapters.llm.server import ModelServer
from domain.errors import NotFound
from domain.messages import Message
from domain.model import Delta, ModelReply, ModelRequest, RoleName, ServerInfo, Transport, TransportProbe
from domain.roles import RoleConfig

_ServerKey = tuple[str, str, str]


class HttpModelClient:
    """Roles with the same endpoint, key and model share a server, and what was learned of it.

    Times in seconds: ``idle_timeout`` is the longest silence within an answer, ``prefill_timeout`` before its first
    token, ``info_ttl`` the age at which ``/props`` is read again. Belongs to one event loop; close it with
    ``aclose`` or ``async with``. ``transport`` replaces the network in tests."""

    def __init__(
        self,
        roles: Mapping[RoleName, RoleConfig],
        *,
        idle_timeout: float = 120.0,
        prefill_timeout: float = 1800.0,
        connect_timeout: float = 5.0,
        ping_timeout: float = 30.0,
        info_ttl: float = 15.0,
        retries: RetryPolicy = DEFAULT_RETRIES,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._roles = dict(roles)
        self._retries = retries
        self._ping_timeout = ping_timeout
        self._servers: dict[_ServerKey, ModelServer] = {}
        self._probes: dict[tuple[_ServerKey, str, str], TransportProbe] = {}
        for config in self._roles.values():
            if _key(config) not in self._servers:
                link = Link(config.endpoint, config.api_key, connect_timeout, transport)
                self._servers[_key(config)] = ModelServer(link, config.model, idle_timeout, prefill_timeout, info_ttl)

    async def chat(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        """Streams one request to its end.

        Transient failures are retried with backoff until a token was shown; after that a cut stream is a
        ``ModelProtocolError`` and the caller decides. Raises ``ModelError``; ``NotFound`` for an unknown role.
        Cancelling closes the connection, which frees the server's slot."""
        server = self._server(request.role)
        shown = False

        def relay(delta: Delta) -> None:
            nonlocal shown
            shown = shown or delta.kind != "progress"
            on_delta(delta)

        return await with_retries(lambda: server.complete(request, relay), self._retries, lambda: not shown)

    async def info(self, role: RoleName) -> ServerInfo:
        """Properties of the server behind a role, at most ``info_ttl`` old. Not retried: it is for showing.

        Raises ``ModelError``."""
        return (await self._server(role).props()).info

    async def transport(self, role: RoleName) -> Transport:
        """The transport for constrained answers of a role. Waits for a loading model. Raises ``ModelError``."""
        return (await self.probe(role)).transport

    async def probe(self, role: RoleName) -> TransportProbe:
        """How the transport was chosen; probed once per server, model and template. Raises ``ModelError``."""
        server = self._server(role)
        props = await with_retries(server.props, self._retries)
        key = (_key(self._roles[role]), props.info.model, props.info.template_hash)
        if key not in self._probes:
            self._probes[key] = await with_retries(lambda: probe(server), self._retries)
        return self._probes[key]

    async def count_tokens(
        self, role: RoleName, messages: tuple[Message, ...], tools: tuple[dict[str, Any], ...] = ()
    ) -> int | None:
        """Prompt tokens of a conversation by the server's own template and tokenizer; None where it cannot count.

        Raises ``ModelError``."""
        server = self._server(role)
        return await with_retries(lambda: server.count(messages, tools), self._retries)

    async def ping(self, role: RoleName) -> Ping:
        """A real completion of one token. Raises only ``NotFound``."""
        return await ping_server(self._server(role), role, self._ping_timeout)

    async def ping_all(self) -> tuple[Ping, ...]:
        """Every role; servers that several roles share are asked once."""
        first: dict[_ServerKey, RoleName] = {}
        for role, config in self._roles.items():
            first.setdefault(_key(config), role)
        answers = dict(zip(first, await asyncio.gather(*map(self.ping, first.values())), strict=True))
        return tuple(
            Ping(role, found.ok, found.latency_ms, found.model, found.error)
            for role, config in self._roles.items()
            for found in (answers[_key(config)],)
        )

    async def aclose(self) -> None:
        for server in self._servers.values():
            await server.link.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _server(self, role: RoleName) -> ModelServer:
        config = self._roles.get(role)
        if config is None:
            raise NotFound(f"There is no role {role!r}; llama/models.yaml has: {', '.join(sorted(self._roles))}.")
        return self._servers[_key(config)]


def _key(config: RoleConfig) -> _ServerKey:
    return config.endpoint, config.api_key, config.model
