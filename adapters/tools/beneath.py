"""Opening paths strictly below a directory handle, so that neither ``..``, links nor renames in between lead out.

Linux 5.6 and later resolve the whole path in the kernel (``openat2(2)`` with ``RESOLVE_BENEATH``): links are followed
as long as they stay below. Elsewhere, and where a container forbids the call, the path is walked one component at a
time and links are refused.
"""

import ctypes
import errno
import os
import stat

_SYS_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08
_RACES = 64
"""The kernel answers EAGAIN when something was renamed while ``..`` was resolved; it asks to be tried again."""


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_libc = ctypes.CDLL(None, use_errno=True)


def open_beneath(root: int, path: str, flags: int) -> int:
    """A new handle for ``path`` (relative; empty means ``root`` itself) that lies below the folder ``root``.

    Close-on-exec always. ``OSError``: EXDEV when it leads out, ELOOP for links not followed, and the usual ones.
    """
    if KERNEL_RESOLVES:
        return _openat2(root, path or ".", flags)
    return walk_beneath(root, path, flags)


def _openat2(root: int, path: str, flags: int) -> int:
    raw = os.fsencode(path)
    if b"\0" in raw:  # C would silently open what stands before it
        raise OSError(errno.EINVAL, "NUL in a path", path)
    how = _OpenHow(flags | os.O_CLOEXEC, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
    code = errno.EAGAIN
    for _ in range(_RACES):
        number = ctypes.c_long(_SYS_OPENAT2)
        handle = _libc.syscall(number, root, ctypes.c_char_p(raw), ctypes.byref(how), ctypes.c_size_t(24))
        if handle >= 0:
            return int(handle)
        code = ctypes.get_errno()
        if code not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(code, os.strerror(code), path)


def walk_beneath(root: int, path: str, flags: int) -> int:
    """The same without help from the kernel; refuses every link."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts or path.startswith("/"):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    if not parts:
        return os.open(".", flags | os.O_CLOEXEC, dir_fd=root)
    folder = os.dup(root)
    try:
        for part in parts[:-1]:
            above, folder = folder, _step(folder, part, os.O_PATH)
            os.close(above)
        return _step(folder, parts[-1], flags)
    finally:
        os.close(folder)


def _step(folder: int, name: str, flags: int) -> int:
    handle = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    # With O_PATH, O_NOFOLLOW opens the link itself instead of failing.
    if stat.S_ISLNK(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    return handle


def _kernel_resolves() -> bool:
    try:
        here = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.close(_openat2(here, ".", os.O_PATH))
    except OSError:
        return False
    finally:
        os.close(here)
    return True


KERNEL_RESOLVES = _kernel_resolves()
