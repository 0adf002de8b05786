"""One workspace, held by a directory handle: every access goes through it and is checked on what was really opened."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from adapters.tools.beneath import open_beneath
from adapters.tools.guard import Guard, check_name
from adapters.tools.refusals import Outside, SecretFile, Unsuitable, explained
from domain.errors import ToolError, ToolRefused
from domain.text import shown

_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_KERNEL_MOUNTS = ("/proc", "/sys")


class Workspace:
    """Use :func:`opened`. ``root`` is the handle, ``real`` the folder's path without links.

    Paths are given relative to it, or absolute when they lie in it; ``..`` is resolved in the text, before any link.
    """

    def __init__(self, root: int, given: str, guard: Guard) -> None:
        self.root = root
        self.given = os.path.normpath(given)
        self.guard = guard
        self.real = _path_of(root)
        guard.check_root(self.real)
        self._linked: dict[str, frozenset[tuple[int, int]]] = {}

    def relative(self, path: str) -> tuple[str, ...]:
        """The components of ``path`` below the workspace; none for the workspace itself. Raises ``ToolRefused``."""
        if "\0" in path:
            raise ToolRefused(f"a NUL in the path {shown(path)}")
        try:
            path.encode("utf-8")
        except UnicodeEncodeError:
            raise ToolRefused(f"the path {shown(path)} is no valid text") from None
        if path.startswith("/"):
            return self._below(path)
        if path.startswith("~"):
            raise ToolRefused(f"~ is not expanded in {shown(path)}; give paths relative to the workspace")
        return _collapsed(path)

    def _below(self, path: str) -> tuple[str, ...]:
        parts = _collapsed(path)
        for base in (self.given, self.real):
            above = _collapsed(base)
            if base.startswith("/") and parts[: len(above)] == above:
                return parts[len(above) :]
        raise Outside(f"{shown(path)} is outside of the workspace {shown(self.real)}; give paths relative to it")

    @contextmanager
    def entry(self, path: str, *, directory: bool = False) -> Iterator[tuple[int, os.stat_result]]:
        """A handle (``O_PATH``: nothing is read, no device wakes up) of what is at ``path``, and its status.

        Raises ``ToolRefused`` for what is out of reach, ``Unsuitable`` for what is not there.
        """
        parts = self.relative(path)
        if parts:
            check_name(parts, directory=directory)
        try:
            handle = open_beneath(self.root, "/".join(parts), os.O_PATH)
        except OSError as error:
            raise explained(error, path) from error
        try:
            status = os.fstat(handle)
            self._check_opened(handle, status, path)
            yield handle, status
        finally:
            os.close(handle)

    @contextmanager
    def file(self, path: str) -> Iterator[tuple[int, os.stat_result]]:
        """A handle for reading a regular file."""
        with self.entry(path) as (handle, status):
            if stat.S_ISDIR(status.st_mode):
                raise Unsuitable(f"{shown(path)} is a folder; use list_dir")
            check_regular(status, path)
            yield from _reopened(handle, os.O_RDONLY, path, status)

    @contextmanager
    def folder(self, path: str) -> Iterator[tuple[int, os.stat_result]]:
        """A handle for listing a folder and for opening what is in it."""
        with self.entry(path, directory=True) as (handle, status):
            if not stat.S_ISDIR(status.st_mode):
                raise Unsuitable(f"{shown(path)} is no folder; use file_read")
            yield from _reopened(handle, os.O_RDONLY | os.O_DIRECTORY, path, status)

    def path_of(self, handle: int) -> str:
        """Where an open object is now, relative to the workspace."""
        return _path_of(handle)[len(self.real) :].strip("/")

    def _check_opened(self, handle: int, status: os.stat_result, path: str) -> None:
        real = _path_of(handle)
        if status.st_dev in _kernel_devices():
            raise Outside(f"{shown(path)} belongs to the kernel")
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
            raise Unsuitable(f"{shown(path)} vanished")
        self.guard.check(real, self.real, directory=stat.S_ISDIR(status.st_mode))
        if stat.S_ISREG(status.st_mode) and status.st_nlink > 1 and self._is_linked_secret(real, status):
            raise SecretFile(f"{shown(path)} is another name of a file that holds credentials; it is out of reach")

    def _is_linked_secret(self, real: str, status: os.stat_result) -> bool:
        folder = os.path.dirname(real)
        if folder not in self._linked:
            self._linked[folder] = self.guard.linked_secrets(self.real, folder)
        return (status.st_dev, status.st_ino) in self._linked[folder]


@contextmanager
def opened(path: str, guard: Guard) -> Iterator[Workspace]:
    """The workspace at ``path`` for the time of one call. Raises ``ToolError`` when it can't be opened."""
    if not path.startswith("/") or "\0" in path:
        raise ToolError(f"the workspace {shown(path)} is no absolute path")
    try:
        root = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except (OSError, UnicodeEncodeError) as error:
        raise ToolError(f"the workspace {shown(path)} can't be opened: {error}") from error
    try:
        yield Workspace(root, path, guard)
    finally:
        os.close(root)


def check_regular(status: os.stat_result, path: str) -> None:
    """Raises ``ToolRefused`` for pipes, sockets and devices: they could block for ever or do things when opened."""
    for is_kind, words in _KINDS:
        if is_kind(status.st_mode):
            raise ToolRefused(f"{shown(path)} is {words}, no file")


def _reopened(handle: int, flags: int, path: str, status: os.stat_result) -> Iterator[tuple[int, os.stat_result]]:
    """Turns an ``O_PATH`` handle into a usable one of the very same object."""
    try:
        usable = os.open(f"/proc/self/fd/{handle}", flags | os.O_CLOEXEC)
    except OSError as error:
        raise explained(error, path) from error
    try:
        yield usable, status
    finally:
        os.close(usable)


def _path_of(handle: int) -> str:
    return os.readlink(f"/proc/self/fd/{handle}")


@cache
def _kernel_devices() -> frozenset[int]:
    """Device numbers of the file systems in which reading a file can mean anything."""
    return frozenset(os.stat(mount).st_dev for mount in _KERNEL_MOUNTS if os.path.isdir(mount))


def _collapsed(path: str) -> tuple[str, ...]:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not parts and not path.startswith("/"):
                raise Outside(f"{shown(path)} leads out of the workspace")
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return tuple(parts)
