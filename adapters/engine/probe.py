"""Asks a model server over HTTP how it is."""

from typing import Any, Literal

import httpx
import msgspec

from adapters.engine.settings import Engine

Health = Literal["ready", "loading", "silent"]


class KeyRefused(Exception):
    """The server is there and does not take our API key."""


def client(url: str, api_key: str) -> httpx.AsyncClient:
    """A client for short questions. Proxies of the environment are not for model servers."""
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    return httpx.AsyncClient(base_url=url, headers=headers, timeout=5.0, trust_env=False)


async def health(http: httpx.AsyncClient) -> Health:
    """``/health`` in one word; never raises. Where there is no such endpoint, ``/v1/models`` stands in."""
    try:
        answer = await http.get("/health")
        if answer.status_code == 404:
            answer = await http.get("/v1/models")
    except httpx.HTTPError:
        return "silent"
    if answer.status_code == 503:
        return "loading"
    return "ready" if answer.is_success or answer.status_code in (401, 403) else "silent"


async def looked_up(http: httpx.AsyncClient, engine: Engine) -> Engine:
    """The engine with what ``/props`` tells: model, tokens per slot, slots, build; unchanged when it tells nothing.
    Raises ``KeyRefused``; ``/health`` asks for no key, so only this shows a wrong one."""
    try:
        answer = await http.get("/props")
        if answer.status_code in (401, 403):
            raise KeyRefused
        props: Any = answer.raise_for_status().json()
        return msgspec.structs.replace(
            engine,
            model=engine.model or _name(props),
            context_tokens=int(props["default_generation_settings"]["n_ctx"]),
            slots=int(props["total_slots"]),
            build=str(props.get("build_info", "")),
        )
    except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError):
        return engine


def _name(props: dict[str, Any]) -> str:
    """The model's alias or file name; paths of the server are none of our business."""
    return str(props.get("model_alias") or props.get("model_path") or "").rsplit("/", 1)[-1]
