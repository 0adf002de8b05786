"""What models cost: tokens, time and cache share by task and role."""

from sqlalchemy import BigInteger, Double, Integer, Text

from domain.events import Envelope
from domain.task import events as t
from projections.base import RowProjection, Rows, TableSpec, tags_of

USAGE = TableSpec(
    "usage",
    "usage_id",
    (
        ("task_id", Text),
        ("role", Text),
        ("calls", Integer),
        ("failures", Integer),
        ("prompt_tokens", BigInteger),
        ("completion_tokens", BigInteger),
        ("cached_tokens", BigInteger),
        ("prefilled_tokens", BigInteger),
        ("prompt_ms", Double),
        ("predicted_ms", Double),
        ("model_ms", Double),
        ("position", BigInteger),
    ),
    (("task_id",),),
)


def _row(rows: Rows, e: Envelope, role: str) -> str:
    """The key of the row for this task and role, which is made when it is new."""
    key = f"{e.correlation_id}/{role}"
    if rows.get("usage", key) is None:
        row = {
            "usage_id": key, "task_id": e.correlation_id, "role": role, "calls": 0, "failures": 0, "prompt_tokens": 0,
            "completion_tokens": 0, "cached_tokens": 0, "prefilled_tokens": 0, "prompt_ms": 0.0, "predicted_ms": 0.0,
            "model_ms": 0.0, "position": e.position,
        }  # fmt: skip
        rows.put("usage", key, row)
    return key


def _replied(rows: Rows, e: Envelope) -> None:
    v = e.data
    assert isinstance(v, t.ModelReplied)
    rows.add(
        "usage",
        _row(rows, e, v.role),
        calls=1,
        prompt_tokens=v.usage.prompt_tokens,
        completion_tokens=v.usage.completion_tokens,
        cached_tokens=v.usage.cached_tokens,
        prefilled_tokens=max(v.usage.prompt_tokens - v.usage.cached_tokens, 0),
        prompt_ms=v.timings.prompt_ms,
        predicted_ms=v.timings.predicted_ms,
        model_ms=v.latency_ms,
    )


def _failed(rows: Rows, e: Envelope) -> None:
    assert isinstance(e.data, t.ModelFailed)
    rows.add("usage", _row(rows, e, e.data.role), failures=1)


class UsageProjection(RowProjection):
    """``rm_usage``: one row a task and role."""

    name = "usage"
    specs = (USAGE,)
    handlers = {t.ModelReplied: _replied, t.ModelFailed: _failed}
    tags = tags_of(handlers)

    def keys(self, e: Envelope) -> list[tuple[str, str]]:
        return [("usage", f"{e.correlation_id}/{e.data.role}")]  # type: ignore[attr-defined]
