"""Approvals, pending and answered, and the standing grants that came of them."""

from typing import Any

from sqlalchemy import BigInteger, DateTime, Integer, Text
from sqlalchemy.dialects.postgresql import JSONB

from domain import grants as g
from domain.events import Envelope
from domain.ids import approval_id_of
from domain.task import events as t
from projections.base import RowProjection, Rows, TableSpec, tags_of

_TIME = DateTime(timezone=True)
APPROVALS = TableSpec(
    "approvals",
    "approval_id",
    (
        ("task_id", Text),
        ("call_id", Text),
        ("tool", Text),
        ("arguments", JSONB),
        ("action_sha256", Text),
        ("risk", Text),
        ("reason", Text),
        ("status", Text),
        ("answer_reason", Text),
        ("requested_at", _TIME),
        ("answered_at", _TIME),
        ("position", BigInteger),
    ),
    (("status",), ("task_id",)),
)
GRANTS = TableSpec(
    "grants",
    "grant_id",
    (
        ("tool", Text),
        ("workspace", Text),
        ("arguments", JSONB),
        ("action_sha256", Text),
        ("task_id", Text),
        ("issued_at", _TIME),
        ("revoked_at", _TIME),
        ("uses", Integer),
        ("last_used_at", _TIME),
        ("position", BigInteger),
    ),
)


def _requested(rows: Rows, e: Envelope) -> None:
    v = e.data
    assert isinstance(v, t.ApprovalRequested)
    row = {
        "approval_id": v.approval_id, "task_id": e.correlation_id, "call_id": v.call_id, "tool": v.tool,
        "arguments": v.arguments, "action_sha256": v.action_sha256, "risk": v.risk, "reason": v.reason,
        "status": "pending", "answer_reason": "", "requested_at": e.time, "answered_at": None, "position": e.position,
    }  # fmt: skip
    rows.put("approvals", v.approval_id, row)


def _answer(rows: Rows, e: Envelope, approval_id: str, status: str, **more: Any) -> None:
    rows.change("approvals", approval_id, status=status, answered_at=e.time, **more)


def _granted(rows: Rows, e: Envelope) -> None:
    assert isinstance(e.data, t.ApprovalGranted)
    _answer(rows, e, e.data.approval_id, f"allowed_{e.data.scope}")


def _denied(rows: Rows, e: Envelope) -> None:
    assert isinstance(e.data, t.ApprovalDenied)
    _answer(rows, e, e.data.approval_id, "denied", answer_reason=e.data.reason)


def _tool_failed(rows: Rows, e: Envelope) -> None:
    assert isinstance(e.data, t.ToolFailed)
    if e.data.kind == "cancelled":
        approval_id = approval_id_of(e.correlation_id, e.data.call_id)
        row = rows.get("approvals", approval_id)
        if row is not None and row["status"] == "pending":
            _answer(rows, e, approval_id, "cancelled")


def _issued(rows: Rows, e: Envelope) -> None:
    v = e.data
    assert isinstance(v, g.GrantIssued)
    row = {
        "grant_id": v.grant_id, "tool": v.tool, "workspace": v.workspace, "arguments": v.arguments,
        "action_sha256": v.action_sha256, "task_id": v.task_id, "issued_at": e.time, "revoked_at": None,
        "uses": 0, "last_used_at": None, "position": e.position,
    }  # fmt: skip
    rows.put("grants", v.grant_id, row)


def _revoked(rows: Rows, e: Envelope) -> None:
    assert isinstance(e.data, g.GrantRevoked)
    rows.change("grants", e.data.grant_id, revoked_at=e.time)


def _tool_requested(rows: Rows, e: Envelope) -> None:
    assert isinstance(e.data, t.ToolRequested)
    if e.data.grant_id:
        rows.add("grants", e.data.grant_id, uses=1)
        rows.change("grants", e.data.grant_id, last_used_at=e.time)


class ApprovalsProjection(RowProjection):
    """``rm_approvals`` and ``rm_grants``."""

    name = "approvals"
    specs = (APPROVALS, GRANTS)
    handlers = {
        t.ApprovalRequested: _requested,
        t.ApprovalGranted: _granted,
        t.ApprovalDenied: _denied,
        t.ToolFailed: _tool_failed,
        t.ToolRequested: _tool_requested,
        g.GrantIssued: _issued,
        g.GrantRevoked: _revoked,
    }
    tags = tags_of(handlers)

    def keys(self, e: Envelope) -> list[tuple[str, str]]:
        match e.data:
            case t.ApprovalGranted(approval_id=key) | t.ApprovalDenied(approval_id=key):
                return [("approvals", key)]
            case t.ToolFailed(call_id=call_id, kind="cancelled"):
                return [("approvals", approval_id_of(e.correlation_id, call_id))]
            case t.ToolRequested(grant_id=key) if key:
                return [("grants", key)]
            case g.GrantRevoked(grant_id=key):
                return [("grants", key)]
        return []
