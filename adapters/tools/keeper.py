"""The process between a worker and a shell command, which sees to it that nothing of the command is left behind.

Run as a script (``python -I -S keeper.py``), so it imports the standard library only and has one thread. It is the
*subreaper* of everything the command starts: what double-forks or calls ``setsid`` becomes its child and not a stray
of the system. When no child is left, nothing of the command is left.

stdin        one byte from the worker ends the command: ``t`` SIGTERM with 0.8 s of grace, ``c`` with 0.3 s,
             ``k`` none. End of file, when the worker is killed, means none as well.
stdout       the command's output and errors. It stays open until everything has ended.
status pipe  at the end ``<exit code or -signal> <processes left behind and killed> <reason>``, the reason being one of
             ``ended``, ``stopped``, ``processes``.
"""

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys
import time

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38

_GRACE = {b"t": 0.8, b"c": 0.3}
_FINISHING = 0.2
"""Seconds for what the shell does not wait for but which is about to end, like ``> >(tee log)``."""
_GIVE_UP = 5.0
"""Seconds after which a process that SIGKILL does not end (stuck in the kernel) is left to its fate."""
_TICK = 0.1

_libc = ctypes.CDLL(None, use_errno=True)


def main(status_pipe: int, max_processes: int, command: str) -> None:
    """Runs ``command`` with bash and reports on ``status_pipe``."""
    os.set_inheritable(status_pipe, False)
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)  # only the worker ends this process
    woken = _wake_on_child()
    shell = os.fork()
    if shell == 0:
        _become_shell(command, max_processes)
    report = Keeper(shell, woken, max_processes).keep()
    with contextlib.suppress(BrokenPipeError):
        os.write(status_pipe, report.encode())


def _wake_on_child() -> int:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reader


def _become_shell(command: str, max_processes: int) -> None:
    """In the child: a session of its own, no input, no new privileges, killed when the keeper is."""
    try:
        keeper = os.getppid()
        os.setsid()
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != keeper:
            os._exit(137)
        _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        for number in range(1, signal.NSIG):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _limit_processes(max_processes)
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")  # when memory runs out, this goes before the database
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(1, 2)
        os.execvp("bash", ["bash", "-c", command])
    except BaseException as error:
        os.write(1, f"bash could not be started: {error}\n".encode())
    finally:
        os._exit(126)


def _limit_processes(more: int) -> None:
    """The kernel's limit counts all processes of the user, so it is set above what the machine runs. Root has none."""
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    soft = _tasks() + more
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))


def _tasks() -> int:
    """How many processes and threads the machine has."""
    with open("/proc/loadavg") as file:
        return int(file.read().split()[3].split("/")[1])


class Keeper:
    """Waits for the shell and ends what belongs to it."""

    def __init__(self, shell: int, woken: int, max_processes: int) -> None:
        self._shell = shell
        self._woken = woken
        self._max = max_processes
        self._before = _tasks()
        self._exit: int | None = None
        self._childless = False

    def keep(self) -> str:
        """Returns the report when nothing is left."""
        reason, left = "ended", 0
        while self._exit is None:
            ready, _, _ = select.select([0, self._woken], [], [], _TICK)
            if self._woken in ready:
                os.read(self._woken, 4096)
            self._reap()
            if 0 in ready:
                reason = "stopped"
                self._terminate(_GRACE.get(os.read(0, 1), 0.0))
                break
            if self._too_many():
                reason = "processes"
                break
        if reason == "ended":
            self._wait(_FINISHING)
            left = len(self._descendants())
        self._kill()
        return f"{-signal.SIGKILL if self._exit is None else self._exit} {left} {reason}"

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self._shell:
                    self._exit = os.waitstatus_to_exitcode(status)
        self._childless = True

    def _wait(self, seconds: float) -> None:
        """Until nothing is left or the time is over."""
        end = time.monotonic() + seconds
        self._reap()
        while not self._childless and time.monotonic() < end:
            time.sleep(0.005)
            self._reap()

    def _terminate(self, grace: float) -> None:
        if grace:
            for pid in self._descendants():
                _signal(pid, signal.SIGTERM)
                _signal(pid, signal.SIGCONT)  # a stopped process would not notice
            self._wait(grace)

    def _kill(self) -> None:
        """SIGKILL, again and again: what forks faster than it is found is caught by its process group."""
        end = time.monotonic() + _GIVE_UP
        self._reap()
        while not self._childless and time.monotonic() < end:
            for pid, group in self._descendants().items():
                if group != os.getpgrp():
                    with contextlib.suppress(OSError):
                        os.killpg(group, signal.SIGKILL)
                _signal(pid, signal.SIGKILL)
            time.sleep(0.002)
            self._reap()

    def _too_many(self) -> bool:
        """Asked often, so the whole list is looked at only when the machine has many more processes than before."""
        return _tasks() - self._before > self._max and len(self._descendants()) > self._max

    def _descendants(self) -> dict[int, int]:
        """Process ids with their process groups, of all living children and children's children."""
        children: dict[int, list[tuple[int, int]]] = {}
        for name in os.listdir("/proc"):
            if name.isdigit() and (found := _parent_and_group(name)):
                children.setdefault(found[0], []).append((int(name), found[1]))
        result: dict[int, int] = {}
        waiting = [os.getpid()]
        while waiting:
            for pid, group in children.get(waiting.pop(), ()):
                result[pid] = group
                waiting.append(pid)
        return result


def _parent_and_group(pid: str) -> tuple[int, int] | None:
    """From ``/proc/<pid>/stat``; the name in it may hold anything, so what counts is after its last bracket."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, parent, group = file.read().rsplit(b")", 1)[1].split()[:3]
    except (OSError, IndexError, ValueError):
        return None
    return None if state in (b"Z", b"X") else (int(parent), int(group))


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, number)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
