"""shell_exec with real processes: output, limits, and nothing left behind whatever happens.

Each command carries a marker in the name or arguments of its processes, by which the test finds survivors. Waiting is by
condition; the seconds are guards against hanging, not measurements.
"""

import asyncio
import os
import resource
import signal
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.tools.gateway import Gateway
from adapters.tools.shell import ShellLimits
from domain.errors import ToolError, ToolRefused
from domain.tools import ToolInvocation, ToolResult

GUARD = 60.0


class Shell:
    """Runs commands in a workspace. ``mark`` stands in the command line of what should not survive."""

    def __init__(self, base: Path, limits: ShellLimits | None = None) -> None:
        self.base = base
        self.ws = base / "рабочая папка"
        self.ws.mkdir(exist_ok=True)
        self.mark = f"mark-{uuid.uuid4().hex}"
        self.call_id = uuid.uuid4().hex
        self.heard: list[str] = []
        self._gateway = Gateway(base / "home", base / "home/workspace", person=base / "person", limits=limits)

    async def __call__(self, command: str, **more: Any) -> ToolResult:
        call = ToolInvocation("t", self.call_id, "shell_exec", {"command": command, **more}, str(self.ws))
        return await asyncio.wait_for(self._gateway.run(call, self.heard.append), GUARD)

    def sleeper(self) -> str:
        """A command that sleeps for an hour under the marker's name."""
        return f"bash -c 'exec -a {self.mark} sleep 3600'"

    def sleeping(self) -> list[int]:
        """The processes of :meth:`sleeper`, without the shells whose command line speaks of them."""
        return self.alive(beginning=True)

    def alive(self, *, beginning: bool = False) -> list[int]:
        """Every process whose command line has the marker."""
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    line = Path(f"/proc/{name}/cmdline").read_bytes()
                    if line.startswith(self.mark.encode()) if beginning else self.mark.encode() in line:
                        found.append(int(name))
                except OSError:
                    continue
        return found


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


async def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + GUARD
    while not condition():
        assert time.monotonic() < end, "it never happened"
        await asyncio.sleep(0.01)


async def test_output_errors_and_exit_code_in_order(shell: Shell) -> None:
    result = await shell("echo один; echo two >&2; echo три; exit 3")
    assert (result.ok, result.exit_code, result.output) == (False, 3, "один\ntwo\nтри\n")
    assert result.size == len(result.output.encode())
    assert not result.data["timed_out"]
    assert "".join(shell.heard) == result.output
    result = await shell("true")
    assert (result.ok, result.exit_code, result.output) == (True, 0, "")
    assert (await shell("kill -SEGV $$")).exit_code == 128 + signal.SIGSEGV
    assert (await shell("no-such-program-here")).exit_code == 127
    assert (await shell("if then")).exit_code == 2


