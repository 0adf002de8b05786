"""The world of the fake API: conversations and tasks that play canned scenes in the words of docs/web_api.md.

A scene is a coroutine that appends events and sends live frames through a :class:`Run`. Its first words in the
person's message choose it, see :data:`SCENES`.
"""

import asyncio
import itertools
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

ENDED = {"completed", "failed", "cancelled"}
Json = dict[str, Any]


def now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


@dataclass
class World:
    """Everything there is. ``speed`` 0 plays scenes without pauses."""

    speed: float = 1.0
    conversations: dict[str, Json] = field(default_factory=dict)
    runs: dict[str, "Run"] = field(default_factory=dict)
    positions: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    status: Json = field(default_factory=lambda: {"smoke_test_model": True, "state": "ready", "detail": ""})

    def conversation(self, title: str = "", workspace: str = "", age: float = 0.0) -> Json:
        at = (datetime.now(UTC) - timedelta(hours=age)).isoformat().replace("+00:00", "Z")
        made: Json = {
            "conversation_id": str(uuid.uuid4()), "title": title, "workspace": workspace or "/home/ada/projects/duckpond",
            "created_at": at, "updated_at": at, "archived": False, "message_count": 0, "last_task_id": "", "last_status": "",
        }  # fmt: skip
        self.conversations[made["conversation_id"]] = made
        return made

    def start(self, conversation: Json, message: str) -> "Run":
        run = Run(self, conversation, message)
        self.runs[run.task_id] = run
        conversation["title"] = conversation["title"] or message.split("\n")[0][:80]
        conversation.update(last_task_id=run.task_id, message_count=conversation["message_count"] + 1)
        run.play(scene_of(message))
        return run


