"""``list_dir``: what is in a folder."""

import os
import stat
from itertools import islice

from adapters.tools.refusals import Unsuitable
from adapters.tools.secrets import secret_part
from adapters.tools.workspace import Workspace
from domain.errors import ToolError
from domain.text import shown
from domain.tools import ListDir, ToolResult

MAX_ENTRIES = 500
MAX_SCANNED = 100_000
"""A folder with more entries is sorted only as far as it was read."""


def list_dir(workspace: Workspace, args: ListDir) -> ToolResult:
    """One entry a line, folders first: ``name/``, ``name  1234 bytes``, ``name -> target``. Links are not followed."""
    with workspace.folder(args.path) as (handle, _):
        where = workspace.path_of(handle)
        with os.scandir(handle) as entries:
            scanned = sorted(islice(entries, MAX_SCANNED + 1), key=_order)
            lines = [_line(workspace, handle, where, entry) for entry in scanned[:MAX_ENTRIES]]
    more = len(scanned) - len(lines)
    if not scanned:
        lines = ["[empty folder]"]
    elif more:
        at_least = "at least " if len(scanned) > MAX_SCANNED else ""
        lines.append(f"[{at_least}{more} more entries are not shown; search_files with a glob finds them]")
    output = "\n".join(lines)
    data = {"entries": len(scanned), "shown": len(scanned) - more}
    return ToolResult(True, output, size=len(output.encode("utf-8", "replace")), truncated=bool(more), data=data)


def _order(entry: os.DirEntry[str]) -> tuple[bool, str]:
    return not entry.is_dir(follow_symlinks=False), entry.name


def _line(workspace: Workspace, folder: int, where: str, entry: os.DirEntry[str]) -> str:
    name = shown(entry.name)
    try:
        status = os.stat(entry.name, dir_fd=folder, follow_symlinks=False)
        target = os.readlink(entry.name, dir_fd=folder) if stat.S_ISLNK(status.st_mode) else ""
    except OSError:
        return f"{name}  [vanished or not readable]"
    is_folder = stat.S_ISDIR(status.st_mode)
    path = f"{where}/{entry.name}".strip("/")
    if target:
        return f"{name} -> {shown(target)}  [link{_link_note(workspace, path)}]"
    mark = "  [out of reach]" if secret_part(path.split("/"), directory=is_folder) else ""
    if is_folder:
        return f"{name}/{mark}"
    if not stat.S_ISREG(status.st_mode):
        return f"{name}  [no file: pipe, socket or device]"
    return f"{name}  {status.st_size} bytes{mark}"


def _link_note(workspace: Workspace, path: str) -> str:
    try:
        with workspace.entry(path):
            return ""
    except Unsuitable:
        return ", leads nowhere"
    except ToolError:
        return ", out of reach"
