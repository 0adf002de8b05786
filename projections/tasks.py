"""Tasks as people list them: status, what they wait for, what they cost."""

from typing import Any

from sqlalchemy import BigInteger, Boolean, DateTime, Double, Integer, Text
from sqlalchemy.dialects.postgresql import JSONB

from domain.conversation import shortened
from domain.events import Envelope
from domain.task import events as t
from projections.base import RowProjection, Rows, TableSpec, tags_of

_TIME = DateTime(timezone=True)
TASKS = TableSpec(
    "tasks",
    "task_id",
    (
        ("conversation_id", Text),
        ("title", Text),
        ("status", Text),
        ("workspace", Text),
        ("created_at", _TIME),
        ("updated_at", _TIME),
        ("iterations", Integer),
        ("model_calls", Integer),
        ("tool_calls", Integer),
        ("prompt_tokens", BigInteger),
        ("completion_tokens", BigInteger),
        ("cached_tokens", BigInteger),
        ("model_ms", Double),
        ("tool_ms", Double),
        ("waiting_for", Text),
        ("error", Text),
        ("response", Text),
        ("notices", JSONB),
        ("stopped_by_limit", Boolean),
        ("created_position", BigInteger),
        ("position", BigInteger),
    ),
    (("created_position",), ("conversation_id",), ("status",)),
)


def _created(rows: Rows, e: Envelope) -> None:
    v = e.data
    assert isinstance(v, t.TaskCreated)
    rows.put(
        "tasks",
        e.correlation_id,
        {
            "task_id": e.correlation_id,
            "conversation_id": v.conversation_id,
            "title": shortened(v.message),
            "status": "running",
            "workspace": v.workspace,
            "created_at": e.time,
            "updated_at": e.time,
            "iterations": 0,
            "model_calls": 0,
            "tool_calls": 0,
            "prompt_tokens": 0,
            "completion_tokens": 0,
            "cached_tokens": 0,
            "model_ms": 0.0,
            "tool_ms": 0.0,
            "waiting_for": "",
            "error": "",
            "response": None,
            "notices": [],
            "stopped_by_limit": False,
            "created_position": e.position,
            "position": e.position,
        },
    )


def _changed(rows: Rows, e: Envelope, **changes: Any) -> None:
    rows.change("tasks", e.correlation_id, updated_at=e.time, position=e.position, **changes)


def _model_requested(rows: Rows, e: Envelope) -> None:
    assert isinstance(e.data, t.ModelRequested)
    rows.add("tasks", e.correlation_id, model_calls=e.data.attempt == 1)
    _changed(rows, e)


def _model_replied(rows: Rows, e: Envelope) -> None:
    v = e.data
    assert isinstance(v, t.ModelReplied)
    rows.add(
        "tasks",
        e.correlation_id,
        prompt_tokens=v.usage.prompt_tokens,
        completion_tokens=v.usage.completion_tokens,
        cached_tokens=v.usage.cached_tokens,
        model_ms=v.latency_ms,
    )
    _changed(rows, e)


def _directed(rows: Rows, e: Envelope) -> None:
    rows.add("tasks", e.correlation_id, iterations=1)
    _changed(rows, e)


def _tool_requested(rows: Rows, e: Envelope) -> None:
    rows.add("tasks", e.correlation_id, tool_calls=1)
    _changed(rows, e)


def _tool_observed(rows: Rows, e: Envelope) -> None:
    assert isinstance(e.data, t.ToolObserved)
    rows.add("tasks", e.correlation_id, tool_ms=e.data.latency_ms)
    _changed(rows, e)


def _approval_requested(rows: Rows, e: Envelope) -> None:
    assert isinstance(e.data, t.ApprovalRequested)
    _changed(rows, e, status="waiting_for_approval", waiting_for=f"approval of {e.data.tool}")


def _answered(rows: Rows, e: Envelope) -> None:
    row = rows.get("tasks", e.correlation_id)
    if row is not None and row["status"] == "paused":
        _changed(rows, e)  # a person's pause outlasts the answer to the question
    else:
        _changed(rows, e, status="running", waiting_for="")


def _loop_stopped(rows: Rows, e: Envelope) -> None:
    _changed(rows, e, stopped_by_limit=True)


def _response(rows: Rows, e: Envelope) -> None:
    assert isinstance(e.data, t.ResponseCompleted)
    _changed(rows, e, response=e.data.text, notices=list(e.data.notices))


def _completed(rows: Rows, e: Envelope) -> None:
    _changed(rows, e, status="completed", waiting_for="")


def _failed(rows: Rows, e: Envelope) -> None:
    assert isinstance(e.data, t.TaskFailed)
    _changed(rows, e, status="failed", waiting_for="", error=e.data.message)


def _cancelled(rows: Rows, e: Envelope) -> None:
    assert isinstance(e.data, t.TaskCancelled)
    _changed(rows, e, status="cancelled", waiting_for="", error=e.data.reason)


def _paused(rows: Rows, e: Envelope) -> None:
    assert isinstance(e.data, t.TaskPaused)
    _changed(rows, e, status="paused", waiting_for=e.data.reason or "the person")


def _resumed(rows: Rows, e: Envelope) -> None:
    assert isinstance(e.data, t.TaskResumed)
    waiting_for = "approval" if e.data.status == "waiting_for_approval" else ""
    _changed(rows, e, status=e.data.status, waiting_for=waiting_for, error="", stopped_by_limit=False)


_TOUCH = (
    t.ContextBuilt, t.ModelFailed, t.DirectiveRejected, t.ToolStarted, t.ToolFailed, t.ToolRepeated, t.ToolOutcomeUncertain,
)  # fmt: skip


class TasksProjection(RowProjection):
    """``rm_tasks``: one row a task."""

    name = "tasks"
    specs = (TASKS,)
    handlers = {
        t.TaskCreated: _created,
        t.ModelRequested: _model_requested,
        t.ModelReplied: _model_replied,
        t.ActionDirected: _directed,
        t.ToolRequested: _tool_requested,
        t.ToolObserved: _tool_observed,
        t.ApprovalRequested: _approval_requested,
        t.ApprovalGranted: _answered,
        t.ApprovalDenied: _answered,
        t.LoopStopped: _loop_stopped,
        t.ResponseCompleted: _response,
        t.TaskCompleted: _completed,
        t.TaskFailed: _failed,
        t.TaskCancelled: _cancelled,
        t.TaskPaused: _paused,
        t.TaskResumed: _resumed,
        **dict.fromkeys(_TOUCH, _changed),
    }
    tags = tags_of(handlers)
    skimmed = tags_of(
        (
            *_TOUCH, t.ActionDirected, t.ToolRequested, t.LoopStopped, t.TaskCompleted,
            t.ApprovalGranted, t.ApprovalDenied,
        )
    )  # fmt: skip

    def keys(self, e: Envelope) -> list[tuple[str, str]]:
        return [("tasks", e.correlation_id)]
