"""The queue's worker (procrastinate): a job is «advance this task», its lock is the task's id."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import procrastinate
import psycopg
import structlog
from procrastinate import exceptions
from procrastinate.jobs import Status
from procrastinate.worker import Worker as QueueWorker

from adapters.runtime.interpreter import Interpreter
from domain.errors import NotFound, StorageError
from domain.queue import JOB, QUEUE, RETRY_SECONDS

HEARTBEAT_SECONDS = 10
STALLED_SECONDS = 30
_LIFE = 7263
"""First key of the advisory locks that workers hold while they live; the second is the worker's id."""
_KEEP_SECONDS = 1.0
_BELIEF_SECONDS = 3.0
_log = structlog.get_logger()


def install_queue(conninfo: str) -> None:
    """Makes the queue's tables where they are missing."""
    with psycopg.connect(conninfo, autocommit=True) as conn:
        conn.execute("SELECT pg_advisory_lock(7263003)")
        try:
            if conn.execute("SELECT to_regclass('procrastinate_jobs')").fetchone() == (None,):
                sql = procrastinate.schema.SchemaManager.get_schema()
                conn.execute(sql.encode())
        finally:
            conn.execute("SELECT pg_advisory_unlock(7263003)")


class _LockedWorker(QueueWorker):
    """Holds an advisory lock named after its id as long as its process lives: Postgres drops the lock with the connection,
    so others know of a crash at once and need not wait for a heartbeat to fail to come."""

    conninfo = ""

    async def _run_loop(self) -> None:
        locked = asyncio.Event()
        keeping = asyncio.create_task(self._keep_lock(locked))
        try:
            await locked.wait()
            await super()._run_loop()  # type: ignore[no-untyped-call]
        finally:
            keeping.cancel()

    async def _keep_lock(self, locked: asyncio.Event) -> None:
        """Takes the lock again at once when its connection is lost: others believe in a death only after a while."""
        while True:
            with suppress(psycopg.Error):
                async with await psycopg.AsyncConnection.connect(self.conninfo, autocommit=True) as conn:
                    await conn.execute("SELECT pg_advisory_lock(%s, %s)", (_LIFE, self.worker_id))
                    locked.set()
                    while True:
                        await asyncio.sleep(_KEEP_SECONDS)
                        await conn.execute("SELECT 1")
            await asyncio.sleep(0.2)


