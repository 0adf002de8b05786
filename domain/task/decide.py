"""The decisions: what a command makes happen in a given state. Pure; raises ``DuckError`` when it may not happen."""

from collections.abc import Callable
from typing import Any

from domain.directive import ActionDirective, InvalidDirective, parse_directive, parse_tool_calls
from domain.errors import Conflict
from domain.ids import approval_id_of, derived_id
from domain.task import commands as c
from domain.task import events as e
from domain.task.repetition import LAST_CHANCE, action_hash, fingerprint, repeated
from domain.task.state import ModelCall, Task, ToolCallState
from domain.tools import CATALOGUE, FINISH

REPAIRS = 2
"""How often a faulty directive is fed back before the thinker answers without it."""

MODEL_RETRIES = 2
"""How often a call that broke off is made again before the task fails."""

MODEL_WAITS = 20
"""How often a task waits for its model server by itself before it waits for the person."""

Events = list[e.TaskEvent]


def decide(task: Task, command: c.Command) -> Events:
    """The events that follow from ``command``. Raises ``Conflict`` when the state does not allow it (any more)."""
    return _HANDLERS[type(command)](task, command)


def _create(task: Task, cmd: c.Create) -> Events:
    if task.version:
        raise Conflict(f"task {task.task_id} exists already")
    return [e.TaskCreated(cmd.conversation_id, cmd.message, cmd.workspace, cmd.reflect, cmd.limits)]


def _record_context(task: Task, cmd: c.RecordContext) -> Events:
    if task.status != "running" or task.call or task.context:
        raise Conflict("no context is wanted now")
    return [cmd.built]


def _start_model(task: Task, cmd: c.StartModel) -> Events:
    if task.status != "running":
        raise Conflict(f"the task is {task.status}")
    if isinstance(task.call, ModelCall):
        call_id, role, attempt = task.call.call_id, task.call.role, task.call.attempt + 1
    elif task.context is not None:
        call_id, role, attempt = task.context.call_id, task.context.role, 1
    else:
        raise Conflict("no model call is wanted now")
    if attempt != cmd.attempt:
        raise Conflict(f"attempt {cmd.attempt} of the model call was started by another worker")
    return [e.ModelRequested(call_id, role, attempt, cmd.worker, cmd.model, cmd.temperature, cmd.max_output_tokens)]


def _record_reply(task: Task, cmd: c.RecordReply) -> Events:
    call, r = _open_model(task, cmd.call_id), cmd.reply
    replied = e.ModelReplied(
        call.call_id, call.role, r.content, r.reasoning, r.tool_calls, r.finish_reason, r.model,
        r.usage, r.timings, r.latency_ms, r.first_token_ms,
    )  # fmt: skip
    if task.ended:
        return [replied]
    return [replied, *(_directed(task, replied) if call.role == "action" else _answered(task, replied))]


def _directed(task: Task, r: e.ModelReplied) -> Events:
    try:
        directive = _directive(task, r)
    except InvalidDirective as error:
        problem = str(error)
        if r.finish_reason == "length":
            problem = f"it was cut off after {r.usage.completion_tokens} tokens, be shorter ({problem})"
        attempt = task.malformed + 1
        rejected: Events = [e.DirectiveRejected(r.call_id, problem, attempt)]
        if attempt > REPAIRS:
            reason = f"the model gave no valid directive in {attempt} tries; the last problem: {problem}"
            rejected.append(e.LoopStopped("malformed", reason))
        return rejected
    native = [call.id for call in r.tool_calls if call.name != FINISH]
    planned = tuple(
        e.Planned(
            derived_id(task.task_id, "tool", task.model_calls, i), a.tool, a.arguments, native[i] if native else ""
        )
        for i, a in enumerate(directive.actions)
    )
    finish_id = next((call.id for call in r.tool_calls if call.name == FINISH), "")
    return [e.ActionDirected(r.call_id, directive.intent, planned, directive.done, finish_id)]


def _directive(task: Task, r: e.ModelReplied) -> ActionDirective:
    if r.tool_calls:
        return parse_tool_calls([(call.name, call.arguments) for call in r.tool_calls], r.content)
    # Some models put the whole directive into their reasoning and leave the content empty.
    return parse_directive(r.content if r.content.strip() else r.reasoning)


