"""``file_write``: a whole new content, in one step, or nothing."""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from adapters.tools.beneath import open_beneath
from adapters.tools.guard import check_name
from adapters.tools.refusals import FULL, Unsuitable, explained
from adapters.tools.workspace import Workspace, check_regular
from domain.errors import ToolError, ToolRefused
from domain.text import folded, shown
from domain.tools import FileWrite, ToolResult

_CHUNK = 1024 * 1024
_STARTUP = frozenset(
    [
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".profile",
        ".zshrc",
        ".zshenv",
        ".zprofile",
        ".zlogin",
        ".inputrc",
        ".gitconfig",
        ".xprofile",
        ".xinitrc",
        ".xsessionrc",
        ".pythonrc",
        ".pdbrc",
        ".gdbinit",
        ".vimrc",
        ".exrc",
        ".lesskey",
    ]
)


def check_writing(workspace: Workspace, path: str) -> None:
    """Raises ``ToolRefused`` when ``path`` may not be written, as far as names and existing folders can say."""
    parts = _target(workspace, path)
    for depth in range(len(parts), 0, -1):
        try:
            with workspace.entry("/".join(parts[:depth]), directory=depth < len(parts)) as (handle, _):
                real = workspace.path_of(handle).split("/") + list(parts[depth:])
                check_name(real, directory=False)
                _check_git(real, path)
                return
        except Unsuitable:
            continue  # not there yet: the folder above decides


def is_startup_file(workspace: Workspace, path: str) -> bool:
    """Whether other programs run or obey this file by themselves. Commands have the workspace as their home."""
    parts = [folded(part) for part in workspace.relative(path)]
    with suppress(ToolError), workspace.folder("/".join(workspace.relative(path)[:-1])) as (folder, _):
        parts = [*filter(None, workspace.path_of(folder).split("/")), parts[-1]]
    return parts[-1] in _STARTUP or parts[:2] in ([".config", "git"], [".config", "autostart"])


def file_write(workspace: Workspace, args: FileWrite, call_id: str) -> ToolResult:
    """Creates or replaces a file. Folders are made, the mode is kept, the old file stays whole until the new one is on
    the disk. An equal content is not written again, so that a repeated call does no harm.

    ``data``: ``sha256_before`` (empty for a new file), ``sha256_after``, ``created``, ``unchanged``, ``bytes``.
    """
    try:
        content = args.content.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolError(f"the content is no valid text (character {error.start}); nothing was written") from None
    parts = _target(workspace, args.path)
    after = hashlib.sha256(content).hexdigest()
    try:
        with _parent(workspace, parts, args.path) as folder:
            before, status = _existing(folder, parts[-1], args.path)
            if before != after:
                _replace(folder, parts[-1], content, status, call_id)
    except OSError as error:
        if error.errno in FULL:
            raise ToolError(
                f"the disk is full: {shown(args.path)} was not written; what was there is intact"
            ) from error
        raise explained(error, args.path) from error
    verb = "unchanged" if before == after else "replaced" if before else "created"
    data = {
        "sha256_before": before,
        "sha256_after": after,
        "created": verb == "created",
        "unchanged": verb == "unchanged",
        "bytes": len(content),
    }
    return ToolResult(True, f"{verb}: {shown('/'.join(parts))}, {len(content)} bytes", size=len(content), data=data)


def _target(workspace: Workspace, path: str) -> tuple[str, ...]:
    parts = workspace.relative(path)
    if not parts or path.endswith("/"):
        raise Unsuitable(f"{shown(path) or 'an empty path'} names a folder; name a file in it")
    if any(not c.isprintable() for c in "".join(parts)):
        raise ToolRefused(f"the name {shown(path)} has invisible or control characters")
    check_name(parts, directory=False)
    _check_git(parts, path)
    return parts


def _check_git(parts: Sequence[str], path: str) -> None:
    if any(folded(part) in (".git", "git~1") for part in parts):
        raise ToolRefused(f"{shown(path)} belongs to git; only git itself writes there")


@contextmanager
def _parent(workspace: Workspace, parts: tuple[str, ...], path: str) -> Iterator[int]:
    """A handle of the folder that will hold the file; missing folders are made on the way."""
    for depth in range(1, len(parts)):
        try:
            with workspace.folder("/".join(parts[:depth])):
                continue
        except Unsuitable as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
        with workspace.folder("/".join(parts[: depth - 1])) as (above, _):
            _check_git(workspace.path_of(above).split("/"), path)
            with suppress(FileExistsError):
                os.mkdir(parts[depth - 1], dir_fd=above)
            os.fsync(above)
    with workspace.folder("/".join(parts[:-1])) as (folder, _):
        real = [*workspace.path_of(folder).split("/"), parts[-1]]
        check_name(real, directory=False)
        _check_git(real, path)
        yield folder


def _existing(folder: int, name: str, path: str) -> tuple[str, os.stat_result | None]:
    """SHA-256 and status of the file to be replaced; ``("", None)`` when there is none."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return "", None
    if stat.S_ISLNK(status.st_mode):
        raise ToolRefused(f"{shown(path)} is a link; write to the file it stands for")
    if stat.S_ISDIR(status.st_mode):
        raise Unsuitable(f"{shown(path)} is a folder")
    check_regular(status, path)
    if status.st_nlink > 1:
        raise ToolRefused(f"{shown(path)} has {status.st_nlink} names (hard links), perhaps outside of the workspace")
    if not status.st_mode & 0o222 or not os.access(name, os.W_OK, dir_fd=folder):
        raise ToolRefused(f"{shown(path)} is write-protected")
    handle = open_beneath(folder, name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        if not os.path.samestat(os.fstat(handle), status):
            raise _changed(name)
        return hashlib.file_digest(file, "sha256").hexdigest(), status


def _replace(folder: int, name: str, content: bytes, old: os.stat_result | None, call_id: str) -> None:
    # The name follows from the call, so that a retry after a crash clears what the crash left behind.
    temporary = f".ducklm-{hashlib.sha256(f'{call_id}/{name}'.encode()).hexdigest()[:16]}.tmp"
    with suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(temporary, flags, 0o600 if old else 0o666, dir_fd=folder)
    try:
        try:
            _fill(handle, content, old)
        finally:
            os.close(handle)
        if _signature(folder, name) != _of(old):
            raise _changed(name)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise
    os.fsync(folder)


def _fill(handle: int, content: bytes, old: os.stat_result | None) -> None:
    rest = memoryview(content)
    while rest:
        written = os.write(handle, rest[:_CHUNK])
        rest = rest[written:]
    if old is not None:
        if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
            with suppress(PermissionError):  # only root can keep a foreign owner
                os.fchown(handle, old.st_uid, old.st_gid)
        os.fchmod(handle, stat.S_IMODE(old.st_mode))
    os.fsync(handle)


Signature = tuple[int, int, int, int] | None


def _of(status: os.stat_result | None) -> Signature:
    return status and (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)


def _signature(folder: int, name: str) -> Signature:
    try:
        return _of(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return None


def _changed(name: str) -> OSError:
    return OSError(errno.ESTALE, "was changed by something else at the same time; nothing was written", name)
