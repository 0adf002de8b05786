"""The fold: one event changes the state of a task. Total, pure, and deaf to events it does not know."""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from domain.events import Envelope, Event
from domain.messages import Message
from domain.task import events as e
from domain.task.observe import shown_failure, shown_output
from domain.task.state import Approval, ModelCall, Observation, Past, Task, ToolCallState
from domain.tools import CATALOGUE

PAST_KEPT = 200
"""Dispatched calls remembered for finding repetition."""


def evolve(task: Task, event: Event) -> Task:
    """The state after ``event``; ``version`` counts every stored event, understood or not."""
    handler = _HANDLERS.get(type(event))
    changed = handler(task, event) if handler else task
    return replace(changed, version=task.version + 1)


def fold(task_id: str, log: Iterable[Envelope], start: Task | None = None) -> Task:
    """Folds a stream from its beginning, or on from a snapshot."""
    task = start or Task(task_id=task_id)
    for envelope in log:
        task = evolve(task, envelope.data)
    return task


def reply_message(reply: e.ModelReplied, send_reasoning: bool = False) -> Message:
    """A model reply as the next request repeats it; with its reasoning where the template keeps the prefix by that."""
    return Message("assistant", reply.content, reply.reasoning if send_reasoning else "", reply.tool_calls)


def _created(t: Task, v: e.TaskCreated) -> Task:
    return replace(
        t,
        conversation_id=v.conversation_id,
        message=v.message,
        workspace=v.workspace,
        reflect=v.reflect,
        limits=v.limits,
        status="running",
    )


def _context_built(t: Task, v: e.ContextBuilt) -> Task:
    added = []
    for part in v.suffix:
        if isinstance(part, e.Said):
            added.append(part.message)
        elif t.reply is not None and t.reply.call_id == part.call_id:
            added.append(reply_message(t.reply, v.send_reasoning))
    return replace(
        t,
        context=v,
        prefix_sha256=v.prefix_sha256,
        context_sha256=v.context_sha256,
        context_tokens=v.tokens,
        transport=v.transport,
        observe_as=v.observe_as,
        send_reasoning=v.send_reasoning,
        history=t.history if v.history is None else v.history,
        messages=(*t.messages, *added),
        role=v.role,
        pending=(),
        finish_id="",
        reply_pending=False,
    )


def _model_requested(t: Task, v: e.ModelRequested) -> Task:
    first = v.attempt == 1
    call = ModelCall(v.call_id, v.role, t.transport, v.attempt)
    return replace(t, call=call, context=None, model_calls=t.model_calls + first)


def _model_replied(t: Task, v: e.ModelReplied) -> Task:
    return replace(
        t,
        call=None,
        reply=v,
        reply_pending=True,
        model_failures=0,
        prompt_tokens=t.prompt_tokens + v.usage.prompt_tokens,
        completion_tokens=t.completion_tokens + v.usage.completion_tokens,
        work_ms=t.work_ms + v.latency_ms,
    )


def _model_failed(t: Task, v: e.ModelFailed) -> Task:
    # The call stays open: what follows is another attempt of it, a pause, or the end of the task.
    return replace(t, model_failures=t.model_failures + 1)


def _action_directed(t: Task, v: e.ActionDirected) -> Task:
    return replace(
        t,
        actions=v.actions,
        finish_id=v.finish_id,
        iterations=t.iterations + 1,
        malformed=0,
        next_role="thinker" if v.done else t.next_role,
    )


def _directive_rejected(t: Task, v: e.DirectiveRejected) -> Task:
    text = f"That was no valid directive: {v.problem}\nAnswer again, with a valid one."
    calls = t.reply.tool_calls if t.reply else ()
    answers = tuple(Observation(text, v.call_id, c.id) for c in calls) or (Observation(text, v.call_id),)
    return replace(t, malformed=v.attempt, pending=(*t.pending, *answers))


def _tool_requested(t: Task, v: e.ToolRequested) -> Task:
    native_id = t.actions[0].native_id if t.actions and t.actions[0].call_id == v.call_id else ""
    call = ToolCallState(v.call_id, v.tool, v.arguments, v.safety, v.action_sha256, v.fingerprint, native_id)
    return replace(t, call=call, actions=_without(t, v.call_id), tool_calls=t.tool_calls + 1)


def _without(t: Task, call_id: str) -> tuple[e.Planned, ...]:
    return tuple(a for a in t.actions if a.call_id != call_id)


def _tool_started(t: Task, v: e.ToolStarted) -> Task:
    if not isinstance(t.call, ToolCallState):
        return t
    return replace(t, call=replace(t.call, attempt=v.attempt))


def _settled(t: Task, call_id: str, text: str, changed: bool = False) -> Task:
    """A call has its outcome: remember it against repetition and show it in the next context."""
    call = t.call if isinstance(t.call, ToolCallState) and t.call.call_id == call_id else None
    planned = next((a for a in t.actions if a.call_id == call_id), None)
    native_id = call.native_id if call else planned.native_id if planned else ""
    past, novelty = t.past, t.novelty
    if call is not None:
        seen = next((p for p in past if p.fingerprint == call.fingerprint), None)
        novelty += changed and seen is None
        count = seen.count + 1 if seen else 1
        past = (*(p for p in past if p is not seen), Past(call_id, call.fingerprint, novelty, text, count))[-PAST_KEPT:]
    return replace(
        t,
        call=None if call else t.call,
        actions=_without(t, call_id),
        past=past,
        novelty=novelty,
        pending=(*t.pending, Observation(text, call_id, native_id)),
    )


