"""Runs in child processes: makes sure that an engine never outlives the program that started it.

Two lines, because each has a hole: Linux kills us when the parent dies (also while the interpreter is busy loading a
model), and end of file on standard input, whose other end only the parent holds, tells it on every system.
"""

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Asks Linux to kill this process when the thread that started it ends. Elsewhere does nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def tie_to_parent(parent: int, on_end: Callable[[], None]) -> None:
    """``parent`` is the pid that started us; when it is gone already, or goes later, ``on_end`` runs and we exit."""
    die_with_parent()
    if os.getppid() != parent:  # it died before the line above
        on_end()
        os._exit(0)
    threading.Thread(target=_watch, args=(on_end,), daemon=True).start()


def _watch(on_end: Callable[[], None]) -> None:
    while os.read(0, 4096):
        pass
    on_end()
    os._exit(0)
