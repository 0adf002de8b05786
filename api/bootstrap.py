"""The composition root: reads like a parts list."""

import asyncio
import os
import socket
from collections.abc import Callable

from msgspec.structs import replace

from adapters.engine.handle import EngineHandle
from adapters.engine.settings import EngineSettings
from adapters.engine.start import start_engine
from adapters.llm import Endpoint, HttpModelClient, load_constitution, load_roles
from adapters.runtime.bridge import LiveBridge
from adapters.runtime.interpreter import Budgets, Interpreter, Ports
from adapters.runtime.live import LiveFeed
from adapters.runtime.worker import Worker
from adapters.store.tail import LogTail
from adapters.tools.gateway import Gateway
from api.database import make_runner, open_database, prepare_home
from api.runtime import Database, Runtime
from api.security import load_token
from api.settings import PACKAGE_ROOT, Settings

Report = Callable[[str], None]
SMOKE_TEST_OUTPUT = 384
"""Tokens of an answer of the small built-in model: what it has to say is not worth a minute of waiting."""


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
    settings: Settings,
    report: Report = lambda _: None,
    *,
    with_worker: bool = True,
    database: Database | None = None,
    stopping: asyncio.Event | None = None,
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
    if engine.info.smoke_test_model:
        roles = {name: replace(role, max_output_tokens=SMOKE_TEST_OUTPUT) for name, role in roles.items()}
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
    # With a database of its own this process has nobody to share its deltas with.
    bridge = None if database.embedded else LiveBridge(database.conninfo, live, name)
    worker = Worker(database.conninfo, interpreter, name, settings.concurrency) if with_worker else None
    return Runtime(
        settings,
        token,
        database,
        tail,
        live,
        runner,
        models,
        roles,
        interpreter,
        bridge,
        worker,
        engine,
        stopping or asyncio.Event(),
    )