def _tool_observed(t: Task, v: e.ToolObserved) -> Task:
    spec = CATALOGUE.get(v.tool)
    settled = _settled(t, v.call_id, shown_output(v), changed=spec is None or spec.mutating)
    return replace(settled, work_ms=t.work_ms + v.latency_ms, repeats=0)


def _tool_failed(t: Task, v: e.ToolFailed) -> Task:
    return _settled(t, v.call_id, shown_failure(v))


def _tool_repeated(t: Task, v: e.ToolRepeated) -> Task:
    seen = next((p for p in t.past if p.call_id == v.earlier_call_id), None)
    earlier = f" Its result was:\n{seen.shown}" if seen else ""
    text = f"{v.tool}: not run again, it was called the same way before and nothing has changed since.{earlier}"
    settled = _settled(t, v.call_id, text)
    past = tuple(replace(p, count=v.count) if p is seen else p for p in settled.past)
    return replace(settled, past=past, repeats=t.repeats + 1)


def _tool_uncertain(t: Task, v: e.ToolOutcomeUncertain) -> Task:
    return _settled(t, v.call_id, f"{v.tool}: outcome unknown. {v.message}", changed=True)


def _approval_requested(t: Task, v: e.ApprovalRequested) -> Task:
    return replace(
        t,
        status="waiting_for_approval",
        waiting_for=f"approval of {v.tool}",
        approval=Approval(v.approval_id, v.call_id, v.action_sha256, v.risk, v.reason),
    )


def _answered(t: Task, v: e.ApprovalGranted | e.ApprovalDenied) -> Task:
    if t.status == "paused":
        # A person's pause outlasts the answer to the question.
        return replace(t, approval=None)
    return replace(t, status="running", waiting_for="", approval=None)


def _loop_stopped(t: Task, v: e.LoopStopped) -> Task:
    unanswered = tuple(Observation("not run: the loop was stopped", a.call_id, a.native_id) for a in t.actions)
    note = Observation(f"The action loop was stopped: {v.reason}", "loop", "")
    return replace(
        t, actions=(), next_role="thinker", stopped=v.kind, notices=(*t.notices, v.reason),
        pending=(*t.pending, *unanswered, note),
    )  # fmt: skip


def _response_completed(t: Task, v: e.ResponseCompleted) -> Task:
    return replace(t, response=v.text, notices=v.notices)


def _completed(t: Task, v: e.TaskCompleted) -> Task:
    return replace(t, status="completed", waiting_for="")


def _failed(t: Task, v: e.TaskFailed) -> Task:
    return replace(t, status="failed", waiting_for="", error=v.message)


def _cancelled(t: Task, v: e.TaskCancelled) -> Task:
    return replace(t, status="cancelled", waiting_for="", approval=None, error=v.reason)


def _paused(t: Task, v: e.TaskPaused) -> Task:
    return replace(t, status="paused", waiting_for=v.reason or "the person", resumes=v.resumes)


def _resumed(t: Task, v: e.TaskResumed) -> Task:
    task = replace(
        t,
        status=v.status,
        waiting_for="approval" if v.status == "waiting_for_approval" else "",
        resumes="",
        error="",
        extra=e.Limits(
            t.extra.iterations + v.extra.iterations,
            t.extra.tokens + v.extra.tokens,
            t.extra.seconds + v.extra.seconds,
        ),
    )
    if t.status == "completed":
        # The thinker has answered; the person wants more of the same task.
        task = replace(
            task, next_role="action", stopped="", repeats=0, malformed=0, past=(), response=None, notices=(),
            pending=(Observation("Go on with the task.", "person"),),
        )  # fmt: skip
    return task


_HANDLERS: dict[type[Event], Callable[[Task, Any], Task]] = {
    e.TaskCreated: _created,
    e.ContextBuilt: _context_built,
    e.ModelRequested: _model_requested,
    e.ModelReplied: _model_replied,
    e.ModelFailed: _model_failed,
    e.ActionDirected: _action_directed,
    e.DirectiveRejected: _directive_rejected,
    e.ToolRequested: _tool_requested,
    e.ToolStarted: _tool_started,
    e.ToolObserved: _tool_observed,
    e.ToolFailed: _tool_failed,
    e.ToolRepeated: _tool_repeated,
    e.ToolOutcomeUncertain: _tool_uncertain,
    e.ApprovalRequested: _approval_requested,
    e.ApprovalGranted: _answered,
    e.ApprovalDenied: _answered,
    e.LoopStopped: _loop_stopped,
    e.ResponseCompleted: _response_completed,
    e.TaskCompleted: _completed,
    e.TaskFailed: _failed,
    e.TaskCancelled: _cancelled,
    e.TaskPaused: _paused,
    e.TaskResumed: _resumed,
}
