"""Child process that runs a llama-server program and ends with ours: arguments PARENT-PID PROGRAM ARGUMENTS…"""

import contextlib
import os
import signal
import subprocess
import sys

from adapters.engine.lifeline import die_with_parent, tie_to_parent


def main() -> int:
    """Runs the program to its end; exits with its code, or 128 + signal."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    # the group gets the signals: the server ends by them, and we wait to tell how it ended
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGINT, lambda *_: None)
    # before any thread is started, so that running code between fork and exec is safe
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
    tie_to_parent(parent, lambda: _end(server))
    code = server.wait()
    return code if code >= 0 else 128 - code


def _end(server: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(server.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
