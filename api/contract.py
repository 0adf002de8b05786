"""The shapes of requests and answers, as docs/web_api.md tells them."""

from datetime import datetime
from typing import Any, Generic, TypeVar

from msgspec import Struct

from domain.events import Envelope
from domain.task.state import Task, ToolCallState

T = TypeVar("T")


class ChatBody(Struct, frozen=True, forbid_unknown_fields=True):
    message: str
    conversation_id: str | None = None
    workspace: str | None = None
    reflect: bool = True


class ContinueBody(Struct, frozen=True, forbid_unknown_fields=True):
    message: str | None = None


class ReasonBody(Struct, frozen=True, forbid_unknown_fields=True):
    reason: str = ""


class ConversationBody(Struct, frozen=True, forbid_unknown_fields=True):
    title: str = ""
    workspace: str | None = None


class ConversationChange(Struct, frozen=True, forbid_unknown_fields=True):
    title: str | None = None
    archived: bool | None = None


class Page(Struct, Generic[T], frozen=True):
    """A list. ``next`` is the cursor of the following page, or null."""

    items: list[T]
    next: str | None = None


class ChatAnswer(Struct, frozen=True):
    """How a turn stands. ``waiting_for`` says in words what a task that has not ended waits for."""

    task_id: str
    conversation_id: str
    status: str
    response: str | None
    pending_approvals: list[dict[str, Any]]
    position: int
    waiting_for: str = ""
    error: str = ""
    notices: tuple[str, ...] = ()


class EventView(Struct, frozen=True):
    """An event as the API shows it."""

    position: int
    stream: str
    version: int
    id: str
    type: str
    time: datetime
    actor: str
    correlation_id: str
    causation_id: str
    data: Any


def event_view(e: Envelope) -> EventView:
    return EventView(
        e.position, e.stream, e.version, e.id, e.type, e.time, e.actor, e.correlation_id, e.causation_id, e.data
    )


def pending_approvals(task: Task) -> list[dict[str, Any]]:
    """The question a task waits with, from its own state: there before any read model knows it."""
    if task.approval is None or task.ended or not isinstance(task.call, ToolCallState):
        return []
    return [
        {
            "approval_id": task.approval.approval_id,
            "task_id": task.task_id,
            "conversation_id": task.conversation_id,
            "call_id": task.call.call_id,
            "tool": task.call.tool,
            "arguments": task.call.arguments,
            "action_sha256": task.approval.action_sha256,
            "workspace": task.workspace,
            "risk": task.approval.risk,
            "reason": task.approval.reason,
            "status": "pending",
        }
    ]


def chat_answer(task: Task, position: int) -> ChatAnswer:
    return ChatAnswer(
        task.task_id, task.conversation_id, task.status, task.response, pending_approvals(task), position,
        task.waiting_for, task.error, task.notices,
    )  # fmt: skip