def _answered(task: Task, r: e.ModelReplied) -> Events:
    text, notices = r.content.strip(), list(task.notices)
    if not text and r.reasoning.strip():
        text = r.reasoning.strip()
        notices.append("The model wrote its whole answer into its reasoning; it is shown as it is.")
    elif not text:
        notices.append("The model answered with nothing.")
    if r.finish_reason == "length":
        notices.append(f"The answer was cut off after {r.usage.completion_tokens} tokens, the limit of this role.")
    return [e.ResponseCompleted(text, r.call_id, r.reasoning, tuple(notices)), e.TaskCompleted()]


def _record_model_failure(task: Task, cmd: c.RecordModelFailure) -> Events:
    call = _open_model(task, cmd.call_id)
    recovery = cmd.recovery
    if recovery == "retry" and task.model_failures >= MODEL_RETRIES:
        recovery = "none"
    failed = e.ModelFailed(call.call_id, call.role, cmd.error, cmd.message, retry=recovery != "none")
    if task.status != "running" or recovery == "retry":
        return [failed]
    if recovery == "wait" and task.model_failures >= MODEL_WAITS:
        return [
            failed,
            e.TaskPaused(f"{cmd.message} (tried {task.model_failures + 1} times; continue when it is mended)"),
        ]
    if recovery == "wait":
        return [failed, e.TaskPaused(cmd.message, resumes="model")]
    return [failed, e.TaskFailed(cmd.error, cmd.message)]


def _judge(task: Task, cmd: c.Judge) -> Events:
    if task.status != "running" or task.call or not task.actions:
        raise Conflict("no action waits for a verdict")
    action = task.actions[0]
    spec, verdict = CATALOGUE[action.tool], cmd.verdict
    mark = fingerprint(action.tool, action.arguments)
    if (seen := repeated(task, mark, action.arguments)) is not None:
        count = seen.count + 1
        again: Events = [e.ToolRepeated(action.call_id, action.tool, action.arguments, mark, seen.call_id, count)]
        if count >= LAST_CHANCE or task.repeats + 1 >= LAST_CHANCE:
            reason = f"the model asked for {action.tool} the same way again and again although nothing had changed"
            again.append(e.LoopStopped("repetition", reason))
        return again
    sha = action_hash(action.tool, action.arguments, task.workspace)
    requested: Events = [
        e.ToolRequested(
            action.call_id, action.tool, action.arguments, spec.safety, sha, mark,
            verdict.risk, verdict.reason, cmd.grant_id,
        )
    ]  # fmt: skip
    if verdict.decision == "deny":
        requested.append(e.ToolFailed(action.call_id, action.tool, "refused", verdict.reason))
    elif verdict.decision == "ask" and not cmd.grant_id:
        approval_id = approval_id_of(task.task_id, action.call_id)
        requested.append(
            e.ApprovalRequested(
                approval_id, action.call_id, action.tool, action.arguments, sha, verdict.risk, verdict.reason
            )
        )
    return requested


def _start_tool(task: Task, cmd: c.StartTool) -> Events:
    if task.status != "running" or not isinstance(task.call, ToolCallState):
        raise Conflict("no tool call is wanted now")
    if task.call.attempt and task.call.safety == "unsafe":
        raise Conflict(f"{task.call.tool} was started before and must not run twice")
    if cmd.attempt != task.call.attempt + 1:
        raise Conflict(f"attempt {cmd.attempt} of {task.call.tool} was started by another worker")
    return [e.ToolStarted(task.call.call_id, cmd.attempt, cmd.worker)]


def _record_tool_result(task: Task, cmd: c.RecordToolResult) -> Events:
    call, r = _open_tool(task, cmd.call_id), cmd.result
    return [
        e.ToolObserved(
            call.call_id, call.tool, r.ok, r.output, r.exit_code, r.size, r.truncated,
            cmd.blob_sha256, r.data, cmd.latency_ms,
        )
    ]  # fmt: skip


def _record_tool_failure(task: Task, cmd: c.RecordToolFailure) -> Events:
    call = _open_tool(task, cmd.call_id)
    return [e.ToolFailed(call.call_id, call.tool, cmd.kind, cmd.message)]


def _record_uncertain(task: Task, cmd: c.RecordUncertain) -> Events:
    call = _open_tool(task, cmd.call_id)
    message = (
        f"The process died while {call.tool} ran (attempt {call.attempt}). It may have had its effect in whole, in part "
        "or not at all, and it was not run again. Find out what is there before doing anything else."
    )
    uncertain: Events = [e.ToolOutcomeUncertain(call.call_id, call.tool, message)]
    if not task.ended:
        uncertain.append(e.TaskPaused(f"the outcome of {call.tool} is uncertain; continue to let the agent look"))
    return uncertain


