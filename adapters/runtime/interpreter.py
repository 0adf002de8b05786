"""The interpreter: asks ``react`` what is outstanding, carries it out, records the outcome, until nothing is.

Every effect is in the log before it starts. A crash at any point is mended by starting again from the log: what may be
repeated is repeated, what may not becomes a stated uncertainty."""

import asyncio
import time
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from typing import Any, Literal, TypeVar

import structlog
from msgspec import Struct

from adapters.runtime.live import LiveFeed
from adapters.runtime.probes import record_probe
from adapters.runtime.prompting import History, make_prefix
from adapters.runtime.session import TaskSession, in_thread, stubborn
from adapters.runtime.spool import Spool
from adapters.store.blobs import Blobs
from adapters.store.event_store import EventStore
from adapters.store.tail import LogTail
from adapters.store.tasks import Aggregates
from domain.directive import directive_schema
from domain.errors import (
    Conflict,
    ModelError,
    ModelLoading,
    ModelProtocolError,
    ModelTimeout,
    ModelUnavailable,
    ToolError,
    ToolRefused,
    ToolTimeout,
)
from domain.events import Envelope
from domain.grants import Grants
from domain.ids import task_stream
from domain.model import Delta, ModelClient, ModelRequest, Observations, RoleName, Transport, TransportProbe
from domain.roles import RoleConfig
from domain.task import commands as c
from domain.task.context import ContextInputs, Earlier, build_context
from domain.task.events import TaskCancelled
from domain.task.react import BuildContext, CallModel, Effect, EndLoop, JudgeAction, RunTool, SettleUncertain, react
from domain.task.repetition import action_hash
from domain.task.state import Task, ToolCallState
from domain.tools import ToolGateway, ToolInvocation, ToolResult

_log = structlog.get_logger()
_DIRECTIVE_SCHEMA = directive_schema()
_WAITABLE = (ModelUnavailable, ModelLoading, ModelTimeout)
LOOP_SHARE = 0.8
"""Share of the context that the action loop may fill; the rest is for the thinker."""
R = TypeVar("R")


class Overtaken(Exception):
    """Another worker started what this one was about to."""


class Budgets(Struct, frozen=True):
    """Tokens: whole input, and earlier tasks in it. The server's real context caps both."""

    max_input: int = 49_152
    recent_events: int = 12_000


class Ports(Struct, frozen=True):
    """What the interpreter works with."""

    store: EventStore
    aggregates: Aggregates
    blobs: Blobs
    tail: LogTail
    live: LiveFeed
    models: ModelClient
    tools: ToolGateway
    roles: Mapping[RoleName, RoleConfig]
    constitution: str
    worker: str
    budgets: Budgets = Budgets()


class _Shape(Struct, frozen=True):
    """What the chat template needs so that a task's prompt only grows."""

    transport: Transport
    observations: Observations
    send_reasoning: bool


