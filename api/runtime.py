"""The running program: its parts, and starting and stopping them in order."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import structlog
from msgspec import Struct
from sqlalchemy import Engine, select

from adapters.engine.handle import EngineHandle
from adapters.llm import HttpModelClient
from adapters.postgres.embedded import EmbeddedPostgres
from adapters.runtime.bridge import LiveBridge
from adapters.runtime.interpreter import Interpreter
from adapters.runtime.live import LiveFeed
from adapters.runtime.prompting import History
from adapters.runtime.worker import Worker
from adapters.store.blobs import Blobs
from adapters.store.event_store import EventStore
from adapters.store.tail import LogTail
from adapters.store.tasks import Aggregates
from api.settings import Settings
from domain.model import RoleName
from domain.roles import RoleConfig
from projections.runner import ProjectionRunner
from projections.tasks import TasksProjection

Report = Callable[[str], None]
_log = structlog.get_logger()


class Database(Struct, frozen=True):
    """An open database and what reads and writes it."""

    conninfo: str
    store: EventStore
    aggregates: Aggregates
    blobs: Blobs
    history: History
    engine: Engine
    embedded: EmbeddedPostgres | None = None

    def close(self) -> None:
        self.store.close()
        self.engine.dispose()
        if self.embedded is not None:
            self.embedded.stop()


class Runtime(Struct):
    """Everything that runs in this process. ``worker`` and ``engine`` are None where another process has them."""

    settings: Settings
    token: str
    database: Database
    tail: LogTail
    live: LiveFeed
    runner: ProjectionRunner
    models: HttpModelClient
    roles: dict[RoleName, RoleConfig]
    interpreter: Interpreter
    bridge: LiveBridge | None = None
    worker: Worker | None = None
    model_engine: EngineHandle | None = None
    stopping: asyncio.Event = asyncio.Event()

    @property
    def home(self) -> Path:
        return self.settings.home_path

    async def start(self) -> None:
        """Starts following the log, projections, and the worker."""
        self.tail.on_wake(self.runner.wake)
        self.tail.start()
        self.runner.start()
        if self.bridge is not None:
            self.bridge.start()
        if self.worker is not None:
            await asyncio.to_thread(self.runner.catch_up)
            await self.worker.start(self._outstanding)

    async def stop(self) -> None:
        """Stops in the order in which parts depend on each other; running effects are handed back."""
        self.stopping.set()
        if self.worker is not None:
            await self.worker.stop()
        if self.bridge is not None:
            await self.bridge.stop()
        self.tail.stop()
        await asyncio.to_thread(self.runner.stop)
        await self.models.aclose()
        if self.model_engine is not None:
            await self.model_engine.stop()
        await asyncio.to_thread(self.database.close)

    def _outstanding(self) -> list[str]:
        """Tasks that should be running, or wait for a model server: a crash may have swallowed their job."""
        table = TasksProjection().tables["tasks"]
        query = select(table.c.task_id).where(table.c.status.in_(["running", "paused"]))
        with self.database.engine.connect() as conn:
            return [row[0] for row in conn.execute(query)]
