"""Tasks: lists, one, its events, and steering it."""

from typing import Any

from litestar import Controller, MediaType, Request, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, JSONBody
from litestar.response import ServerSentEvent

from adapters.runtime.session import in_request
from api.contract import EventView, Page, ReasonBody, event_view, pending_approvals
from api.reads import MAX_PAGE, Reads
from api.runtime import Runtime
from api.service import Service
from api.streaming import TaskFollower
from domain.errors import BadInput, NotFound, StorageError
from domain.ids import task_stream
from domain.task import commands as c


class TaskController(Controller):
    path = "/v1/tasks"
    tags = ["tasks"]

    @get(summary="Tasks, newest first")
    async def tasks(
        self,
        reads: NamedDependency[Reads],
        status: FromQuery[str | None] = None,
        conversation_id: FromQuery[str | None] = None,
        cursor: FromQuery[str | None] = None,
        limit: FromQuery[int] = 50,
    ) -> Page[dict[str, Any]]:
        table = reads.table("tasks")
        if "\x00" in f"{status}{conversation_id}":
            raise BadInput("a filter contains a NUL")
        conditions = []
        if status:
            conditions.append(table.c.status == status)
        if conversation_id:
            conditions.append(table.c.conversation_id == conversation_id)
        return await reads.page("tasks", "created_position", cursor, limit, *conditions)

    @get("/{task_id:str}", summary="One task")
    async def task(
        self, task_id: FromPath[str], reads: NamedDependency[Reads], service: NamedDependency[Service]
    ) -> dict[str, Any]:
        return await _view(task_id, reads, service)

    @get(
        "/{task_id:str}/events",
        summary="A task's events: JSON, or a stream with Accept: text/event-stream",
    )
    async def events(
        self,
        task_id: FromPath[str],
        request: Request[Any, Any, Any],
        runtime: NamedDependency[Runtime],
        service: NamedDependency[Service],
        after: FromQuery[int | None] = None,
        limit: FromQuery[int] = MAX_PAGE,
    ) -> Response[Any]:
        await service.task(task_id)
        start = _start(request, after)
        if "text/event-stream" in request.headers.get("accept", ""):
            stream = TaskFollower(runtime, task_id, start, until_waits=False).messages()
            return ServerSentEvent(stream)
        if not 1 <= limit <= MAX_PAGE:
            raise BadInput(f"limit must be from 1 to {MAX_PAGE}, not {limit}")
        log = await in_request(runtime.database.store.read, start, limit + 1, (), task_stream(task_id))
        items = [event_view(e) for e in log[:limit]]
        page: Page[EventView] = Page(items, str(items[-1].position) if len(log) > limit else None)
        return Response(page, media_type=MediaType.JSON)

    @post("/{task_id:str}/cancel", status_code=200, summary="Cancel, in the middle of whatever it does")
    async def cancel(
        self,
        task_id: FromPath[str],
        reads: NamedDependency[Reads],
        service: NamedDependency[Service],
        data: JSONBody[ReasonBody | None] = None,
    ) -> dict[str, Any]:
        await service.command(task_id, c.Cancel(data.reason if data and data.reason else "cancelled by the person"))
        return await _view(task_id, reads, service)

    @post("/{task_id:str}/pause", status_code=200, summary="Pause after the running effect")
    async def pause(
        self,
        task_id: FromPath[str],
        reads: NamedDependency[Reads],
        service: NamedDependency[Service],
        data: JSONBody[ReasonBody | None] = None,
    ) -> dict[str, Any]:
        await service.command(task_id, c.Pause(data.reason if data else ""))
        return await _view(task_id, reads, service)

    @post("/{task_id:str}/resume", status_code=200, summary="Resume a paused task")
    async def resume(
        self, task_id: FromPath[str], reads: NamedDependency[Reads], service: NamedDependency[Service]
    ) -> dict[str, Any]:
        await service.command(task_id, c.Resume())
        return await _view(task_id, reads, service)


async def _view(task_id: str, reads: Reads, service: Service) -> dict[str, Any]:
    """The row, with what the log knows better: status and open approvals are never behind."""
    task = await service.task(task_id)
    try:
        row = await reads.one("tasks", task_id, "task")
    except (NotFound, StorageError):
        row = {"task_id": task_id, "conversation_id": task.conversation_id, "workspace": task.workspace}
    return {
        **row,
        "status": task.status,
        "waiting_for": task.waiting_for,
        "response": task.response,
        "notices": task.notices,
        "error": task.error,
        "pending_approvals": pending_approvals(task),
    }


def _start(request: Request[Any, Any, Any], after: int | None) -> int:
    given = request.headers.get("last-event-id")
    if given:
        if not given.isdecimal() or len(given) > 18:
            raise BadInput(f"Last-Event-ID must be a position, not {given[:50]!r}")
        return int(given)
    if after is not None and after < 0:
        raise BadInput("after must be a position, 0 or more")
    return after or 0
