"""The composition root: reads like a parts list."""

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Engine, create_engine

from adapters.engine.handle import EngineHandle
from adapters.engine.settings import EngineSettings
from adapters.engine.start import start_engine
from adapters.llm import Endpoint, HttpModelClient, load_constitution, load_roles
from adapters.postgres.embedded import EmbeddedPostgres
from adapters.runtime.interpreter import Budgets, Interpreter, Ports
from adapters.runtime.live import LiveFeed
from adapters.runtime.prompting import History
from adapters.runtime.worker import Worker, install_queue
from adapters.store.blobs import Blobs
from adapters.store.event_store import EventStore
from adapters.store.tail import LogTail
from adapters.store.tasks import Aggregates
from adapters.tools.gateway import Gateway
from api.runtime import Database, Runtime
from api.security import load_token
from api.settings import PACKAGE_ROOT, Settings
from domain.errors import SetupError
from projections.catalogue import all_projections
from projections.rebuild import Rebuilder
from projections.runner import ProjectionRunner

Report = Callable[[str], None]
READ_POOL = 8


def prepare_home(settings: Settings) -> Path:
    """Makes the home folder (for its owner only) and the default workspace. Raises ``SetupError``."""
    home = settings.home_path
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        (home / "logs").mkdir(exist_ok=True)
        settings.workspace_path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(f"the folder {home} can't be used: {error}; set DUCKLM_HOME to one that can") from error
    return home


def open_database(settings: Settings, report: Report = lambda _: None) -> Database:
    """The database given, or the embedded one, started if it does not run. Creates what is missing."""
    embedded, conninfo = None, settings.database_url
    if not conninfo:
        embedded = EmbeddedPostgres(prepare_home(settings))
        conninfo = embedded.start(report)
    store = EventStore(conninfo, pool_size=settings.concurrency + 2)
    aggregates, blobs = Aggregates(store), Blobs(store)
    install_queue(conninfo)
    return Database(conninfo, store, aggregates, blobs, History(aggregates, blobs), sql_engine(conninfo), embedded)


def sql_engine(conninfo: str) -> Engine:
    """SQLAlchemy over psycopg. Read models need no fsync of their own: what a crash loses is folded again."""
    return create_engine(
        "postgresql+psycopg://",
        connect_args={**conninfo_to_dict(conninfo), "options": "-c synchronous_commit=off", "connect_timeout": 3},
        pool_size=READ_POOL,
        max_overflow=READ_POOL,
        pool_pre_ping=True,
        pool_timeout=5,
    )


def make_runner(database: Database, report: Report = lambda _: None) -> ProjectionRunner:
    """Projections, their tables in place; those of an older version are built anew first."""
    runner = ProjectionRunner(database.engine, database.store, all_projections())
    for name in runner.ensure():
        report(f"building the projection {name} anew")
        Rebuilder(database.engine, database.store).rebuild(name)
    return runner


async def make_engine(settings: Settings, report: Report) -> EngineHandle:
    """The model engine, started but not awaited: a model may take minutes to load, the console is there before."""
    wanted = EngineSettings(
        home=settings.home_path,
        llama_url=settings.llama_url,
        llama_api_key=settings.llama_api_key,
        model=settings.model,
        context_tokens=settings.context_size,
        slots=settings.slots,
        threads=settings.threads,
        llama_dir=PACKAGE_ROOT / "llama",
    )

    def told(text: str, done: float | None) -> None:
        report(text if done is None else f"{text} {done:.0%}")

    return await start_engine(wanted, told, wait=False)


async def make_runtime(
    settings: Settings, report: Report = lambda _: None, *, with_worker: bool = True, database: Database | None = None
) -> Runtime:
    """The whole program, ready to :meth:`~api.runtime.Runtime.start`. Raises ``SetupError`` or ``StorageError``."""
    home = prepare_home(settings)
    token = load_token(home, settings.token)
    if database is None:
        database = await asyncio.to_thread(open_database, settings, report)
    runner = await asyncio.to_thread(make_runner, database, report)
    engine = await make_engine(settings, report)
    prompts = PACKAGE_ROOT / "prompts"
    default = Endpoint(engine.info.url, engine.api_key)
    roles = load_roles(settings.models_path, prompts, default, os.environ)
    models = HttpModelClient(
        roles, idle_timeout=settings.model_idle_seconds, prefill_timeout=settings.model_first_seconds
    )
    tail, live, name = LogTail(database.store), LiveFeed(), f"{socket.gethostname()}:{os.getpid()}"
    ports = Ports(
        store=database.store,
        aggregates=database.aggregates,
        blobs=database.blobs,
        tail=tail,
        live=live,
        models=models,
        tools=Gateway(home=home, workspace_root=settings.workspace_path),
        roles=roles,
        constitution=load_constitution(prompts),
        worker=name,
        budgets=Budgets(settings.max_input_tokens, settings.recent_events_tokens),
    )
    interpreter = Interpreter(ports)
    worker = Worker(database.conninfo, interpreter, name, settings.concurrency) if with_worker else None
    return Runtime(
        settings, token, database, tail, live, runner, models, roles, interpreter, worker, engine, asyncio.Event()
    )
