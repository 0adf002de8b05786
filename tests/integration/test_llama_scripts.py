"""The scripts under llama/ as a person runs them; a stand-in for llama-server serves the scripted double."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles.scripted_llama import ScriptedLlamaThread

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "llama").glob("*.sh"))
FLAGS = (
    "--alias --host --port --ctx-size --parallel --no-kv-unified --jinja --metrics --slot-save-path --cors-origins "
    "--flash-attn --cache-ram --n-cpu-moe --n-gpu-layers --cache-type-k --spec-type"
)  # no checkpoints: an older build
SERVER = f"""#!{sys.executable}
import asyncio, json, os, sys
if "--help" in sys.argv:
    print("\\n".join(f"-x,    {{flag}} VALUE    text" for flag in {FLAGS!r}.split()))
    sys.exit()
sys.path.insert(0, {str(ROOT)!r})
from tests.doubles.scripted_llama import ScriptedLlama
if "--die" in sys.argv:
    sys.exit("E ggml_vulkan: OutOfDeviceMemory")
async def main():
    port = int(sys.argv[sys.argv.index("--port") + 1])
    print(json.dumps(sys.argv[1:]), os.environ.get("LLAMA_ARG_TOOLS"), flush=True)
    async with ScriptedLlama(port, model="double", api_key=os.environ.get("LLAMA_API_KEY", "")):
        await asyncio.Event().wait()
asyncio.run(main())
"""


class Shell:
    """Runs the scripts with settings of their own; ``env`` can be changed."""

    def __init__(self, folder: Path) -> None:
        program, model = folder / "llama-server", folder / "m.gguf"
        program.write_text(SERVER)
        program.chmod(0o755)
        model.write_bytes(b"GGUF")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LLAMA_STATE": str(folder / "state"),
            "LLAMA_SERVER": str(program),
            "LLAMA_MODEL": str(model),
            "LLAMA_PORT": str(self.port),
            "LLAMA_API_KEY": "key",
            "LLAMA_WAIT": "60",
        }
        self.log = folder / "state" / f"llama-server-{self.port}.log"

    def run(self, script: str, *args: str) -> "subprocess.CompletedProcess[str]":
        """One run; a server that it starts must not keep our pipes open."""
        command = ["bash", str(ROOT / "llama" / script), *args]
        return subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path)
    yield made
    made.run("start_main.sh", "stop")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_help_and_syntax(shell: Shell, script: Path) -> None:
    assert os.access(script, os.X_OK)
    assert "set -euo pipefail" in script.read_text()
    shown = shell.run(script.name, "--help")
    assert shown.returncode == 0
    assert shown.stdout.startswith("Usage:")
    if shutil.which("shellcheck"):
        checked = subprocess.run(["shellcheck", str(script)], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stdout


def test_start_status_restart_stop(shell: Shell) -> None:
    shell.env |= {"LLAMA_CTX": "1000", "LLAMA_SLOTS": "3", "LLAMA_CPU_MOE": "7", "LLAMA_ARG_TOOLS": "all"}
    started = shell.run("start_main.sh", "start", "--", "--cache-type-k", "q8_0")
    assert started.returncode == 0, started.stderr
    assert "ready: " in started.stdout
    assert "no --ctx-checkpoints, it goes without" in started.stderr
    line = shell.log.read_text()
    assert '"--ctx-size", "3000", "--parallel", "3"' in line
    assert '"--n-cpu-moe", "7", "--cache-type-k", "q8_0"' in line
    assert f'"--cors-origins", "http://127.0.0.1:{shell.port}"' in line
    assert "key" not in line
    assert line.strip().endswith("None")  # no tools of its own
    assert "runs already" in shell.run("start_main.sh", "start").stdout
    assert shell.run("start_main.sh", "status").returncode == 0
    assert shell.run("start_main.sh", "restart").returncode == 0
    assert "stopped" in shell.run("start_main.sh", "stop").stdout
    assert shell.run("start_main.sh", "status").returncode == 2
    assert "does not run" in shell.run("start_main.sh", "stop").stdout


def test_a_server_that_dies_is_explained(shell: Shell) -> None:
    ended = shell.run("start_main.sh", "start", "--", "--die")
    assert ended.returncode == 1
    assert "OutOfDeviceMemory" in ended.stderr
    assert "lower LLAMA_CTX" in ended.stderr


def test_a_pid_of_somebody_else_is_left_alone(shell: Shell) -> None:
    shell.log.parent.mkdir()
    shell.log.with_suffix(".pid").write_text(str(os.getpid()))
    assert "does not run" in shell.run("start_main.sh", "stop").stdout


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("LLAMA_MODEL", "", "set LLAMA_MODEL"),
        ("LLAMA_MODEL", "/no/such.gguf", "does not exist"),
        ("LLAMA_MODEL", __file__, "no GGUF file"),
        ("LLAMA_SLOTS", "two", "must be numbers"),
        ("LLAMA_SERVER", "/no/such/program", "is no program"),
    ],
)
def test_bad_settings(shell: Shell, setting: str, value: str, message: str) -> None:
    shell.env[setting] = value
    refused = shell.run("start_main.sh", "start")
    assert refused.returncode == 1
    assert message in refused.stderr


def test_taken_port(shell: Shell) -> None:
    with ScriptedLlamaThread(port=shell.port):
        refused = shell.run("start_main.sh", "start")
    assert refused.returncode == 1
    assert "set LLAMA_PORT" in refused.stderr


def test_healthcheck_tells_states_apart(shell: Shell) -> None:
    with ScriptedLlamaThread(api_key="key", loading=True) as llama:
        assert shell.run("healthcheck.sh", llama.url).returncode == 1
        llama.llama.app.loading = False
        ready = shell.run("healthcheck.sh", llama.url + "/v1/")
        assert ready.returncode == 0
        assert "2 slots of 16384 tokens" in ready.stdout
        shell.env["LLAMA_API_KEY"] = "wrong"
        assert shell.run("healthcheck.sh", llama.url).returncode == 3
        shell.env["LLAMA_QUIET"] = "1"
        assert shell.run("healthcheck.sh", llama.url).stdout == ""
        url = llama.url
    assert shell.run("healthcheck.sh", url).returncode == 2


def test_speculative_flags(shell: Shell) -> None:
    assert "set LLAMA_DRAFT_MODEL" in shell.run("start_speculative.sh", "draft").stderr
    assert shell.run("start_speculative.sh", "ngram").returncode == 0
    assert '"--spec-type", "ngram-mod"' in shell.log.read_text()


def test_build_says_what_is_missing(shell: Shell) -> None:
    tools = shell.log.parent.parent / "tools"
    tools.mkdir()
    for name in ("bash", "cat", "dirname"):
        (tools / name).symlink_to(shutil.which(name) or "")
    shell.env["PATH"] = str(tools)
    missing = shell.run("build_vulkan.sh", "--check")
    assert missing.returncode == 1
    assert "the program cmake (Debian: cmake)" in missing.stderr
    assert "glslc" in missing.stderr
