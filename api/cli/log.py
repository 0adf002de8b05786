"""Reading the log straight from the database, beside a running server or without one."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from adapters.store.recorder import TABLE
from api.cli.client import ID_LENGTH, one_task
from api.cli.options import Common
from api.database import open_database
from api.logs import configure_logs
from api.runtime import Database
from domain.errors import SetupError, StorageError
from domain.events import Envelope, decode_body
from domain.ids import TASK_PREFIX

BATCH = 500
WAIT_SECONDS = 1.0


@contextmanager
def opened(options: Common) -> Iterator[Database]:
    """The database of this home, or the one that is set. Raises ``SetupError`` when there is none yet."""
    settings = options.settings()
    configure_logs("warning")
    if not settings.database_url and not (settings.home_path / "postgres" / "PG_VERSION").exists():
        raise SetupError(
            f"there is no data in {settings.home_path} yet: `ducklm up` makes it; set DUCKLM_HOME or --home to another folder"
        )
    database = open_database(settings)
    try:
        yield database
    finally:
        database.close()


def find_task(database: Database, given: str) -> str:
    """The id of the task that was meant: an id, the end of one, or ``last``. Raises ``NotFound`` or ``BadInput``."""
    if len(given) >= ID_LENGTH:
        return given
    sql = f"SELECT originator_id FROM {TABLE} WHERE originator_version = 1 AND originator_id LIKE %s "
    ending = "" if given == "last" else _escaped(given)
    sql += "ORDER BY notification_id DESC LIMIT " + ("1" if given == "last" else "9")
    rows = _query(database, sql, (f"{TASK_PREFIX}%{ending}",))
    return one_task(given, [str(row[0]).removeprefix(TASK_PREFIX) for row in rows])


class Selection:
    """Which events are wanted: of one stream ("" for all), and of types that match a pattern ("" for all)."""

    def __init__(self, stream: str = "", types: str = "") -> None:
        self._where = ""
        self._params: list[Any] = []
        if stream:
            self._where += " AND originator_id = %s"
            self._params.append(stream)
        if types:
            self._where += " AND topic LIKE ANY(%s)"
            self._params.append([like for glob in types.split(",") for like in _likes(glob.strip())])

    def newest(self, database: Database, count: int) -> list[Envelope]:
        """The last ``count``, oldest first."""
        return self._read(database, 0, "DESC", count)[::-1]

    def after(self, database: Database, position: int, count: int | None = None) -> Iterator[Envelope]:
        """The first ``count`` after a position, or all of them."""
        left = sys.maxsize if count is None else count
        while left > 0:
            batch = self._read(database, position, "ASC", min(left, BATCH))
            yield from batch
            if len(batch) < BATCH:
                return
            position, left = batch[-1].position, left - len(batch)

    def _read(self, database: Database, after: int, order: str, count: int) -> list[Envelope]:
        rows = _query(
            database,
            "SELECT topic, state, originator_id, originator_version, notification_id "
            f"FROM {TABLE} WHERE notification_id > %s{self._where} ORDER BY notification_id {order} LIMIT %s",
            (after, *self._params, count),
        )
        return [decode_body(row[0], bytes(row[1]), *row[2:]) for row in rows]


def follow(database: Database, selection: Selection, position: int) -> Iterator[Envelope]:
    """Everything after a position, for ever; survives a database that goes away and comes back."""
    while True:
        try:
            with psycopg.connect(database.conninfo, autocommit=True, connect_timeout=3) as conn:
                conn.execute(f"LISTEN {TABLE}")
                while True:
                    for envelope in selection.after(database, position):
                        position = envelope.position
                        yield envelope
                    for _ in conn.notifies(timeout=WAIT_SECONDS, stop_after=1):
                        pass
        except (psycopg.Error, StorageError):
            time.sleep(WAIT_SECONDS)


def _likes(glob: str) -> list[str]:
    """SQL patterns for a glob; the version at the end of a type may be left out."""
    like = _escaped(glob).replace("*", "%").replace("?", r"_")
    return [like, f"{like}.v%"]


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")


def _query(database: Database, sql: str, params: tuple[Any, ...]) -> list[Any]:
    try:
        with database.store.pool.connection() as conn:
            return list(conn.execute(sql, params).fetchall())
    except psycopg.Error as error:
        raise StorageError(f"the database can't be read: {error}") from error
