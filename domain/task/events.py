"""What can happen to a task. Every class is one line of its history, in business words and the past tense."""

from typing import Any, Literal

from msgspec import Struct

from domain.events import Event, event
from domain.messages import Message, ToolCall
from domain.model import Observations, RoleName, Timings, Transport, Usage
from domain.tools import Safety


class Limits(Struct, frozen=True):
    """What a task may use up before the thinker has to answer with what there is."""

    iterations: int = 12
    tokens: int = 400_000
    seconds: int = 3600


class HistoryRef(Struct, frozen=True):
    """An earlier task of the conversation whose own messages precede this one's, as of ``version``. ``plain``: only what
    the person said and what was answered, because the task was written for another kind of chat template."""

    task_id: str
    version: int
    plain: bool = False


class Segment(Struct, frozen=True):
    """A line of the context manifest. ``source`` is an event id, task id or name; ``tokens`` are estimated
    when the manifest says so."""

    kind: Literal["system", "tools", "history", "message", "reply", "observation", "instruction", "notice"]
    source: str
    tokens: int
    included: bool = True
    reason: str = ""


class ReplyRef(Struct, frozen=True, tag="reply"):
    """A context message that repeats a model reply of this task word for word."""

    call_id: str


class Said(Struct, frozen=True, tag="said"):
    """A context message that stands nowhere else in the log."""

    message: Message


Part = ReplyRef | Said


class Planned(Struct, frozen=True):
    """An action of a directive, with the id its call will have; ``native_id`` is the id of the template's own tool call, "" with the JSON transport."""

    call_id: str
    tool: str
    arguments: dict[str, Any]
    native_id: str = ""


@event("task.created.v1")
class TaskCreated(Event, frozen=True):
    conversation_id: str
    message: str
    workspace: str
    reflect: bool = True
    limits: Limits = Limits()


@event("task.context_built.v1")
class ContextBuilt(Event, frozen=True):
    """The new suffix of the prompt and a hash of everything; never the whole prompt again.

    ``prefix_sha256`` names the blob with system prompt and tool list; ``history`` is set by the first one of a task;
    ``context_sha256`` chains: sha256(previous context hash + suffix). ``observe_as`` and ``send_reasoning`` are what the
    chat template needs so that the prompt only grows."""

    call_id: str
    role: RoleName
    transport: Transport
    prefix_sha256: str
    context_sha256: str
    suffix: tuple[Part, ...]
    manifest: tuple[Segment, ...]
    tokens: int
    tokens_exact: bool = False
    observe_as: Observations = "user"
    send_reasoning: bool = False
    history: tuple[HistoryRef, ...] | None = None


@event("task.model_requested.v1")
class ModelRequested(Event, frozen=True):
    """Appended before the call is made; a second attempt after a crash is a new event with the same ``call_id``."""

    call_id: str
    role: RoleName
    attempt: int
    worker: str
    model: str
    temperature: float
    max_output_tokens: int


@event("task.model_replied.v1")
class ModelReplied(Event, frozen=True):
    call_id: str
    role: RoleName
    content: str
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    model: str = ""
    usage: Usage = Usage()
    timings: Timings = Timings()
    latency_ms: float = 0.0
    first_token_ms: float = 0.0


@event("task.model_failed.v1")
class ModelFailed(Event, frozen=True):
    """``error`` is the error's class name, ``retry`` whether the runtime tries again by itself."""

    call_id: str
    role: RoleName
    error: str
    message: str
    retry: bool = False


@event("task.action_directed.v1")
class ActionDirected(Event, frozen=True):
    call_id: str
    intent: str
    actions: tuple[Planned, ...]
    done: bool
    finish_id: str = ""


@event("task.directive_rejected.v1")
class DirectiveRejected(Event, frozen=True):
    """The reply was no valid directive. ``problem`` goes back to the model; ``attempt`` counts from 1."""

    call_id: str
    problem: str
    attempt: int


@event("task.tool_requested.v1")
class ToolRequested(Event, frozen=True):
    """``action_sha256`` is the hash of the normalised action: what is approved is what runs."""

    call_id: str
    tool: str
    arguments: dict[str, Any]
    safety: Safety
    action_sha256: str
    fingerprint: str
    risk: str = "low"
    reason: str = ""
    grant_id: str = ""