async def test_the_environment_holds_nothing_of_ours(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUCKLM_TOKEN", "canary-token")
    monkeypatch.setenv("BASH_ENV", str(shell.base / "evil"))
    monkeypatch.setenv("LD_PRELOAD_X", "canary")
    monkeypatch.setenv("PATH", f"relative::{shell.ws}/bin:{os.environ['PATH']}")
    (shell.base / "evil").write_text("echo sourced")
    result = await shell("env; pwd; echo; readlink /proc/self/fd/0; ls /proc/self/fd; cat")
    assert "canary" not in result.output
    assert "sourced" not in result.output
    lines = result.output.splitlines()
    names = {line.split("=")[0] for line in lines[: lines.index(str(shell.ws))]}
    assert names == {"PATH", "HOME", "LANG", "TERM", "DUCKLM_CALL_ID", "PWD", "SHLVL", "_"}
    path = next(line for line in lines if line.startswith("PATH="))
    assert "relative" not in path
    assert str(shell.ws) not in path
    assert f"{sys.prefix}/bin" not in path.split("=")[1].split(":") or sys.prefix == sys.base_prefix
    assert lines[lines.index("") + 1 :] == ["/dev/null", "0", "1", "2", "3"]  # 3 is the folder that ls reads


async def test_the_folder_is_the_one_that_was_opened(shell: Shell) -> None:
    """The workspace is exchanged for a link while the command waits."""
    running = asyncio.ensure_future(shell("pwd -P; touch here", wait=1))
    await asyncio.sleep(0.1)
    shell.ws.rename(shell.base / "moved")
    (shell.base / "outside").mkdir()
    shell.ws.symlink_to(shell.base / "outside")
    await running
    assert os.listdir(shell.base / "outside") == []
    assert os.listdir(shell.base / "moved") == ["here"]


async def test_output_comes_while_it_runs_and_characters_stay_whole(shell: Shell) -> None:
    go = shell.ws / "go"
    running = asyncio.ensure_future(shell(r"printf 'при\xd0'; until [ -e go ]; do sleep 0.01; done; printf '\xb2ет'"))
    await until(lambda: "при" in "".join(shell.heard))
    go.touch()
    assert (await running).output == "привет"
    assert "".join(shell.heard) == "привет"


async def test_binary_output(shell: Shell) -> None:
    result = await shell(r"printf 'a\0b\xff\xfec\033[31mred'; head -c 70000 /dev/urandom")
    assert result.output.startswith("a␀b��c\x1b[31mred")
    assert len(result.output.encode()) <= 64 * 1024
    assert result.size == 70000 + 14
    assert result.truncated


async def test_long_output_keeps_head_and_tail(shell: Shell) -> None:
    result = await shell("seq 1 200000")
    assert result.ok
    assert result.truncated
    assert result.size == len("".join(f"{n}\n" for n in range(1, 200001)))
    assert result.output.startswith("1\n2\n")
    assert result.output.endswith("199999\n200000\n")
    assert "bytes are left out here" in result.output
    assert len(result.output.encode()) <= 64 * 1024
    assert sum(map(len, shell.heard)) == result.size


async def test_endless_output_is_stopped_in_bounded_memory(shell: Shell) -> None:
    heard = 0

    def count(text: str) -> None:
        nonlocal heard
        heard += len(text)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    call = ToolInvocation("t", "c", "shell_exec", {"command": f"yes {shell.mark}"}, str(shell.ws))
    result = await asyncio.wait_for(shell._gateway.run(call, count), GUARD)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert not result.ok
    assert result.data["output_limit"]
    assert 100 * 1024 * 1024 < result.size < 101 * 1024 * 1024
    assert heard == result.size
    assert len(result.output.encode()) <= 64 * 1024
    assert "[killed: more than" in result.output
    assert grown_kib < 30 * 1024
    assert shell.alive() == []


BACKGROUND = {
    "plain": "{sleeper} & echo started",
    "setsid": "setsid {sleeper} & echo started",
    "disowned": "(nohup {sleeper} >/dev/null 2>&1 & disown); echo started",
    "double fork, closed output": "(setsid bash -c '(trap \"\" TERM HUP; exec -a {mark} sleep 3600) >&- 2>&- &'); echo started",
    "without our environment": "env -i setsid bash -c 'exec -a {mark} sleep 3600' & echo started",
}


@pytest.mark.parametrize("how", BACKGROUND)
async def test_what_is_left_running_is_killed_at_the_end(shell: Shell, how: str) -> None:
    command = BACKGROUND[how].format(sleeper=shell.sleeper(), mark=shell.mark)
    result = await shell(command)
    assert shell.alive() == []
    assert result.ok
    assert result.output.startswith("started\n")
    assert result.data["left_running"] >= 1
    assert "background processes" in result.output


async def test_what_is_about_to_finish_may_do_so(shell: Shell) -> None:
    result = await shell("echo text > >(sleep 0.05; cat > log)")
    assert result.data["left_running"] == 0
    assert (shell.ws / "log").read_text() == "text\n"


@pytest.mark.parametrize("how", BACKGROUND)
async def test_cancelling_kills_the_whole_tree(shell: Shell, how: str) -> None:
    command = BACKGROUND[how].format(sleeper=shell.sleeper(), mark=shell.mark)
    running = asyncio.ensure_future(shell(f"trap '' TERM; {command}; {shell.sleeper()}"))
    await until(lambda: len(shell.sleeping()) == 2 and "started" in "".join(shell.heard))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert shell.alive() == []


async def test_cancelling_at_any_moment_leaves_nothing(shell: Shell) -> None:
    for delay in range(12):
        running = asyncio.ensure_future(shell(shell.sleeper()))
        await asyncio.sleep(delay * 0.004)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await until(lambda: not shell.alive())
    descriptors = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await shell("true")
    assert len(os.listdir("/proc/self/fd")) <= descriptors


async def test_cancelling_while_waiting_starts_nothing(shell: Shell) -> None:
    running = asyncio.ensure_future(shell("touch ran", wait=600))
    await asyncio.sleep(0.05)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert os.listdir(shell.ws) == []


async def test_timeout(shell: Shell) -> None:
    result = await shell(f"trap 'echo goodbye; exit 7' TERM; echo hello; {shell.sleeper()} & wait", timeout=1)
    assert (result.ok, result.exit_code, result.data["timed_out"]) == (False, None, True)
    assert result.output == "hello\ngoodbye\n[timed out after 1 s; everything it had started was ended]"
    assert shell.alive() == []


async def test_timeout_of_what_ignores_being_asked(shell: Shell) -> None:
    result = await shell(f"trap '' TERM HUP INT; setsid {shell.sleeper()} & {shell.sleeper()}", timeout=1)
    assert result.data["timed_out"]
    assert shell.alive() == []


async def test_a_stopped_process_is_ended_too(shell: Shell) -> None:
    result = await shell(f"{shell.sleeper()} & kill -STOP $!; kill -STOP $$", timeout=1)
    assert result.data["timed_out"]
    assert shell.alive() == []


async def test_output_closed_early_is_not_the_end(shell: Shell) -> None:
    result = await shell("exec >&- 2>&-; sleep 0.3; exit 4")
    assert result.exit_code == 4


async def test_too_many_processes(tmp_path: Path) -> None:
    shell = Shell(tmp_path, ShellLimits(processes=40))
    result = await shell(f"for i in $(seq 400); do {shell.sleeper()} & done; wait")
    assert not result.ok
    assert result.data["process_limit"]
    assert "more than 40 processes" in result.output
    assert shell.alive() == []


async def test_the_command_kills_its_keeper(shell: Shell) -> None:
    result = await shell(f"setsid {shell.sleeper()} & {shell.sleeper()} & kill -9 $PPID; sleep 3600")
    assert not result.ok
    assert "watched over" in result.output
    await until(lambda: not shell.alive())


async def test_the_command_can_not_stop_its_keeper_by_asking(shell: Shell) -> None:
    result = await shell("kill -TERM $PPID; kill -INT $PPID; kill 0 2>/dev/null; echo never")
    assert result.exit_code == 128 + signal.SIGTERM
    assert result.output == ""


WORKER = """
import asyncio, sys
from pathlib import Path
from tests.integration.test_shell_exec import Shell
shell = Shell(Path(sys.argv[1]))
shell.mark = sys.argv[2]
asyncio.run(shell(f"trap '' TERM; setsid {shell.sleeper()} & {shell.sleeper()} & {shell.sleeper()}"))
"""


async def test_the_worker_is_killed(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    root = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": str(root)}
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WORKER, str(tmp_path), shell.mark, cwd=root, env=env
    )
    try:
        await until(lambda: len(shell.sleeping()) == 3)
    finally:
        worker.kill()
        await worker.wait()
    await until(lambda: not shell.alive())


async def test_an_output_that_nobody_wants_kills_the_command(shell: Shell) -> None:
    def broken(text: str) -> None:
        raise RuntimeError("nobody listens")

    call = ToolInvocation("t", "c", "shell_exec", {"command": f"echo x; {shell.sleeper()}"}, str(shell.ws))
    with pytest.raises(RuntimeError, match="nobody listens"):
        await asyncio.wait_for(shell._gateway.run(call, broken), GUARD)
    assert shell.alive() == []


async def test_commands_side_by_side(shell: Shell) -> None:
    """They need each other to end, so they only end when they really run at the same time."""
    count = 12
    meet = "touch {0}; until [ $(ls | wc -l) -ge {1} ]; do sleep 0.02; done; echo {0}"
    results = await asyncio.gather(*(shell(meet.format(n, count)) for n in range(count)))
    assert [result.output for result in results] == [f"{n}\n" for n in range(count)]


async def test_wait_comes_first(shell: Shell) -> None:
    running = asyncio.ensure_future(shell("cat late", wait=1))
    await asyncio.sleep(0.05)
    (shell.ws / "late").write_text("there")
    assert (await running).output == "there"


async def test_what_can_not_run(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    for command in ("cat .env", "a\0b", "", "x" * 200_000):
        with pytest.raises(ToolRefused):
            await shell(command)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(ToolError, match="could not be started"):
        await shell("true")


async def test_no_new_privileges(shell: Shell) -> None:
    assert "NoNewPrivs:\t1" in (await shell("cat /proc/self/status")).output
