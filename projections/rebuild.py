"""Rebuilding and verifying: a second set of tables beside the running one, folded from the log alone.

The swap happens under the checkpoint's lock, by renaming: readers see the old tables or the new, never a gap."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, Engine, text

from domain.errors import Conflict, NotFound
from domain.events import decode_body, skim_body
from projections import checkpoints
from projections.base import RowProjection
from projections.catalogue import READ_MODELS
from projections.runner import LogReader

BATCH = 5_000
_LOCK = 7_264
Progress = Callable[[int, int], None]
"""Called with (position, head)."""


class Difference(Struct, frozen=True):
    """A row that live and rebuilt tables do not share. ``side``: live or rebuilt."""

    table: str
    side: str
    row: dict[str, Any]


class Rebuilder:
    """Rebuilds and verifies read models by name. Raises ``NotFound`` for a name there is not."""

    def __init__(self, engine: Engine, log: LogReader) -> None:
        self._engine = engine
        self._log = log

    def rebuild(self, name: str, progress: Progress = lambda _p, _h: None) -> int:
        """Builds the tables anew beside the live ones and swaps them in; returns the number of events folded."""
        cls = _read_model(name)
        with self._scratch(cls) as scratch:
            position, count = self._build(scratch, 0, self._log.head(), progress)
            with self._engine.begin() as conn:
                state = checkpoints.lock(conn, name)
                position, more = self._fold(conn, scratch, position, self._log.head(), progress)
                self._swap(conn, cls(), scratch)
                if state is None:
                    checkpoints.insert(conn, name, cls.version, position)
                checkpoints.move(conn, name, position, version=cls.version, parked_position=None, parked_reason=None)
        return count + more

    def verify(self, name: str, progress: Progress = lambda _p, _h: None, sample: int = 20) -> list[Difference]:
        """Compares the live tables row by row with ones folded from the log up to the same position."""
        cls = _read_model(name)
        with self._scratch(cls) as scratch:
            position, _ = self._build(scratch, 0, self._log.head(), progress)
            with self._engine.begin() as conn:
                state = checkpoints.lock(conn, name)
                if state is None:
                    raise NotFound(f"the projection {name} has never run; `ducklm up` starts it")
                if state["position"] < position:
                    # It lags or is parked: fold again, only as far as it is.
                    scratch.drop(conn)
                    scratch.create(conn)
                    scratch.keep_rows()
                    position = 0
                self._fold(conn, scratch, position, state["position"], progress)
                return _differences(conn, cls(), scratch, sample)

    @contextmanager
    def _scratch(self, cls: type[RowProjection]) -> Iterator[RowProjection]:
        scratch = cls(suffix=f"_b{secrets.token_hex(4)}")
        with self._engine.connect() as alone:
            # Held by this connection: when the process dies, so does the lock, and its tables can be told from live ones.
            if not alone.execute(
                text("SELECT pg_try_advisory_lock(:a, hashtext(:b))"), {"a": _LOCK, "b": cls.name}
            ).scalar():
                raise Conflict(f"another process is rebuilding or verifying {cls.name} at this moment")
            alone.commit()
            with self._engine.begin() as conn:
                checkpoints.create_table(conn)
                _drop_left_behind(conn, cls)
                scratch.create(conn)
            scratch.keep_rows()
            try:
                yield scratch
            finally:
                with self._engine.begin() as conn:
                    scratch.drop(conn)
                alone.execute(text("SELECT pg_advisory_unlock(:a, hashtext(:b))"), {"a": _LOCK, "b": cls.name})
                alone.commit()

    def _build(self, scratch: RowProjection, position: int, head: int, progress: Progress) -> tuple[int, int]:
        count = 0
        while position < head:
            with self._engine.begin() as conn:
                position, more = self._fold(conn, scratch, position, head, progress, batches=1)
            count += more
        return position, count

    def _fold(
        self, conn: Connection, scratch: RowProjection, position: int, head: int, progress: Progress, batches: int = 0
    ) -> tuple[int, int]:
        """Folds up to ``head``, or a number of batches; returns (position, events)."""
        count, done = 0, 0
        tags = sorted(scratch.tags)
        while position < head and (not batches or done < batches):
            raw = self._log.read_raw(position, BATCH, tags, upto=head)
            skimmed = scratch.skimmed
            scratch.apply(conn, [skim_body(*row) if row[0] in skimmed else decode_body(*row) for row in raw])
            position = raw[-1][4] if len(raw) == BATCH else head
            count += len(raw)
            done += 1
            progress(position, head)
        return position, count

    def _swap(self, conn: Connection, live: RowProjection, scratch: RowProjection) -> None:
        live.drop(conn)
        for name, table in scratch.tables.items():
            conn.execute(text(f"ALTER TABLE {table.name} RENAME TO {live.tables[name].name}"))


def _drop_left_behind(conn: Connection, cls: type[RowProjection]) -> None:
    """Scratch tables of a rebuild that was killed."""
    for spec in cls.specs:
        pattern = f"^rm_{spec.name}_v[0-9]+_b[0-9a-f]{{8}}$"
        for (name,) in conn.execute(
            text("SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ :p"), {"p": pattern}
        ):
            conn.execute(text(f"DROP TABLE IF EXISTS {name}"))


def _read_model(name: str) -> type[RowProjection]:
    try:
        return READ_MODELS[name]
    except KeyError:
        raise NotFound(f"there is no projection {name!r}; there are: {', '.join(READ_MODELS)}") from None


def _differences(conn: Connection, live: RowProjection, rebuilt: RowProjection, sample: int) -> list[Difference]:
    found = []
    for name, table in live.tables.items():
        columns = ", ".join(f"{c.name}::text" for c in table.columns)
        a = f"SELECT {columns} FROM {table.name}"
        b = f"SELECT {columns} FROM {rebuilt.tables[name].name}"
        for side, sql in (("live", f"({a}) EXCEPT ALL ({b})"), ("rebuilt", f"({b}) EXCEPT ALL ({a})")):
            rows = conn.execute(text(f"{sql} LIMIT {sample}")).mappings()
            found += [Difference(table.name, side, dict(r)) for r in rows]
    return found
