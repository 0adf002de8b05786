"""The whole program in the test's own process, with a scripted model server, over real HTTP."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from api.bootstrap import make_runtime
from api.runtime import Runtime
from api.server import address, listen, running
from api.settings import Settings, load_settings
from tests.doubles.scripted_llama import ScriptedLlama

TOKEN = "test-token"


class Program:
    """A running program: ``http`` is an authorised client, ``llama`` the scripted model server."""

    def __init__(self, runtime: Runtime, llama: ScriptedLlama, url: str, workspace: Path) -> None:
        self.runtime = runtime
        self.llama = llama
        self.url = url
        self.workspace = workspace
        self.http = httpx.AsyncClient(base_url=url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=30)

    async def chat(self, message: str, **body: Any) -> dict[str, Any]:
        response = await self.http.post("/v1/chat", json={"message": message, **body})
        assert response.status_code == 200, response.text
        return dict(response.json())

    async def get(self, path: str, **params: Any) -> Any:
        response = await self.http.get(path, params=params)
        assert response.status_code == 200, response.text
        return response.json()

    async def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        response = await self.http.post(path, json=body) if body is not None else await self.http.post(path)
        assert response.status_code == status, response.text
        return response.json()

    async def events(self, task_id: str) -> list[dict[str, Any]]:
        return list((await self.get(f"/v1/tasks/{task_id}/events"))["items"])

    async def types(self, task_id: str) -> list[str]:
        """Short names of a task's events, like ``tool_observed``."""
        return [e["type"].split(".")[1] for e in await self.events(task_id)]

    async def until(
        self, task_id: str, reached: Callable[[dict[str, Any]], bool], seconds: float = 20
    ) -> dict[str, Any]:
        """Waits until a task's view satisfies a condition."""
        end = time.monotonic() + seconds
        while True:
            task = await self.get(f"/v1/tasks/{task_id}")
            if reached(task):
                return dict(task)
            assert time.monotonic() < end, f"still {task['status']}: {task.get('waiting_for')}"
            await asyncio.sleep(0.02)

    async def stream(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> AsyncIterator[tuple[str, str, Any]]:
        """Server-sent events as (event, id, data)."""
        async with self.http.stream(method, path, json=body, headers={"accept": "text/event-stream", **headers}) as r:
            assert r.status_code == 200, await r.aread()
            event, id_, data = "", "", []
            async for line in r.aiter_lines():
                if line.startswith("event:"):
                    event = line[6:].strip()
                elif line.startswith("id:"):
                    id_ = line[3:].strip()
                elif line.startswith("data:"):
                    data.append(line[5:].strip())
                elif not line and data:
                    yield event, id_, json.loads("\n".join(data))
                    event, id_, data = "", "", []


def settings_for(database_url: str, home: Path, llama_url: str, **more: Any) -> Settings:
    return load_settings(
        {},
        home=str(home),
        database_url=database_url,
        llama_url=llama_url,
        token=TOKEN,
        port=0,
        log_level="error",
        **more,
    )


@asynccontextmanager
async def start_program(database_url: str, home: Path, llama_url: str = "", **settings: Any) -> AsyncIterator[Program]:
    """Starts everything; stops it in order at the end. ``llama_url`` names a model server that runs already."""
    llama = ScriptedLlama()
    if not llama_url:
        await llama.start()
    try:
        configured = settings_for(database_url, home, llama_url or llama.url, **settings)
        sock = listen(configured)
        runtime = await make_runtime(configured)
        async with running(runtime, sock):
            program = Program(runtime, llama, address(sock), configured.workspace_path)
            try:
                yield program
            finally:
                await program.http.aclose()
    finally:
        if not llama_url:
            await llama.stop()
