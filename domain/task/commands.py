"""What can be asked of a task. Time, ids, model output and verdicts enter here, as values."""

from typing import Literal

from msgspec import Struct

from domain.model import ModelReply
from domain.task.events import ContextBuilt, Limits
from domain.tools import ToolResult, Verdict


class Create(Struct, frozen=True):
    conversation_id: str
    message: str
    workspace: str
    reflect: bool = True
    limits: Limits = Limits()


class RecordContext(Struct, frozen=True):
    built: ContextBuilt


class StartModel(Struct, frozen=True):
    """``attempt`` is the one the worker means to start; another worker may have started it first."""

    attempt: int
    worker: str
    model: str
    temperature: float
    max_output_tokens: int


class RecordReply(Struct, frozen=True):
    call_id: str
    reply: ModelReply


class RecordModelFailure(Struct, frozen=True):
    """``recovery``: wait (the server will be back), retry (once more at once), none."""

    call_id: str
    error: str
    message: str
    recovery: Literal["wait", "retry", "none"]


class Judge(Struct, frozen=True):
    """The verdict on the next planned action; ``grant_id`` when a standing grant allows it."""

    verdict: Verdict
    grant_id: str = ""


class StartTool(Struct, frozen=True):
    attempt: int
    worker: str


class RecordToolResult(Struct, frozen=True):
    """``output`` of the result is already cut for the event; ``blob_sha256`` has the whole of it."""

    call_id: str
    result: ToolResult
    blob_sha256: str = ""
    latency_ms: float = 0.0


class RecordToolFailure(Struct, frozen=True):
    call_id: str
    kind: Literal["refused", "denied", "error", "timeout", "cancelled"]
    message: str


class RecordUncertain(Struct, frozen=True):
    call_id: str


class StopLoop(Struct, frozen=True):
    kind: Literal["iterations", "tokens", "seconds", "context", "repetition", "malformed"]
    reason: str


class Grant(Struct, frozen=True):
    approval_id: str
    scope: Literal["once", "forever"]
    grant_id: str = ""


class Deny(Struct, frozen=True):
    approval_id: str
    reason: str = ""


class Cancel(Struct, frozen=True):
    reason: str = ""


class Pause(Struct, frozen=True):
    reason: str = ""


class Resume(Struct, frozen=True):
    pass


class AwaitModel(Struct, frozen=True):
    """The model server can't be asked now; the runtime goes on by itself when it is back."""

    message: str


class Fail(Struct, frozen=True):
    error: str
    message: str


Command = (
    Create
    | RecordContext
    | StartModel
    | RecordReply
    | RecordModelFailure
    | Judge
    | StartTool
    | RecordToolResult
    | RecordToolFailure
    | RecordUncertain
    | StopLoop
    | Grant
    | Deny
    | Cancel
    | Pause
    | Resume
    | AwaitModel
    | Fail
)
