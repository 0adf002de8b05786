"""A fake of the web API (docs/web_api.md) for looking at the console and testing it without a backend.

    uv run python -m tests.e2e.console_fake_api --port 8765 [--speed 0.2] [--seed]

It serves webui/ with the real Content-Security-Policy. ``POST /fake`` changes the weather, see :meth:`FakeApi.weather`.
"""

import argparse
import asyncio
import json
import mimetypes
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import uvicorn

from tests.e2e.console_fake_task import ENDED, Json, Run, World, now

WEBUI = Path(__file__).parents[2] / "webui"
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
LIMIT_RESUMES = ("failed", "paused", "completed")


class Answer(Exception):
    def __init__(self, status: int, body: Any, kind: str = "application/json", **headers: str) -> None:
        self.status, self.kind = status, kind
        self.headers = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()


def problem(status: int, title: str, detail: str = "") -> Answer:
    body = {"type": f"urn:ducklm:{title.lower().replace(' ', '-')}", "title": title, "status": status, "detail": detail}
    return Answer(status, body, "application/problem+json")


class FakeApi:
    """An ASGI application."""

    def __init__(self, world: World, token: str = "") -> None:
        self.world, self.token = world, token
        self.database_away = False
        self.mute = False
        self.streams: set[asyncio.Task[Any]] = set()
        self.requests: list[str] = []

    async def __call__(
        self, scope: Json, receive: Callable[[], Awaitable[Json]], send: Callable[[Json], Awaitable[None]]
    ) -> None:
        if scope["type"] != "http":
            return
        headers: Json = {k.decode(): v.decode() for k, v in scope["headers"]}
        headers["query"] = parse_qs(scope["query_string"].decode())
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        self.requests.append(f"{scope['method']} {scope['path']}")
        try:
            result = await self.route(scope, headers, json.loads(body) if body else {})
        except Answer as answer:
            extra = [(b"content-security-policy", CSP.encode())] if answer.kind.startswith("text/html") else []
            await send(
                {
                    "type": "http.response.start",
                    "status": answer.status,
                    "headers": [(b"content-type", answer.kind.encode()), *extra, *answer.headers],
                }
            )
            await send({"type": "http.response.body", "body": answer.body})
            return
        await self.stream(result, receive, send)

    async def stream(self, frames: AsyncIterator[bytes], receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})

        async def pump() -> None:
            async for frame in frames:
                await send({"type": "http.response.body", "body": frame, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

        task = asyncio.create_task(pump())
        self.streams.add(task)
        gone = asyncio.create_task(receive())
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        for one in (task, gone):
            one.cancel()
        self.streams.discard(task)

    async def route(self, scope: Json, headers: Json, body: Json) -> AsyncIterator[bytes]:
        method, path = scope["method"], scope["path"]
        if path == "/fake":
            raise await self.weather(body)
        if not path.startswith("/v1/"):
            raise self.static(path, scope["query_string"].decode())
        if (
            self.token
            and f"ducklm_token={self.token}" not in headers.get("cookie", "")
            and headers.get("authorization") != f"Bearer {self.token}"
        ):
            raise problem(401, "No access", "The token is missing or wrong.")
        if self.database_away:
            raise problem(503, "Database away", "The database does not answer; DuckLM tries again by itself.")
        for verb, pattern, handler in ROUTES:
            found = re.fullmatch(pattern, path)
            if found and verb == method:
                frames: AsyncIterator[bytes] = await handler(self, body, headers, *found.groups())
                return frames
        raise problem(404, "Not found", f"there is no {path}")

    async def weather(self, body: Json) -> Answer:
        """``engine`` changes status.engine, ``database`` "away", ``cut`` true ends every stream, ``mute`` stops heartbeats."""
        self.world.status.update(body.get("engine", {}))
        self.world.speed = body.get("speed", self.world.speed)
        self.database_away = body.get("database", "here") == "away"
        self.mute = body.get("mute", False)
        if body.get("cut"):
            for task in list(self.streams):
                task.cancel()
        return Answer(200, {"requests": self.requests})

    def static(self, path: str, query: str) -> Answer:
        if path == "/" and query.startswith("token="):
            cookie = f"ducklm_{query}; HttpOnly; SameSite=Strict; Path=/"
            return Answer(303, b"", "text/plain", location="/", set_cookie=cookie)
        file = (WEBUI / path.lstrip("/")).resolve()
        if not file.is_file() or WEBUI not in file.parents:
            file = WEBUI / "index.html"
        return Answer(200, file.read_bytes(), f"{mimetypes.guess_type(file.name)[0] or 'text/plain'}; charset=utf-8")

    def run_of(self, task_id: str) -> Run:
        if task_id not in self.world.runs:
            raise problem(404, "Not found", f"there is no task {task_id}")
        return self.world.runs[task_id]

    def conversation_of(self, conversation_id: str) -> Json:
        if conversation_id not in self.world.conversations:
            raise problem(404, "Not found", f"there is no conversation {conversation_id}")
        return self.world.conversations[conversation_id]

    async def follow(self, run: Run, after: int, stop_when_waiting: bool) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[tuple[str, Json]] = asyncio.Queue()
        run.listeners.add(queue)
        try:
            for event in run.events:
                if event["position"] > after:
                    yield frame("event", event)
            for (name, _), data in list(run.snapshot.items()):
                yield frame(name, data)
            if run.status in ENDED:
                yield frame("done", run.outcome())
                return
            while True:
                try:
                    name, data = await asyncio.wait_for(queue.get(), 10)
                except TimeoutError:
                    if not self.mute:
                        yield frame("heartbeat", {"time": now()})
                    continue
                if name == "done" and data["status"] not in ENDED and not stop_when_waiting:
                    continue
                yield frame(name, data)
                if name == "done":
                    return
        finally:
            run.listeners.discard(queue)


def frame(name: str, data: Json) -> bytes:
    head = f"id: {data['position']}\n" if name == "event" else ""
    return f"{head}event: {name}\ndata: {json.dumps(data)}\n\n".encode()


def items(rows: list[Json]) -> Answer:
    return Answer(200, {"items": rows, "next": None})


async def chat(api: FakeApi, body: Json, headers: Json) -> AsyncIterator[bytes]:
    known = body.get("conversation_id")
    conversation = api.conversation_of(known) if known else api.world.conversation("", body.get("workspace", ""))
    return api.follow(api.world.start(conversation, body["message"]), 0, True)


async def resume(api: FakeApi, body: Json, headers: Json, task_id: str) -> AsyncIterator[bytes]:
    run = api.run_of(task_id)
    if run.status not in LIMIT_RESUMES:
        raise problem(409, "Conflict", f"the task is {run.status}")
    after = run.events[-1]["position"]

    async def more(run: Run) -> None:
        run.event("resumed", extra={"iterations": 12, "tokens": 0, "seconds": 0})
        await run.answer("There it is: a heron, in `notes/2026-11-28.md`.")

    run.status = "running"
    run.play(more)
    return api.follow(run, after, True)


async def events(api: FakeApi, body: Json, headers: Json, task_id: str) -> AsyncIterator[bytes]:
    run = api.run_of(task_id)
    if "event-stream" not in headers.get("accept", ""):
        raise items(run.events)
    return api.follow(run, int(headers.get("last-event-id", "0")), False)


async def approve(api: FakeApi, body: Json, headers: Json, approval_id: str, answer: str) -> AsyncIterator[bytes]:
    status = {"allow_once": "allowed_once", "allow_forever": "allowed_forever", "deny": "denied"}[answer]
    for run in api.world.runs.values():
        if (future := run.approvals.get(approval_id)) is not None:
            if future.done():
                raise problem(409, "Conflict", "this approval was answered already")
            future.set_result((status, body.get("reason", "")))
            raise Answer(200, {"approval_id": approval_id, "task_id": run.task_id, "status": status})
    raise problem(404, "Not found", f"there is no approval {approval_id}")


async def cancel(api: FakeApi, body: Json, headers: Json, task_id: str) -> AsyncIterator[bytes]:
    api.run_of(task_id).cancel()
    raise Answer(201, task_row(api.run_of(task_id)))


def task_row(run: Run) -> Json:
    replies = [e["data"] for e in run.events if e["type"] == "task.model_replied.v1"]
    calls = [e["data"] for e in run.events if e["type"] == "task.tool_observed.v1"]
    usage = [r["usage"] for r in replies]
    return {
        "task_id": run.task_id, "conversation_id": run.conversation["conversation_id"], "title": run.message[:80],
        "status": run.status, "workspace": run.conversation["workspace"], "created_at": run.created,
        "updated_at": run.events[-1]["time"] if run.events else run.created, "iterations": 1, "model_calls": len(replies),
        "tool_calls": len(calls), "prompt_tokens": sum(u["prompt_tokens"] for u in usage),
        "completion_tokens": sum(u["completion_tokens"] for u in usage), "cached_tokens": sum(u["cached_tokens"] for u in usage),
        "model_ms": sum(r["latency_ms"] for r in replies), "tool_ms": sum(c["latency_ms"] for c in calls),
        "waiting_for": "", "error": "", "position": run.events[-1]["position"] if run.events else 0,
    }  # fmt: skip


async def tasks(api: FakeApi, body: Json, headers: Json) -> AsyncIterator[bytes]:
    wanted = headers["query"].get("conversation_id", [""])[0]
    raise items([task_row(r) for r in api.world.runs.values() if wanted in ("", r.conversation["conversation_id"])])


async def messages(api: FakeApi, body: Json, headers: Json, conversation_id: str) -> AsyncIterator[bytes]:
    api.conversation_of(conversation_id)
    rows: list[Json] = []
    for run in api.world.runs.values():
        if run.conversation["conversation_id"] != conversation_id:
            continue
        base = {"conversation_id": conversation_id, "task_id": run.task_id, "notices": [], "reasoning": ""}
        rows.append(
            {
                **base,
                "message_id": f"u{run.task_id}",
                "role": "user",
                "text": run.message,
                "time": run.created,
                "position": 0,
            }
        )
        for e in run.events:
            if e["type"] == "task.response_completed.v1":
                rows.append(
                    {
                        **base,
                        "message_id": e["id"],
                        "role": "assistant",
                        "text": e["data"]["text"],
                        "time": e["time"],
                        "position": e["position"],
                    }
                )
    raise items(rows)


async def conversation(api: FakeApi, body: Json, headers: Json, conversation_id: str) -> AsyncIterator[bytes]:
    found = api.conversation_of(conversation_id)
    found.update(body)
    raise Answer(200, found)


async def conversations(api: FakeApi, body: Json, headers: Json) -> AsyncIterator[bytes]:
    raise items(sorted(api.world.conversations.values(), key=lambda c: c["updated_at"], reverse=True))


async def create(api: FakeApi, body: Json, headers: Json) -> AsyncIterator[bytes]:
    raise Answer(201, api.world.conversation(body.get("title", ""), body.get("workspace", "")))


async def status(api: FakeApi, body: Json, headers: Json) -> AsyncIterator[bytes]:
    engine = {
        "kind": "xllamacpp",
        "url": "http://127.0.0.1:8081",
        "model": "gemma-3-270m-it-Q4_K_M.gguf",
        "context_tokens": 8192,
        "slots": 2,
    }
    raise Answer(200, {"version": "0.1.0", "home": "/home/ada/.local/share/ducklm", "database": "ok", "engine": {**engine, **api.world.status},
                       "projections": [], "workers": 1, "tasks_running": 0, "tasks_waiting": 0})  # fmt: skip


ROUTES: tuple[tuple[str, str, Any], ...] = (
    ("GET", "/v1/status", status),
    ("GET", "/v1/conversations", conversations),
    ("POST", "/v1/conversations", create),
    ("GET", "/v1/conversations/([^/]+)", conversation),
    ("PATCH", "/v1/conversations/([^/]+)", conversation),
    ("GET", "/v1/conversations/([^/]+)/messages", messages),
    ("GET", "/v1/tasks", tasks),
    ("GET", "/v1/tasks/([^/]+)/events", events),
    ("POST", "/v1/tasks/([^/]+)/cancel", cancel),
    ("POST", "/v1/tasks/([^/]+)/continue/stream", resume),
    ("POST", "/v1/chat/stream", chat),
    ("POST", "/v1/approvals/([^/]+)/(allow_once|allow_forever|deny)", approve),
)


def seed(world: World) -> None:
    """Older conversations, so that the list has something to group."""
    for title, age in (("Why is the heron missing?", 26), ("Короткий отчёт за неделю", 30), ("Rename the pond module", 80),
                       ("Look for unused imports in the whole workspace and list them", 200), ("Backup script", 400)):  # fmt: skip
        world.conversation(title, age=age)["last_status"] = "completed"


async def serve(port: int, speed: float, with_seed: bool, token: str) -> None:
    world = World(speed=speed)
    if with_seed:
        seed(world)
    await uvicorn.Server(uvicorn.Config(FakeApi(world, token), port=port, log_level="warning")).serve()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--seed", action="store_true")
    parser.add_argument("--token", default="")
    args = parser.parse_args()
    asyncio.run(serve(args.port, args.speed, args.seed, args.token))


if __name__ == "__main__":
    main()
