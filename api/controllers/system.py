"""Health and status."""

from importlib.metadata import version
from typing import Any

import msgspec
from litestar import Controller, Response, get
from litestar.di import NamedDependency
from sqlalchemy import func, select

from adapters.runtime.session import in_request
from api.reads import Reads
from api.runtime import Runtime
from domain.errors import StorageError


class SystemController(Controller):
    path = ""
    tags = ["system"]

    @get("/health", summary="Whether it works; needs no token")
    async def health(self, runtime: NamedDependency[Runtime]) -> Response[dict[str, str]]:
        try:
            if not runtime.tail.connected:
                raise StorageError("the database is away")
            await in_request(runtime.database.store.head)
        except StorageError:
            body = {"status": "degraded", "database": "not reachable; it is tried again all the time"}
            return Response(body, status_code=503)
        return Response({"status": "ok"})

    @get("/v1/status", summary="Everything about the running program")
    async def status(self, runtime: NamedDependency[Runtime], reads: NamedDependency[Reads]) -> dict[str, Any]:
        head = await in_request(runtime.database.store.head)
        tasks = reads.table("tasks")
        counts = {
            r["status"]: r["n"]
            for r in await reads.rows(select(tasks.c.status, func.count().label("n")).group_by(tasks.c.status), "tasks")
        }
        waiting = sum(n for status, n in counts.items() if status.startswith("waiting") or status == "paused")
        return {
            "version": version("ducklm"),
            "home": str(runtime.home),
            "workspace": str(runtime.settings.workspace_path),
            "database": {"kind": "embedded" if runtime.database.embedded else "external", "position": head},
            "engine": _engine(runtime),
            "projections": [
                {
                    "name": c["name"],
                    "version": c["version"],
                    "position": c["position"],
                    "lag": head - c["position"],
                    "parked_position": c["parked_position"],
                    "parked_reason": c["parked_reason"],
                }
                for c in await reads.checkpoints()
            ],
            "workers": {"here": runtime.worker is not None, "running": bool(runtime.worker and runtime.worker.running)},
            "tasks_running": counts.get("running", 0),
            "tasks_waiting": waiting,
            "tasks": counts,
        }


def _engine(runtime: NamedDependency[Runtime]) -> dict[str, Any] | None:
    engine = runtime.model_engine
    if engine is None:
        return None
    state = engine.state
    return {**msgspec.to_builtins(engine.info), "state": state.name, "detail": state.detail}
