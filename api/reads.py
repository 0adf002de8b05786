"""Reading the read models: fresh (what was appended before the request is in it), in pages."""

import asyncio
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, Table, select
from sqlalchemy.exc import DataError, SQLAlchemyError

from adapters.runtime.session import in_request
from api.contract import Page
from api.runtime import Database
from domain.errors import BadInput, NotFound, StorageError
from projections.base import RowProjection
from projections.checkpoints import CHECKPOINTS

MAX_PAGE = 500
_WAIT_SECONDS = 2.0
_STEP_SECONDS = 0.004


class Reads:
    """Queries over the tables of read models."""

    def __init__(self, database: Database, projections: Sequence[RowProjection]) -> None:
        self._database = database
        self._tables: dict[str, Table] = {n: t for p in projections for n, t in p.tables.items()}
        self._owner = {n: p.name for p in projections for n in p.tables}

    def table(self, name: str) -> Table:
        return self._tables[name]

    async def rows(self, query: Select[Any], *owners: str) -> list[dict[str, Any]]:
        """Runs a query when the projections named have folded all that is in the log now (or after a short wait)."""
        await self._fresh(owners)
        return await in_request(self._run, query)

    async def one(self, table: str, key: str, what: str) -> dict[str, Any]:
        """The row with this key. Raises ``NotFound``."""
        found = self._tables[table]
        key_column = next(iter(found.primary_key.columns))
        if "\x00" in key:
            raise NotFound(f"there is no {what} {key[:100]!r}")
        owner = self._owner[table]
        fresh = await self._fresh([owner])
        rows = await in_request(self._run, select(found).where(key_column == key))
        if not rows and not fresh:
            raise StorageError(
                f"the read model {owner} is behind or parked, see `ducklm projections status`; try again"
            )
        if not rows:
            raise NotFound(f"there is no {what} {key[:100]!r}")
        return rows[0]

    async def page(
        self, table: str, order: str, cursor: str | None, limit: int, *conditions: Any, ascending: bool = False
    ) -> Page[dict[str, Any]]:
        """A page of a table by its position column ``order``, newest first unless ``ascending``."""
        if not 1 <= limit <= MAX_PAGE:
            raise BadInput(f"limit must be from 1 to {MAX_PAGE}, not {limit}")
        found = self._tables[table]
        column = found.c[order]
        query = select(found).where(*conditions).order_by(column.asc() if ascending else column.desc())
        if cursor is not None:
            position = _position(cursor)
            query = query.where(column > position if ascending else column < position)
        rows = await self.rows(query.limit(limit + 1), self._owner[table])
        more = rows[limit:]
        rows = rows[:limit]
        return Page(rows, str(rows[-1][order]) if more else None)

    async def checkpoints(self) -> list[dict[str, Any]]:
        return await in_request(self._run, select(CHECKPOINTS).order_by(CHECKPOINTS.c.name))

    async def _fresh(self, owners: Sequence[str]) -> bool:
        """Waits a little for the projections named; whether they have what was in the log at the beginning."""
        head = await in_request(self._database.store.head)
        waited = 0.0
        while waited < _WAIT_SECONDS:
            standing = [c for c in await self.checkpoints() if c["name"] in owners]
            if all(c["position"] >= head or c["parked_position"] is not None for c in standing):
                return all(c["parked_position"] is None for c in standing)
            await asyncio.sleep(_STEP_SECONDS)
            waited += _STEP_SECONDS
        return False

    def _run(self, query: Select[Any]) -> list[dict[str, Any]]:
        try:
            with self._database.engine.connect() as conn:
                return [dict(r) for r in conn.execute(query).mappings()]
        except DataError as error:
            raise BadInput(f"that can't be looked for: {str(error).splitlines()[0]}") from error
        except SQLAlchemyError as error:
            raise StorageError(f"the database can't be read: {str(error).splitlines()[0]}") from error


def _position(cursor: str) -> int:
    if not cursor.isdecimal() or len(cursor) > 18:
        raise BadInput(f"{cursor[:50]!r} is no cursor; use the value of `next`")
    return int(cursor)
