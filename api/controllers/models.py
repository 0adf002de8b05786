"""Roles, their servers, and what they cost."""

from typing import Any

from litestar import Controller, get
from litestar.di import NamedDependency
from litestar.params import FromQuery

from adapters.llm import Ping
from api.contract import Page
from api.reads import Reads
from api.runtime import Runtime
from domain.directive import directive_schema


class ModelController(Controller):
    path = "/v1"
    tags = ["models"]

    @get("/models/roles", summary="The roles as configured")
    async def roles(self, runtime: NamedDependency[Runtime]) -> Page[dict[str, Any]]:
        return Page(
            [
                {
                    "name": r.name, "endpoint": r.endpoint, "model": r.model, "temperature": r.temperature,
                    "max_output_tokens": r.max_output_tokens, "response_schema": r.response_schema,
                }
                for r in runtime.roles.values()
            ]
        )  # fmt: skip

    @get("/models/ping", summary="Ask every role's model for one token")
    async def ping(self, runtime: NamedDependency[Runtime]) -> Page[Ping]:
        return Page(list(await runtime.models.ping_all()))

    @get("/schemas/action_directive", summary="The JSON schema of an action directive")
    async def action_directive(self) -> dict[str, Any]:
        return directive_schema()

    @get("/usage", summary="Tokens, time and cache share by task and role")
    async def usage(
        self,
        reads: NamedDependency[Reads],
        task_id: FromQuery[str | None] = None,
        cursor: FromQuery[str | None] = None,
        limit: FromQuery[int] = 50,
    ) -> Page[dict[str, Any]]:
        conditions = [reads.table("usage").c.task_id == task_id.replace("\0", "")] if task_id else []
        page = await reads.page("usage", "position", cursor, limit, *conditions)
        for row in page.items:
            row["cache_share"] = round(row["cached_tokens"] / row["prompt_tokens"], 4) if row["prompt_tokens"] else None
        return page

    @get("/commands", summary="The audit of tool calls, newest first")
    async def commands(
        self,
        reads: NamedDependency[Reads],
        task_id: FromQuery[str | None] = None,
        cursor: FromQuery[str | None] = None,
        limit: FromQuery[int] = 50,
    ) -> Page[dict[str, Any]]:
        conditions = [reads.table("commands").c.task_id == task_id.replace("\0", "")] if task_id else []
        return await reads.page("commands", "position", cursor, limit, *conditions)
