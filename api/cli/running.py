"""What says that a DuckLM runs over a home: a lock that is held, and a file that tells its address."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from domain.errors import SetupError

NOT_RUNNING = "no DuckLM is running; start it with `ducklm up`"


class Running(msgspec.Struct, frozen=True):
    """What ``$DUCKLM_HOME/server.json`` says of the server that runs: for the other commands."""

    url: str
    pid: int


def server_file(home: Path) -> Path:
    return home / "server.json"


def read_server_file(home: Path) -> Running | None:
    try:
        return msgspec.json.decode(server_file(home).read_bytes(), type=Running)
    except (OSError, msgspec.DecodeError):
        return None


def write_server_file(home: Path, url: str) -> None:
    """Whole or not at all: another command may be reading it."""
    part = server_file(home).with_suffix(".part")
    part.write_bytes(msgspec.json.encode(Running(url, os.getpid())))
    part.replace(server_file(home))


@contextmanager
def only_one(home: Path) -> Iterator[None]:
    """Held by the one process that serves this home. Raises ``SetupError`` when there is one already."""
    lock = FileLock(home / "up.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise SetupError(
            f"DuckLM is already running on {home}; stop it first, or use another folder with DUCKLM_HOME"
        ) from None
    with lock:
        try:
            yield
        finally:
            server_file(home).unlink(missing_ok=True)
