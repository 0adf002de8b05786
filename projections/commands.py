"""The audit of every tool call that was asked for: who allowed it, what became of it."""

from typing import Any

from sqlalchemy import BigInteger, DateTime, Double, Integer, Text
from sqlalchemy.dialects.postgresql import JSONB

from domain.events import Envelope
from domain.task import events as t
from projections.base import RowProjection, Rows, TableSpec, tags_of

_TIME = DateTime(timezone=True)
COMMANDS = TableSpec(
    "commands",
    "call_id",
    (
        ("task_id", Text),
        ("tool", Text),
        ("arguments", JSONB),
        ("action_sha256", Text),
        ("status", Text),
        ("decision", Text),
        ("risk", Text),
        ("reason", Text),
        ("attempts", Integer),
        ("exit_code", Integer),
        ("requested_at", _TIME),
        ("started_at", _TIME),
        ("ended_at", _TIME),
        ("duration_ms", Double),
        ("position", BigInteger),
    ),
    (("position",), ("task_id",)),
)


def _row(e: Envelope, v: t.ToolRequested | t.ToolRepeated, **columns: Any) -> dict[str, Any]:
    return {
        "call_id": v.call_id, "task_id": e.correlation_id, "tool": v.tool, "arguments": v.arguments,
        "action_sha256": "", "status": "requested", "decision": "", "risk": "low", "reason": "", "attempts": 0,
        "exit_code": None, "requested_at": e.time, "started_at": None, "ended_at": None, "duration_ms": None,
        "position": e.position, **columns,
    }  # fmt: skip


def _requested(rows: Rows, e: Envelope) -> None:
    v = e.data
    assert isinstance(v, t.ToolRequested)
    decision = f"grant {v.grant_id}" if v.grant_id else "allowed by the rules"
    row = _row(e, v, action_sha256=v.action_sha256, decision=decision, risk=v.risk, reason=v.reason)
    rows.put("commands", v.call_id, row)


def _repeated(rows: Rows, e: Envelope) -> None:
    v = e.data
    assert isinstance(v, t.ToolRepeated)
    row = _row(
        e, v, status="repeated", decision="not run again", reason=f"same as {v.earlier_call_id}", ended_at=e.time
    )
    rows.put("commands", v.call_id, row)


def _approval_requested(rows: Rows, e: Envelope) -> None:
    assert isinstance(e.data, t.ApprovalRequested)
    rows.change("commands", e.data.call_id, status="waiting", decision="asked")


def _granted(rows: Rows, e: Envelope) -> None:
    assert isinstance(e.data, t.ApprovalGranted)
    rows.change("commands", e.data.call_id, status="requested", decision=f"allowed {e.data.scope}")


def _denied(rows: Rows, e: Envelope) -> None:
    assert isinstance(e.data, t.ApprovalDenied)
    rows.change("commands", e.data.call_id, decision="denied")


def _started(rows: Rows, e: Envelope) -> None:
    v = e.data
    assert isinstance(v, t.ToolStarted)
    rows.change("commands", v.call_id, status="running", attempts=v.attempt, started_at=e.time)


def _observed(rows: Rows, e: Envelope) -> None:
    v = e.data
    assert isinstance(v, t.ToolObserved)
    status = "ok" if v.ok else "failed"
    rows.change("commands", v.call_id, status=status, exit_code=v.exit_code, ended_at=e.time, duration_ms=v.latency_ms)


def _failed(rows: Rows, e: Envelope) -> None:
    v = e.data
    assert isinstance(v, t.ToolFailed)
    changes: dict[str, Any] = {"status": v.kind, "ended_at": e.time, "reason": v.message}
    if v.kind == "refused":
        changes["decision"] = "refused by the rules"
    rows.change("commands", v.call_id, **changes)


def _uncertain(rows: Rows, e: Envelope) -> None:
    assert isinstance(e.data, t.ToolOutcomeUncertain)
    rows.change("commands", e.data.call_id, status="uncertain", ended_at=e.time, reason=e.data.message)


class CommandsProjection(RowProjection):
    """``rm_commands``: one row a tool call."""

    name = "commands"
    specs = (COMMANDS,)
    handlers = {
        t.ToolRequested: _requested,
        t.ToolRepeated: _repeated,
        t.ApprovalRequested: _approval_requested,
        t.ApprovalGranted: _granted,
        t.ApprovalDenied: _denied,
        t.ToolStarted: _started,
        t.ToolObserved: _observed,
        t.ToolFailed: _failed,
        t.ToolOutcomeUncertain: _uncertain,
    }
    tags = tags_of(handlers)

    def keys(self, e: Envelope) -> list[tuple[str, str]]:
        if isinstance(e.data, t.ToolRequested | t.ToolRepeated):
            return []
        return [("commands", e.data.call_id)]  # type: ignore[attr-defined]