class Run:
    """One task: its log, its listeners, and what a scene does to it."""

    def __init__(self, world: World, conversation: Json, message: str) -> None:
        self.world, self.conversation, self.message = world, conversation, message
        self.task_id = str(uuid.uuid4())
        self.created = now()
        self.status = "created"
        self.events: list[Json] = []
        self.listeners: set[asyncio.Queue[tuple[str, Json]]] = set()
        self.snapshot: dict[tuple[str, str], Json] = {}
        self.approvals: dict[str, asyncio.Future[tuple[str, str]]] = {}
        self.answered: dict[str, str] = {}
        self.response: str | None = None
        self.extra = 0
        self._task: asyncio.Task[None] | None = None

    def play(self, scene: "Scene") -> None:
        async def body() -> None:
            if not self.events:
                self.event("created", conversation_id=self.conversation["conversation_id"], message=self.message,
                           workspace=self.conversation["workspace"], reflect=True)  # fmt: skip
            try:
                await scene(self)
            except asyncio.CancelledError:
                self.event("cancelled", reason="")
            self.end()

        self._task = asyncio.create_task(body())

    def cancel(self) -> None:
        if self._task:
            self._task.cancel()

    def end(self) -> None:
        self.snapshot.clear()
        for listener in self.listeners:
            listener.put_nowait(("done", self.outcome()))

    def outcome(self) -> Json:
        return {"task_id": self.task_id, "conversation_id": self.conversation["conversation_id"], "status": self.status,
                "response": self.response, "pending_approvals": [], "position": self.events[-1]["position"]}  # fmt: skip

    STATUS = {
        "context_built": "running", "approval_requested": "waiting_for_approval", "approval_granted": "running",
        "approval_denied": "running", "completed": "completed", "failed": "failed", "cancelled": "cancelled",
        "paused": "paused", "resumed": "running",
    }  # fmt: skip

    def event(self, kind: str, /, **data: Any) -> None:
        event = {
            "position": next(self.world.positions), "stream": f"task-{self.task_id}", "version": len(self.events) + 1,
            "type": f"task.{kind}.v1", "time": now(), "id": str(uuid.uuid4()), "actor": "runtime",
            "correlation_id": self.task_id, "causation_id": "", "data": data,
        }  # fmt: skip
        self.events.append(event)
        self.status = self.STATUS.get(kind, self.status)
        self.conversation.update(updated_at=event["time"], last_status=self.status)
        if kind == "response_completed":
            self.response = data["text"]
            self.conversation["message_count"] += 1
        if kind in ("model_replied", "tool_observed", "tool_failed"):
            self.snapshot = {k: v for k, v in self.snapshot.items() if v["call_id"] != data["call_id"]}
        self.send("event", event)

    def send(self, name: str, data: Json) -> None:
        for listener in self.listeners:
            listener.put_nowait((name, data))

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds * self.world.speed)

    async def write(
        self, name: str, call_id: str, text: str, role: str = "", piece: int = 6, delay: float = 0.02
    ) -> None:
        """Sends a text in pieces, counted in code points as the server counts."""
        for offset in range(0, len(text), piece):
            key = (name, call_id)
            frame = {"call_id": call_id, "offset": offset, "text": text[offset : offset + piece]}
            if role:
                frame["role"] = role
            so_far = self.snapshot.get(key, {"text": ""})["text"]
            self.snapshot[key] = {**frame, "offset": 0, "text": so_far + frame["text"]}
            self.send(name, frame)
            await self.pause(delay)

    async def model(self, role: str, content: str, reasoning: str = "", prompt: int = 1850, cached: int = 1400) -> str:
        call = str(uuid.uuid4())
        self.event("context_built", call_id=call, role=role, transport="json_schema", prefix_sha256="", context_sha256="",
                   suffix=[], manifest=[], tokens=prompt, tokens_exact=True)  # fmt: skip
        self.event("model_requested", call_id=call, role=role, attempt=1, worker="w1", model="fake", temperature=0.7,
                   max_output_tokens=2048)  # fmt: skip
        await self.pause(0.3)
        for done in range(cached, prompt + 1, 90):
            self.send("progress", {"call_id": call, "role": role, "total": prompt, "cached": cached, "processed": done})
            await self.pause(0.08)
        await self.write("reasoning_delta", call, reasoning, role)
        await self.write("content_delta", call, content, role, delay=0.015)
        written = (len(content) + len(reasoning)) // 4
        self.event("model_replied", call_id=call, role=role, content=content, reasoning=reasoning, finish_reason="stop",
                   model="fake", usage={"prompt_tokens": prompt, "completion_tokens": written, "cached_tokens": cached},
                   timings={}, latency_ms=900.0 + written * 30, first_token_ms=700.0)  # fmt: skip
        return call

    async def direct(self, intent: str, *actions: tuple[str, Json], reasoning: str = "") -> list[str]:
        call = await self.model("action", '{"intent": "…", "actions": [], "done": false}', reasoning)
        ids = [str(uuid.uuid4()) for _ in actions]
        planned = [{"call_id": i, "tool": t, "arguments": a} for i, (t, a) in zip(ids, actions, strict=True)]
        self.event("action_directed", call_id=call, intent=intent, actions=planned, done=not actions)
        return ids

    async def tool(self, call: str, tool: str, arguments: Json, output: str, exit_code: int | None = None, ask: str = "",
                   risk: str = "medium", ok: bool = True, delay: float = 0.03) -> bool:  # fmt: skip
        """One call to its end; False when it was denied."""
        self.event("tool_requested", call_id=call, tool=tool, arguments=arguments, safety="unsafe", action_sha256="ab" * 32,
                   fingerprint="f", risk=risk, reason=ask)  # fmt: skip
        if ask and not await self.approved(call, tool, arguments, risk, ask):
            return False
        self.event("tool_started", call_id=call, attempt=1, worker="w1")
        if tool == "shell_exec":
            await self.write("tool_output", call, output, piece=40, delay=delay)
        await self.pause(0.2)
        self.event("tool_observed", call_id=call, tool=tool, ok=ok, output=output, exit_code=exit_code, size=len(output),
                   truncated=False, blob_sha256="", data={}, latency_ms=240.0 + len(output))  # fmt: skip
        return True

    async def approved(self, call: str, tool: str, arguments: Json, risk: str, reason: str) -> bool:
        approval = str(uuid.uuid4())
        self.approvals[approval] = asyncio.get_running_loop().create_future()
        self.event("approval_requested", approval_id=approval, call_id=call, tool=tool, arguments=arguments,
                   action_sha256="ab" * 32, risk=risk, reason=reason)  # fmt: skip
        self.send("done", self.outcome())
        answer, why = await self.approvals[approval]
        if answer == "denied":
            self.event("approval_denied", approval_id=approval, call_id=call, reason=why)
            self.event("tool_failed", call_id=call, tool=tool, kind="denied", message="The person denied it.")
            return False
        self.event("approval_granted", approval_id=approval, call_id=call, action_sha256="ab" * 32,
                   scope="forever" if answer == "allowed_forever" else "once", grant_id="")  # fmt: skip
        return True

    async def answer(self, text: str, reasoning: str = "", notices: tuple[str, ...] = ()) -> None:
        call = await self.model("thinker", text, reasoning, prompt=2410, cached=1850)
        self.event("response_completed", text=text, call_id=call, reasoning=reasoning, notices=list(notices))
        self.event("completed")


Scene = Callable[[Run], Awaitable[None]]


def scene_of(message: str) -> Scene:
    from tests.e2e.console_fake_scenes import SCENES, talk

    lowered = message.lower()
    return next((scene for words, scene in SCENES if words in lowered), talk)
