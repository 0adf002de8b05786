"""Where each projection stands: a row that is locked and moved in the transaction of its tables."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import BigInteger, Column, Connection, DateTime, Integer, MetaData, Table, Text, func, select, text

metadata = MetaData()
CHECKPOINTS = Table(
    "projection_checkpoints",
    metadata,
    Column("name", Text, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("parked_position", BigInteger),
    Column("parked_reason", Text),
    Column("suffix", Text, nullable=False, server_default=""),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
)
_CREATE_LOCK = 7_263_002


def create_table(conn: Connection) -> None:
    conn.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CREATE_LOCK})
    metadata.create_all(conn)


def lock(conn: Connection, name: str) -> dict[str, Any] | None:
    """The checkpoint, held by this transaction until its end."""
    row = conn.execute(select(CHECKPOINTS).where(CHECKPOINTS.c.name == name).with_for_update()).mappings().first()
    return dict(row) if row else None


def lock_all(conn: Connection, names: Sequence[str]) -> list[dict[str, Any]]:
    """The checkpoints of several projections, held by this transaction; always taken in the same order."""
    query = select(CHECKPOINTS).where(CHECKPOINTS.c.name.in_(names)).order_by(CHECKPOINTS.c.name).with_for_update()
    return [dict(row) for row in conn.execute(query).mappings()]


def move_all(conn: Connection, names: Sequence[str], position: int) -> None:
    conn.execute(
        CHECKPOINTS.update().where(CHECKPOINTS.c.name.in_(names)).values(position=position, updated_at=func.now())
    )


def all_checkpoints(conn: Connection) -> list[dict[str, Any]]:
    return [dict(r) for r in conn.execute(select(CHECKPOINTS).order_by(CHECKPOINTS.c.name)).mappings()]


def insert(conn: Connection, name: str, version: int, position: int = 0) -> None:
    conn.execute(CHECKPOINTS.insert().values(name=name, version=version, position=position))


def move(conn: Connection, name: str, position: int, **changes: Any) -> None:
    conn.execute(
        CHECKPOINTS.update()
        .where(CHECKPOINTS.c.name == name)
        .values(position=position, updated_at=func.now(), **changes)
    )


def park(conn: Connection, name: str, position: int, reason: str) -> None:
    """Stops a projection before the event at ``position``."""
    conn.execute(
        CHECKPOINTS.update()
        .where(CHECKPOINTS.c.name == name)
        .values(parked_position=position, parked_reason=reason[:2000], updated_at=func.now())
    )


def unpark(conn: Connection, name: str) -> None:
    conn.execute(
        CHECKPOINTS.update().where(CHECKPOINTS.c.name == name).values(parked_position=None, parked_reason=None)
    )