@event("task.tool_started.v1")
class ToolStarted(Event, frozen=True):
    call_id: str
    attempt: int
    worker: str


@event("task.tool_observed.v1")
class ToolObserved(Event, frozen=True):
    """``output`` is whole up to 64 KiB; beyond that it is head and tail, and ``blob_sha256`` names the rest."""

    call_id: str
    tool: str
    ok: bool
    output: str
    exit_code: int | None = None
    size: int = 0
    truncated: bool = False
    blob_sha256: str = ""
    data: dict[str, Any] = {}
    latency_ms: float = 0.0


@event("task.tool_failed.v1")
class ToolFailed(Event, frozen=True):
    """The tool did not run or did not finish. ``kind``: refused, denied, error, timeout, cancelled."""

    call_id: str
    tool: str
    kind: Literal["refused", "denied", "error", "timeout", "cancelled"]
    message: str


@event("task.tool_repeated.v1")
class ToolRepeated(Event, frozen=True):
    """An equal call in an unchanged world was not dispatched; ``earlier_call_id`` has the result."""

    call_id: str
    tool: str
    arguments: dict[str, Any]
    fingerprint: str
    earlier_call_id: str
    count: int


@event("task.tool_outcome_uncertain.v1")
class ToolOutcomeUncertain(Event, frozen=True):
    """The process died while an unsafe tool ran: it may have happened, in part or whole. It is not run again."""

    call_id: str
    tool: str
    message: str


@event("task.approval_requested.v1")
class ApprovalRequested(Event, frozen=True):
    approval_id: str
    call_id: str
    tool: str
    arguments: dict[str, Any]
    action_sha256: str
    risk: str
    reason: str


@event("task.approval_granted.v1")
class ApprovalGranted(Event, frozen=True):
    """``scope``: once, or forever (then a GrantIssued stands beside it and ``grant_id`` names it)."""

    approval_id: str
    call_id: str
    action_sha256: str
    scope: Literal["once", "forever"]
    grant_id: str = ""


@event("task.approval_denied.v1")
class ApprovalDenied(Event, frozen=True):
    approval_id: str
    call_id: str
    reason: str = ""


@event("task.loop_stopped.v1")
class LoopStopped(Event, frozen=True):
    """The action loop ended before the model said so; the thinker answers with what there is."""

    kind: Literal["iterations", "tokens", "seconds", "context", "repetition", "malformed"]
    reason: str


@event("task.response_completed.v1")
class ResponseCompleted(Event, frozen=True):
    """The final answer. ``notices`` say what the person should know about how it came about."""

    text: str
    call_id: str = ""
    reasoning: str = ""
    notices: tuple[str, ...] = ()


@event("task.completed.v1")
class TaskCompleted(Event, frozen=True):
    pass


@event("task.failed.v1")
class TaskFailed(Event, frozen=True):
    error: str
    message: str


@event("task.cancelled.v1")
class TaskCancelled(Event, frozen=True):
    reason: str = ""


@event("task.paused.v1")
class TaskPaused(Event, frozen=True):
    """``resumes``: who ends the pause. ``model``: the runtime itself, when the model server is back."""

    reason: str = ""
    resumes: Literal["person", "model"] = "person"


@event("task.resumed.v1")
class TaskResumed(Event, frozen=True):
    """``status`` is what it resumes to: it may still have a question open. ``extra`` is granted on top of the limits,
    when a limit had stopped the task."""

    status: Literal["running", "waiting_for_approval"] = "running"
    extra: Limits = Limits(0, 0, 0)


TaskEvent = (
    TaskCreated
    | ContextBuilt
    | ModelRequested
    | ModelReplied
    | ModelFailed
    | ActionDirected
    | DirectiveRejected
    | ToolRequested
    | ToolStarted
    | ToolObserved
    | ToolFailed
    | ToolRepeated
    | ToolOutcomeUncertain
    | ApprovalRequested
    | ApprovalGranted
    | ApprovalDenied
    | LoopStopped
    | ResponseCompleted
    | TaskCompleted
    | TaskFailed
    | TaskCancelled
    | TaskPaused
    | TaskResumed
)
