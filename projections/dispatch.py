"""Which tasks have work to do: the log turned into jobs of the queue, in the same transaction as the checkpoint.

Not a read model: rebuilding it would hand out old work again."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
from sqlalchemy import Connection, text

from domain.events import Envelope, Event
from domain.queue import JOB, QUEUE, RETRY_SECONDS
from domain.task import events as t
from projections.base import Projection, tags_of

_WAKING: tuple[type[Event], ...] = (
    t.TaskCreated, t.ApprovalGranted, t.ApprovalDenied, t.TaskResumed, t.TaskPaused,
)  # fmt: skip
_DEFER = text(
    "SELECT procrastinate_defer_jobs_v1(array_agg(ROW("
    f"'{QUEUE}', '{JOB}', 0, j->>'task_id', NULL, json_build_object('task_id', j->>'task_id')::jsonb, "
    "(j->>'at')::timestamptz)::procrastinate_job_to_defer_v1)) FROM json_array_elements(CAST(:jobs AS json)) AS j"
)


def defer(conn: Connection, jobs: Sequence[tuple[str, datetime | None]]) -> None:
    """Queues one advance a task; ``lock`` = task id, so that two of them never run at the same time."""
    body = [{"task_id": task_id, "at": at} for task_id, at in jobs]
    conn.execute(_DEFER, {"jobs": msgspec.json.encode(body).decode()})


class DispatchProjection(Projection):
    """Defers a job for every event after which a task has something to do."""

    name = "dispatch"
    tags = tags_of(_WAKING)
    rebuildable = False

    def apply(self, conn: Connection, events: Sequence[Envelope]) -> None:
        jobs: dict[str, datetime | None] = {}
        for e in events:
            match e.data:
                case t.TaskPaused(resumes="model"):
                    jobs[e.correlation_id] = datetime.now(UTC) + timedelta(seconds=RETRY_SECONDS)
                case t.TaskPaused():
                    continue
                case t.TaskResumed() if e.actor == "runtime":
                    continue  # the worker that found the model server back has the task in its hands
                case _:
                    jobs[e.correlation_id] = None
        if jobs:
            defer(conn, list(jobs.items()))
