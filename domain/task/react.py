"""What is outstanding now: derived from the state alone, so that a restart is fold → react → carry on."""

from msgspec import Struct

from domain.model import RoleName
from domain.task.commands import StopLoop
from domain.task.events import Planned
from domain.task.state import ModelCall, Task, ToolCallState


class BuildContext(Struct, frozen=True):
    """Compose what the role will be shown next."""

    role: RoleName


class CallModel(Struct, frozen=True):
    """Make the model call whose context stands, or make it again after a crash."""

    call_id: str
    role: RoleName


class JudgeAction(Struct, frozen=True):
    """Ask policy and grants about the next planned action."""

    action: Planned


class RunTool(Struct, frozen=True):
    """Run a call that is allowed; again, when its safety permits that after a crash."""

    call: ToolCallState


class SettleUncertain(Struct, frozen=True):
    """An unsafe call was started, and nobody knows how it ended."""

    call_id: str


class EndLoop(Struct, frozen=True):
    """A limit is reached: the thinker answers with what there is."""

    stop: StopLoop


Effect = BuildContext | CallModel | JudgeAction | RunTool | SettleUncertain | EndLoop


def react(task: Task) -> Effect | None:
    """The one effect that is outstanding, or None when the task waits or has ended."""
    call = task.call
    if isinstance(call, ToolCallState) and call.attempt and call.safety == "unsafe" and task.status != "paused":
        return SettleUncertain(call.call_id)
    if task.status != "running":
        return None
    if isinstance(call, ToolCallState):
        return RunTool(call)
    if isinstance(call, ModelCall):
        return CallModel(call.call_id, call.role)
    if task.context is not None:
        return CallModel(task.context.call_id, task.context.role)
    if task.actions:
        return JudgeAction(task.actions[0])
    if task.next_role == "action" and not task.stopped and (stop := _limit(task)) is not None:
        return EndLoop(stop)
    return BuildContext(task.next_role)


def _limit(task: Task) -> StopLoop | None:
    limits = task.limits
    if task.iterations >= limits.iterations + task.extra.iterations:
        return StopLoop("iterations", f"the limit of {task.iterations} steps is reached")
    if task.prompt_tokens + task.completion_tokens >= limits.tokens + task.extra.tokens:
        return StopLoop("tokens", f"the limit of {limits.tokens + task.extra.tokens} tokens is reached")
    if task.work_ms >= (limits.seconds + task.extra.seconds) * 1000:
        return StopLoop("seconds", f"the limit of {limits.seconds + task.extra.seconds} s of work is reached")
    return None