def _stop_loop(task: Task, cmd: c.StopLoop) -> Events:
    if task.status != "running" or task.call or task.stopped:
        raise Conflict("the loop can't be stopped now")
    return [e.LoopStopped(cmd.kind, cmd.reason)]


def _grant(task: Task, cmd: c.Grant) -> Events:
    approval = _open_approval(task, cmd.approval_id)
    return [e.ApprovalGranted(approval.approval_id, approval.call_id, approval.action_sha256, cmd.scope, cmd.grant_id)]


def _deny(task: Task, cmd: c.Deny) -> Events:
    approval = _open_approval(task, cmd.approval_id)
    assert isinstance(task.call, ToolCallState)
    reason = cmd.reason or "No reason was given; ask the person or do without."
    return [
        e.ApprovalDenied(approval.approval_id, approval.call_id, cmd.reason),
        e.ToolFailed(approval.call_id, task.call.tool, "denied", reason),
    ]


def _cancel(task: Task, cmd: c.Cancel) -> Events:
    _must_live(task, "cancelled")
    cancelled: Events = [e.TaskCancelled(cmd.reason)]
    if isinstance(task.call, ToolCallState) and not task.call.attempt:
        # It never ran, so nobody else will close it; one that runs is closed by its worker, with its output.
        cancelled.append(e.ToolFailed(task.call.call_id, task.call.tool, "cancelled", "the task was cancelled first"))
    return cancelled


def _pause(task: Task, cmd: c.Pause) -> Events:
    _must_live(task, "paused")
    if task.status == "paused":
        raise Conflict("the task is paused already")
    return [e.TaskPaused(cmd.reason or "paused by the person")]


def _resume(task: Task, cmd: c.Resume) -> Events:
    if task.status == "completed" and task.stopped:
        # As much again as the limits give, counted from what is used up by now.
        used = e.Limits(task.iterations, task.prompt_tokens + task.completion_tokens, int(task.work_ms / 1000))
        extra = e.Limits(
            max(used.iterations - task.extra.iterations, 0),
            max(used.tokens - task.extra.tokens, 0),
            max(used.seconds - task.extra.seconds, 0),
        )
        return [e.TaskResumed(extra=extra)]
    if task.status in ("paused", "failed"):
        return [e.TaskResumed("waiting_for_approval" if task.approval else "running")]
    raise Conflict(f"the task is {task.status}; only one that is paused, failed or stopped by a limit goes on")


def _await_model(task: Task, cmd: c.AwaitModel) -> Events:
    _must_live(task, "paused")
    if task.status != "running":
        raise Conflict(f"the task is {task.status}")
    return [e.TaskPaused(cmd.message, resumes="model")]


def _fail(task: Task, cmd: c.Fail) -> Events:
    _must_live(task, "failed")
    return [e.TaskFailed(cmd.error, cmd.message)]


def _must_live(task: Task, wanted: str) -> None:
    if not task.version or task.ended:
        raise Conflict(f"the task is {task.status} and can't be {wanted}")


def _open_model(task: Task, call_id: str) -> ModelCall:
    if isinstance(task.call, ModelCall) and task.call.call_id == call_id:
        return task.call
    raise Conflict(f"model call {call_id} is not open")


def _open_tool(task: Task, call_id: str) -> ToolCallState:
    if isinstance(task.call, ToolCallState) and task.call.call_id == call_id:
        return task.call
    raise Conflict(f"tool call {call_id} is not open")


def _open_approval(task: Task, approval_id: str) -> Any:
    if task.approval is not None and task.approval.approval_id == approval_id and not task.ended:
        return task.approval
    raise Conflict("this approval was answered already, or its task has ended")


_HANDLERS: dict[type, Callable[[Task, Any], Events]] = {
    c.Create: _create,
    c.RecordContext: _record_context,
    c.StartModel: _start_model,
    c.RecordReply: _record_reply,
    c.RecordModelFailure: _record_model_failure,
    c.Judge: _judge,
    c.StartTool: _start_tool,
    c.RecordToolResult: _record_tool_result,
    c.RecordToolFailure: _record_tool_failure,
    c.RecordUncertain: _record_uncertain,
    c.StopLoop: _stop_loop,
    c.Grant: _grant,
    c.Deny: _deny,
    c.Cancel: _cancel,
    c.Pause: _pause,
    c.Resume: _resume,
    c.AwaitModel: _await_model,
    c.Fail: _fail,
}
