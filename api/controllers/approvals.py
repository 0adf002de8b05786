"""Approvals and standing grants."""

from typing import Any

from litestar import Controller, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, JSONBody
from sqlalchemy import select

from api.contract import Page, ReasonBody
from api.reads import Reads
from api.service import Service
from domain.task.commands import Deny


class ApprovalController(Controller):
    path = "/v1"
    tags = ["approvals"]

    @get("/approvals/pending", summary="What waits for a person, oldest first")
    async def pending(self, reads: NamedDependency[Reads]) -> Page[dict[str, Any]]:
        approvals, tasks = reads.table("approvals"), reads.table("tasks")
        query = (
            select(approvals, tasks.c.conversation_id, tasks.c.workspace)
            .join(tasks, tasks.c.task_id == approvals.c.task_id)
            .where(approvals.c.status == "pending")
            .order_by(approvals.c.position)
        )
        return Page(await reads.rows(query, "approvals", "tasks"))

    @post("/approvals/{approval_id:str}/allow_once", status_code=200, summary="Allow this action once")
    async def allow_once(self, approval_id: FromPath[str], service: NamedDependency[Service]) -> dict[str, str]:
        return await _allow(approval_id, False, service)

    @post(
        "/approvals/{approval_id:str}/allow_forever", status_code=200, summary="Allow exactly this action from now on"
    )
    async def allow_forever(self, approval_id: FromPath[str], service: NamedDependency[Service]) -> dict[str, str]:
        return await _allow(approval_id, True, service)

    @post("/approvals/{approval_id:str}/deny", status_code=200, summary="Deny; the reason goes back to the model")
    async def deny(
        self,
        approval_id: FromPath[str],
        service: NamedDependency[Service],
        data: JSONBody[ReasonBody | None] = None,
    ) -> dict[str, str]:
        task_id = await service.task_of_approval(approval_id)
        await service.command(task_id, Deny(approval_id, data.reason if data else ""))
        return {"approval_id": approval_id, "task_id": task_id, "status": "denied"}

    @get("/grants", summary="What was allowed for ever")
    async def grants(
        self, reads: NamedDependency[Reads], cursor: FromQuery[str | None] = None, limit: FromQuery[int] = 50
    ) -> Page[dict[str, Any]]:
        return await reads.page("grants", "position", cursor, limit)

    @post("/grants/{grant_id:str}/revoke", status_code=200, summary="Take a grant back")
    async def revoke(
        self, grant_id: FromPath[str], reads: NamedDependency[Reads], service: NamedDependency[Service]
    ) -> dict[str, Any]:
        await service.revoke(grant_id)
        return await reads.one("grants", grant_id, "grant")


async def _allow(approval_id: str, forever: bool, service: Service) -> dict[str, str]:
    task_id = await service.task_of_approval(approval_id)
    await service.allow(task_id, approval_id, forever)
    status = "allowed_forever" if forever else "allowed_once"
    return {"approval_id": approval_id, "task_id": task_id, "status": status}
