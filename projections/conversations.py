"""Conversations and their messages. A person's message comes from the conversation, the answer from its task."""

from typing import Any

from sqlalchemy import BigInteger, Boolean, DateTime, Integer, Text
from sqlalchemy.dialects.postgresql import JSONB

from domain import conversation as c
from domain.events import Envelope, Event
from domain.ids import CONVERSATION_PREFIX, derived_id
from domain.task import events as t
from projections.base import RowProjection, Rows, TableSpec, tags_of

_TIME = DateTime(timezone=True)
CONVERSATIONS = TableSpec(
    "conversations",
    "conversation_id",
    (
        ("title", Text),
        ("workspace", Text),
        ("created_at", _TIME),
        ("updated_at", _TIME),
        ("archived", Boolean),
        ("message_count", Integer),
        ("last_task_id", Text),
        ("last_status", Text),
        ("position", BigInteger),
    ),
    (("position",),),
)
MESSAGES = TableSpec(
    "messages",
    "message_id",
    (
        ("conversation_id", Text),
        ("task_id", Text),
        ("role", Text),
        ("text", Text),
        ("reasoning", Text),
        ("notices", JSONB),
        ("time", _TIME),
        ("position", BigInteger),
    ),
    (("conversation_id", "position"),),
)
MEMBERS = TableSpec("conversation_tasks", "task_id", (("conversation_id", Text),))


def _id(e: Envelope) -> str:
    return e.stream.removeprefix(CONVERSATION_PREFIX)


def _started(rows: Rows, e: Envelope) -> None:
    v = e.data
    assert isinstance(v, c.ConversationStarted)
    row = {
        "conversation_id": _id(e), "title": v.title, "workspace": v.workspace, "created_at": e.time, "updated_at": e.time,
        "archived": False, "message_count": 0, "last_task_id": "", "last_status": "", "position": e.position,
    }  # fmt: skip
    rows.put("conversations", _id(e), row)


def _renamed(rows: Rows, e: Envelope) -> None:
    assert isinstance(e.data, c.ConversationRenamed)
    rows.change("conversations", _id(e), title=e.data.title)


def _archived(rows: Rows, e: Envelope) -> None:
    assert isinstance(e.data, c.ConversationArchived)
    rows.change("conversations", _id(e), archived=e.data.archived)


def _message(rows: Rows, e: Envelope, conversation_id: str, message_id: str, **columns: Any) -> None:
    row = {
        "message_id": message_id, "conversation_id": conversation_id, "reasoning": "", "notices": [],
        "time": e.time, "position": e.position, **columns,
    }  # fmt: skip
    rows.put("messages", message_id, row)
    rows.add("conversations", conversation_id, message_count=1)
    rows.change("conversations", conversation_id, updated_at=e.time, position=e.position)


def _message_added(rows: Rows, e: Envelope) -> None:
    v = e.data
    assert isinstance(v, c.MessageAdded)
    _message(rows, e, _id(e), v.message_id, task_id=v.task_id, role=v.role, text=v.text)


def _task_created(rows: Rows, e: Envelope) -> None:
    v = e.data
    assert isinstance(v, t.TaskCreated)
    rows.put(
        "conversation_tasks", e.correlation_id, {"task_id": e.correlation_id, "conversation_id": v.conversation_id}
    )
    rows.change("conversations", v.conversation_id, last_task_id=e.correlation_id, last_status="running")


def _response(rows: Rows, e: Envelope) -> None:
    v = e.data
    assert isinstance(v, t.ResponseCompleted)
    member = rows.get("conversation_tasks", e.correlation_id)
    if member is not None:
        message_id = derived_id(e.correlation_id, "answer", e.version)
        _message(
            rows, e, member["conversation_id"], message_id, task_id=e.correlation_id, role="assistant",
            text=v.text, reasoning=v.reasoning, notices=list(v.notices),
        )  # fmt: skip


_STATUS: dict[type[Event], str] = {
    t.ApprovalRequested: "waiting_for_approval",
    t.ApprovalGranted: "running",
    t.ApprovalDenied: "running",
    t.TaskCompleted: "completed",
    t.TaskFailed: "failed",
    t.TaskCancelled: "cancelled",
    t.TaskPaused: "paused",
    t.TaskResumed: "running",
}


def _status(rows: Rows, e: Envelope) -> None:
    member = rows.get("conversation_tasks", e.correlation_id)
    if member is None:
        return
    conversation = rows.get("conversations", member["conversation_id"])
    if conversation is None or conversation["last_task_id"] != e.correlation_id:
        return
    status = e.data.status if isinstance(e.data, t.TaskResumed) else _STATUS[type(e.data)]
    if conversation["last_status"] == "paused" and isinstance(e.data, t.ApprovalGranted | t.ApprovalDenied):
        return  # a person's pause outlasts the answer to the question
    rows.change("conversations", member["conversation_id"], last_status=status)


class ConversationsProjection(RowProjection):
    """``rm_conversations``, ``rm_messages``, and which task belongs where."""

    name = "conversations"
    specs = (CONVERSATIONS, MESSAGES, MEMBERS)
    handlers = {
        c.ConversationStarted: _started,
        c.ConversationRenamed: _renamed,
        c.ConversationArchived: _archived,
        c.MessageAdded: _message_added,
        t.TaskCreated: _task_created,
        t.ResponseCompleted: _response,
        **dict.fromkeys(_STATUS, _status),
    }
    tags = tags_of(handlers)

    def keys(self, e: Envelope) -> list[tuple[str, str]]:
        if e.stream.startswith(CONVERSATION_PREFIX):
            return [("conversations", _id(e))]
        if isinstance(e.data, t.TaskCreated):
            return [("conversations", e.data.conversation_id), ("conversation_tasks", e.correlation_id)]
        return [("conversation_tasks", e.correlation_id)]