class Interpreter:
    """Advances tasks. One instance serves all tasks of a process; each ``advance`` owns one task at a time."""

    def __init__(self, ports: Ports) -> None:
        self._p = ports
        self._history = History(ports.aggregates, ports.blobs)
        self._grants = Grants()
        self._probes: dict[tuple[str, str], TransportProbe] = {}

    async def advance(self, task_id: str) -> bool:
        """Carries a task on until it waits or has ended. True: its model server is still away, try again later."""
        session = TaskSession(self._p.store, self._p.aggregates, task_id)
        await session.load()
        if _waits_for_model(session.state) and not await self._model_is_back(session):
            return True
        run = _Cancellable()
        with (
            structlog.contextvars.bound_contextvars(task_id=task_id),
            self._p.tail.subscribe(task_stream(task_id), run.watch),
        ):
            # The tail delivers only what comes from now on; what came before is in the state.
            await session.load()
            try:
                while (effect := react(session.state)) is not None:
                    await self._carry_out(session, effect, run)
                await session.flush()
            except Overtaken as overtaken:
                _log.info("task_overtaken", why=str(overtaken))
        return False

    async def give_up(self, task_id: str, error: Exception) -> None:
        """Fails a task that this program cannot carry on, so that it does not look as if it were running."""
        session = TaskSession(self._p.store, self._p.aggregates, task_id)
        await session.load()
        message = f"an unexpected {type(error).__name__}: {error}. It is in the log; `continue` tries again."
        with suppress(Conflict):
            await session.commit(c.Fail(type(error).__name__, message))

    async def _carry_out(self, session: TaskSession, effect: Effect, run: "_Cancellable") -> None:
        match effect:
            case BuildContext(role=role):
                await self._build_context(session, role)
            case CallModel(call_id=call_id, role=role):
                await self._call_model(session, call_id, role, run)
            case JudgeAction():
                await self._judge(session)
            case RunTool(call=call):
                await self._run_tool(session, call, run)
            case SettleUncertain(call_id=call_id):
                await session.commit(c.RecordUncertain(call_id))
            case EndLoop(stop=stop):
                session.apply(stop)

    async def _start(self, session: TaskSession, start: c.StartModel | c.StartTool) -> bool:
        """Puts the start of an effect into the log. False: the task does not want it any more."""
        if await session.commit(start):
            return True
        if session.state.status == "running" and getattr(session.state.call, "attempt", 0) >= start.attempt:
            raise Overtaken(f"another worker started attempt {start.attempt}")
        return False

    async def _model_is_back(self, session: TaskSession) -> bool:
        try:
            await self._p.models.info(session.state.next_role)
        except ModelError as error:
            _log.info("model_still_away", task_id=session.task_id, error=str(error))
            return False
        return await session.commit(c.Resume())

    async def _build_context(self, session: TaskSession, role: RoleName) -> None:
        task = session.state
        try:
            limit = await self._input_limit(role)
            shape = await self._shape(task)
        except ModelError as error:
            await session.commit(c.AwaitModel(str(error)))
            return
        prefix = make_prefix(self._p.constitution, shape.transport)
        if task.history is not None and prefix.sha256 != task.prefix_sha256:
            prefix = await in_thread(self._history.prefix, task.prefix_sha256)
        chosen: tuple[Earlier, ...] = ()
        left_out: tuple[Earlier, ...] = ()
        if task.history is None:
            await in_thread(self._p.blobs.put, prefix.encoded())
            budget = min(self._p.budgets.recent_events, max(limit - prefix.tokens, 0) // 3)
            chosen, left_out = await in_thread(self._history.choose, task, shape.transport, budget)
        instruction = self._p.roles[role].instruction
        room = limit if role == "thinker" else int(limit * LOOP_SHARE)
        inputs = ContextInputs(
            shape.transport, prefix, instruction, chosen, left_out, shape.observations, shape.send_reasoning, room
        )
        built = build_context(task, role, inputs)
        if built.tokens <= room:
            session.apply(c.RecordContext(built))
        elif task.history is None:
            message = (
                f"The message and what must stand before it have about {built.tokens} tokens; the model's context leaves "
                f"room for {room}. Nothing was sent. Shorten the message, or start the model server with a larger context."
            )
            await session.commit(c.Fail("ContextOverflow", message))
        elif role == "action" and not task.stopped:
            session.apply(c.StopLoop("context", f"the context of {limit} tokens is nearly full"))
        else:
            # The estimate is on the high side: let the server decide, its refusal is reported as it is.
            session.apply(c.RecordContext(built))

    async def _shape(self, task: Task) -> "_Shape":
        """How prompts look. A task keeps what it began with: anything else would rewrite its whole prompt."""
        if task.history is not None:
            return _Shape(task.transport, task.observe_as, task.send_reasoning)
        probe = await self._p.models.probe("action")
        key = (probe.url, probe.template_hash)
        if self._probes.get(key) != probe:
            await in_thread(record_probe, self._p.store, probe)
            self._probes[key] = probe
        return _Shape(probe.transport, probe.observations, probe.send_reasoning)

    async def _input_limit(self, role: RoleName) -> int:
        info = await self._p.models.info(role)
        if not info.context_tokens:
            return self._p.budgets.max_input
        return min(self._p.budgets.max_input, info.context_tokens - self._output_limit(role, info.context_tokens))

    def _output_limit(self, role: RoleName, context_tokens: int) -> int:
        """The role's own limit, but never more than a quarter of the context."""
        own = self._p.roles[role].max_output_tokens
        return min(own, context_tokens // 4) if context_tokens else own

    async def _call_model(self, session: TaskSession, call_id: str, role: RoleName, run: "_Cancellable") -> None:
        config = self._p.roles[role]
        try:
            info = await self._p.models.info(role)
        except ModelError as error:
            await session.commit(c.AwaitModel(str(error)))
            return
        max_output = self._output_limit(role, info.context_tokens)
        attempt = getattr(session.state.call, "attempt", 0) + 1
        model = config.model or info.model
        if not await self._start(session, c.StartModel(attempt, self._p.worker, model, config.temperature, max_output)):
            return
        request = await self._request(session, call_id, role, config.temperature, max_output)
        live = self._p.live
        live.begin(session.task_id, call_id, role)
        try:
            reply = await run.effect(self._p.models.chat(request, lambda d: self._on_delta(call_id, d)))
        except ModelError as error:
            await session.commit(c.RecordModelFailure(call_id, type(error).__name__, str(error), _recovery(error)))
            return
        finally:
            live.end(call_id)
        if reply is not None:
            # A reply may be asked for again after a crash, so it waits for the append of what follows from it.
            session.apply(c.RecordReply(call_id, reply))
        else:
            await session.load()

    async def _request(
        self, session: TaskSession, call_id: str, role: RoleName, temperature: float, max_output: int
    ) -> ModelRequest:
        task = session.state
        if session.base is None:
            session.base = await in_thread(self._history.base, task)
        prefix, before = session.base
        directing = role == "action"
        return ModelRequest(
            role,
            task.task_id,
            call_id,
            (*before, *task.messages),
            transport=task.transport if directing else "text",
            # Other roles get the same tool list, unusable, since it stands in the prefix of the prompt.
            tools=prefix.tools,
            schema_name="action_directive" if directing and task.transport == "json_schema" else "",
            schema=_DIRECTIVE_SCHEMA if directing and task.transport == "json_schema" else None,
            temperature=temperature,
            max_output_tokens=max_output,
        )

    def _on_delta(self, call_id: str, delta: Delta) -> None:
        match delta.kind:
            case "content":
                self._p.live.text(call_id, "content_delta", delta.text)
            case "reasoning":
                self._p.live.text(call_id, "reasoning_delta", delta.text)
            case "progress":
                self._p.live.progress(call_id, delta.total, delta.cached, delta.processed)
            case "tool_call":
                pass

    async def _judge(self, session: TaskSession) -> None:
        task = session.state
        action = task.actions[0]
        call = ToolInvocation(task.task_id, action.call_id, action.tool, action.arguments, task.workspace)
        verdict = await in_thread(self._p.tools.assess, call)
        grant_id = ""
        if verdict.decision == "ask":
            self._grants = await in_thread(self._p.aggregates.grants, self._grants)
            grant_id = self._grants.active.get(action_hash(action.tool, action.arguments, task.workspace), "")
        session.apply(c.Judge(verdict, grant_id))

    async def _run_tool(self, session: TaskSession, call: ToolCallState, run: "_Cancellable") -> None:
        attempt, call_id, task = call.attempt + 1, call.call_id, session.state
        if not await self._start(session, c.StartTool(attempt, self._p.worker)):
            return
        invocation = ToolInvocation(task.task_id, call_id, call.tool, call.arguments, task.workspace, attempt)
        live, spool, begun = self._p.live, Spool(), time.monotonic()

        def on_output(text: str) -> None:
            spool.write(text)
            live.text(call_id, "tool_output", text)

        live.begin(session.task_id, call_id, "")
        try:
            result = await run.effect(self._p.tools.run(invocation, on_output))
        except ToolError as error:
            await session.commit(c.RecordToolFailure(call_id, _failure_kind(error), str(error)))
            return
        except asyncio.CancelledError:
            # The process is shutting down in good order: the tool was killed, and that is known.
            await session.commit(
                c.RecordToolFailure(call_id, "cancelled", "DuckLM was stopped while it ran; it was killed.")
            )
            raise
        finally:
            live.end(call_id)
        if result is None:
            await session.commit(c.RecordToolFailure(call_id, "cancelled", "It was stopped with the task."))
            return
        await self._observe(session, call_id, result, spool, (time.monotonic() - begun) * 1000)

    async def _observe(
        self, session: TaskSession, call_id: str, result: ToolResult, spool: Spool, latency_ms: float
    ) -> None:
        blob = await stubborn(self._p.blobs.put, spool.body()) if result.truncated and spool.body() else ""
        observed = c.RecordToolResult(call_id, result, blob, latency_ms)
        if getattr(session.state.call, "safety", "") == "repeatable":
            session.apply(observed)
        else:
            await session.commit(observed)


def _waits_for_model(task: Task) -> bool:
    return task.status == "paused" and task.resumes == "model"


def _recovery(error: ModelError) -> Literal["wait", "retry", "none"]:
    if isinstance(error, _WAITABLE):
        return "wait"
    return "retry" if isinstance(error, ModelProtocolError) else "none"


def _failure_kind(error: ToolError) -> Literal["refused", "timeout", "error"]:
    if isinstance(error, ToolRefused):
        return "refused"
    return "timeout" if isinstance(error, ToolTimeout) else "error"


class _Cancellable:
    """Runs effects so that a TaskCancelled from anywhere ends the one that is running."""

    def __init__(self) -> None:
        self._running: asyncio.Future[Any] | None = None
        self._cancelled = False

    def watch(self, envelope: Envelope) -> None:
        if isinstance(envelope.data, TaskCancelled):
            self._cancelled = True
            if self._running is not None:
                self._running.cancel()

    async def effect(self, work: Awaitable[R]) -> R | None:
        """The effect's result, or None when the task was cancelled meanwhile."""
        running = asyncio.ensure_future(work)
        self._running = running
        try:
            if self._cancelled:
                running.cancel()
            return await running
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if self._cancelled and not (current and current.cancelling()):
                return None
            running.cancel()
            await asyncio.wait([running], timeout=5)
            raise
        finally:
            self._running = None
