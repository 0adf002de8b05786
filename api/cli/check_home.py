"""Checks of the home folder and what lies in it."""

import os
import shutil
import stat
import tempfile
from pathlib import Path

from api.cli.checks import Check
from api.settings import Settings

LEAST_MIB, BETTER_MIB = 300, 2_000
ELSEWHERE = "set DUCKLM_HOME to a folder of your own, on a disk with room"


def home(settings: Settings) -> Check:
    """Writable, ours, private, with room."""
    path = settings.home_path
    there = _nearest(path)
    found = str(path) + ("" if path.exists() else " (is made by the first start)")
    if path.exists() and not path.is_dir():
        return Check("home", "fail", f"{path} is not a folder", ELSEWHERE)
    if (why := _not_writable(there)) is not None:
        return Check("home", "fail", f"{found}: can't be written: {why}", ELSEWHERE)
    free = shutil.disk_usage(there).free // 2**20
    found += f", {free:,} MiB free"
    if free < LEAST_MIB:
        return Check("home", "fail", found, f"make room: DuckLM needs {LEAST_MIB} MiB to start")
    if path.exists() and (info := path.stat()).st_uid != os.getuid():
        return Check("home", "fail", f"{found}, belongs to user {info.st_uid}", f"{ELSEWHERE}; or run as that user")
    if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
        return _readable_by_others(path, found)
    if free < BETTER_MIB:
        return Check("home", "warn", found, "models and the log grow; make some room")
    return Check("home", "ok", found)


def _readable_by_others(path: Path, found: str) -> Check:
    if os.getuid() == 0:
        # Postgres runs as a user of its own then and must get through.
        return Check("home", "ok", found)
    return Check("home", "warn", f"{found}, others of this machine can look into it", f"chmod 700 {path}")


def workspace(settings: Settings) -> Check:
    """The default folder for tasks."""
    path = settings.workspace_path
    if not path.exists():
        return Check("workspace", "ok", f"{path} (is made by the first start)")
    if not path.is_dir():
        return Check("workspace", "fail", f"{path} is not a folder", "set DUCKLM_WORKSPACE to a folder")
    if (why := _not_writable(path)) is not None:
        return Check("workspace", "warn", f"{path} can't be written: {why}", "set DUCKLM_WORKSPACE to another folder")
    return Check("workspace", "ok", str(path))


def token(settings: Settings) -> Check:
    """There, and nobody else's to read."""
    if settings.token:
        return Check("token", "ok", "from DUCKLM_TOKEN")
    path = settings.home_path / "token"
    if not path.exists():
        return Check("token", "ok", "is made by the first start")
    try:
        text, mode = path.read_text().strip(), stat.S_IMODE(path.stat().st_mode)
    except (OSError, UnicodeDecodeError) as error:
        return Check("token", "fail", f"{path} can't be read: {error}", f"remove it, a new one is made: rm {path}")
    if not text:
        return Check("token", "warn", f"{path} is empty", "a new one is made by the next start")
    if mode & 0o077:
        return Check("token", "warn", f"others of this machine can read {path}", f"chmod 600 {path}")
    return Check("token", "ok", str(path))


def user(settings: Settings) -> Check:
    """Not root, where that can be helped."""
    if os.getuid() != 0:
        return Check("user", "ok", f"uid {os.getuid()}")
    where = "" if settings.database_url else "; the embedded Postgres runs as the user pgserver, which is made for it"
    return Check(
        "user",
        "warn",
        f"root{where}",
        "commands that you allow run as root: better use a user of its own, or a container",
    )


def _nearest(path: Path) -> Path:
    """The folder itself, or the one that it would be made in."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _not_writable(folder: Path) -> str | None:
    """Why no file can be made in the folder; tried, since permissions alone don't tell (read-only disks, quotas)."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".ducklm-doctor-"):
            return None
    except OSError as error:
        return error.strerror or str(error)
