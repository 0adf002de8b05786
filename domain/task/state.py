"""The state of a task: everything later decisions need, and nothing that is only for show."""

from typing import Any, Literal

from msgspec import Struct

from domain.messages import Message
from domain.model import Observations, RoleName, Transport
from domain.task.events import ContextBuilt, HistoryRef, Limits, ModelReplied, Planned
from domain.tools import Safety

Status = Literal[
    "created",
    "running",
    "waiting_for_approval",
    "waiting_for_password",
    "paused",
    "completed",
    "failed",
    "cancelled",
]
ENDED: frozenset[Status] = frozenset(("completed", "failed", "cancelled"))


class ModelCall(Struct, frozen=True, tag="model"):
    """A model call without an outcome. ``attempt`` 0 means asked for, not started."""

    call_id: str
    role: RoleName
    transport: Transport
    attempt: int = 0


class ToolCallState(Struct, frozen=True, tag="tool"):
    """A tool call without an outcome. ``attempt`` 0 means asked for, not started."""

    call_id: str
    tool: str
    arguments: dict[str, Any]
    safety: Safety
    action_sha256: str
    fingerprint: str
    native_id: str = ""
    attempt: int = 0


class Approval(Struct, frozen=True):
    """The question a task waits with."""

    approval_id: str
    call_id: str
    action_sha256: str
    risk: str = "low"
    reason: str = ""


class Past(Struct, frozen=True):
    """A call that was dispatched, for telling repetition from progress. ``novelty`` is the task's count of
    never-seen-before changes right after it; ``shown`` is what the model was told of it."""

    call_id: str
    fingerprint: str
    novelty: int
    shown: str
    count: int = 1


class Observation(Struct, frozen=True):
    """Text that answers a call (or a faulty reply, or nothing in particular) in the next context."""

    text: str
    source: str
    native_id: str = ""


class Task(Struct, frozen=True):
    """``messages`` are this task's own part of the prompt, exactly as sent; ``history`` names what stands before.
    ``pending`` is what the next context adds. ``work_ms`` counts model and tool time, not waiting."""

    task_id: str = ""
    conversation_id: str = ""
    message: str = ""
    workspace: str = ""
    reflect: bool = True
    limits: Limits = Limits()
    version: int = 0
    status: Status = "created"
    waiting_for: str = ""
    resumes: str = ""

    prefix_sha256: str = ""
    context_sha256: str = ""
    context_tokens: int = 0
    transport: Transport = "text"
    observe_as: Observations = "user"
    send_reasoning: bool = False
    history: tuple[HistoryRef, ...] | None = None
    messages: tuple[Message, ...] = ()
    role: RoleName | None = None
    next_role: RoleName = "action"

    context: ContextBuilt | None = None
    call: ModelCall | ToolCallState | None = None
    reply: ModelReplied | None = None
    reply_pending: bool = False
    actions: tuple[Planned, ...] = ()
    finish_id: str = ""
    pending: tuple[Observation, ...] = ()
    approval: Approval | None = None

    model_calls: int = 0
    tool_calls: int = 0
    iterations: int = 0
    extra: Limits = Limits(0, 0, 0)
    malformed: int = 0
    model_failures: int = 0
    past: tuple[Past, ...] = ()
    novelty: int = 0
    repeats: int = 0

    prompt_tokens: int = 0
    completion_tokens: int = 0
    work_ms: float = 0.0

    stopped: str = ""
    response: str | None = None
    notices: tuple[str, ...] = ()
    error: str = ""

    @property
    def ended(self) -> bool:
        return self.status in ENDED