class Worker:
    """Runs jobs until stopped; survives a database that goes away and comes back."""

    def __init__(self, conninfo: str, interpreter: Interpreter, name: str, concurrency: int) -> None:
        self._conninfo = conninfo
        self._interpreter = interpreter
        self._name = name
        self._concurrency = concurrency
        self._run: asyncio.Task[None] | None = None
        self._rescue: asyncio.Task[None] | None = None
        self.running = False
        self._worker: _LockedWorker | None = None
        self._app = self._make_app()

    def _make_app(self) -> procrastinate.App:
        connector = procrastinate.PsycopgConnector(
            conninfo=self._conninfo, min_size=1, max_size=self._concurrency + 3, timeout=5
        )
        app = procrastinate.App(connector=connector)
        app.task(name=JOB, queue=QUEUE)(self._advance)
        return app

    async def _advance(self, task_id: str) -> None:
        try:
            later = await self._interpreter.advance(task_id)
        except NotFound:
            _log.warning("job_without_task", task_id=task_id)
            return
        except StorageError as error:
            _log.warning("task_waits_for_database", task_id=task_id, error=str(error))
            later = True
        except Exception as error:  # whatever it is, the task must not be left looking as if it ran
            _log.exception("advance_failed", task_id=task_id)
            await self._interpreter.give_up(task_id, error)
            return
        if later:
            await self._defer_later(task_id)

    async def _defer_later(self, task_id: str) -> None:
        while True:
            try:
                job = self._app.configure_task(JOB, queue=QUEUE, lock=task_id, schedule_in={"seconds": RETRY_SECONDS})
                await job.defer_async(task_id=task_id)
                return
            except (exceptions.ConnectorException, psycopg.Error):
                await asyncio.sleep(1)

    async def start(self, outstanding: Callable[[], list[str]]) -> None:
        """Starts working. ``outstanding`` lists tasks that should be running; those without a job get one again."""
        await self._app.open_async()
        await self._hand_back(await self._jobs_of_the_dead())
        await self._defer_outstanding(outstanding)
        self._run = asyncio.create_task(self._supervise(), name="worker")
        self._rescue = asyncio.create_task(self._rescue_stalled(), name="rescue-stalled")

    async def stop(self) -> None:
        """Ends within about 10 s: running effects are given a moment, then cancelled and handed back."""
        for job in (self._rescue, self._run):
            if job is not None:
                job.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await asyncio.wait_for(asyncio.shield(job), 12)
        with suppress(Exception):
            await self._app.close_async()

    async def _defer_outstanding(self, outstanding: Callable[[], list[str]]) -> None:
        waiting = {job.lock for job in await self._app.job_manager.list_jobs_async(queue=QUEUE, status="todo")}
        waiting |= {job.lock for job in await self._app.job_manager.list_jobs_async(queue=QUEUE, status="doing")}
        for task_id in await asyncio.to_thread(outstanding):
            if task_id not in waiting:
                await self._app.configure_task(JOB, queue=QUEUE, lock=task_id).defer_async(task_id=task_id)

    async def _jobs_of_the_dead(self) -> list[procrastinate.jobs.Job]:
        """Jobs whose worker's lock is free (its process has died) or whose heartbeat has stopped (its machine has)."""
        manager = self._app.job_manager
        dead = {
            job.id: job for job in await manager.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=STALLED_SECONDS)
        }
        async with await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True) as conn:
            suspects = await self._unlocked(conn)
            if suspects:
                # A living worker that lost its connection has its lock again by then.
                await asyncio.sleep(_BELIEF_SECONDS)
                still = await self._unlocked(conn)
                dead |= {job_id: job for job_id, job in still.items() if job_id in suspects}
        return list(dead.values())

    async def _unlocked(self, conn: psycopg.AsyncConnection[tuple[bool]]) -> dict[int | None, procrastinate.jobs.Job]:
        """Jobs that are marked as running, whose worker's lock is free."""
        found = {}
        for job in await self._app.job_manager.list_jobs_async(queue=QUEUE, status="doing"):
            mine = self._worker is not None and job.worker_id == self._worker.worker_id
            if not mine and (job.worker_id is None or await _lock_is_free(conn, job.worker_id)):
                found[job.id] = job
        return found

    async def _hand_back(self, jobs: list[procrastinate.jobs.Job]) -> None:
        """A lock held by a dead job would keep its task from ever running again."""
        for job in jobs:
            _log.info("job_handed_back", task_id=job.lock)
            await self._app.job_manager.finish_job(job, status=Status.FAILED, delete_job=True)
            if job.lock:
                await self._app.configure_task(JOB, queue=QUEUE, lock=job.lock).defer_async(task_id=job.lock)

    async def _rescue_stalled(self) -> None:
        """Takes over from workers whose heartbeat has stopped."""
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            try:
                await self._hand_back(await self._jobs_of_the_dead())
            except (exceptions.ProcrastinateException, psycopg.Error) as error:
                _log.warning("rescue_waits_for_database", error=str(error))

    async def _supervise(self) -> None:
        pause = 0.5
        while True:
            try:
                self.running = True
                worker = _LockedWorker(
                    self._app, queues=[QUEUE], name=self._name, concurrency=self._concurrency,
                    install_signal_handlers=False, delete_jobs="always", shutdown_graceful_timeout=4,
                    update_heartbeat_interval=HEARTBEAT_SECONDS, stalled_worker_timeout=STALLED_SECONDS,
                    fetch_job_polling_interval=2,
                )  # fmt: skip
                worker.conninfo = self._conninfo
                self._worker = worker
                await worker.run()  # type: ignore[no-untyped-call]
                pause = 0.5
            except asyncio.CancelledError:
                raise
            except Exception as error:
                _log.warning("worker_stopped", error=str(error).splitlines()[0] if str(error) else repr(error))
            finally:
                self.running = False
            await asyncio.sleep(pause)
            pause = min(pause * 2, 5)


async def _lock_is_free(conn: psycopg.AsyncConnection[tuple[bool]], worker_id: int) -> bool:
    row = await (await conn.execute("SELECT pg_try_advisory_lock(%s, %s)", (_LIFE, worker_id))).fetchone()
    if row and row[0]:
        await conn.execute("SELECT pg_advisory_unlock(%s, %s)", (_LIFE, worker_id))
        return True
    return False
