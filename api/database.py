"""Opening the home folder, the database, and the projections over it: what the server and the commands share."""

from collections.abc import Callable
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Engine, create_engine

from adapters.postgres.embedded import EmbeddedPostgres
from adapters.runtime.prompting import History
from adapters.runtime.worker import install_queue
from adapters.store.blobs import Blobs
from adapters.store.event_store import EventStore
from adapters.store.tasks import Aggregates
from api.runtime import Database
from api.settings import Settings
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
