"""The engine for real: xllamacpp with the small model, its deaths, and those of its parents."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from adapters.engine.handle import EngineHandle
from adapters.engine.managed import ManagedEngine
from adapters.engine.model_file import choose_model
from adapters.engine.settings import EngineSettings
from adapters.engine.start import start_engine
from domain.errors import SetupError
from tests.doubles.scripted_llama import ScriptedLlama

PATIENCE_S = 120.0
PARENT = """
import asyncio, sys
from pathlib import Path
from adapters.engine.settings import EngineSettings
from adapters.engine.start import start_engine
async def main():
    settings = EngineSettings(home=Path(sys.argv[1]), model=sys.argv[2], context_tokens=512, threads=1, engine="xllamacpp")
    engine = await start_engine(settings, lambda text, share: None, wait=sys.argv[3] == "ready")
    while not engine.pid:
        await asyncio.sleep(0.01)
    print(engine.pid, flush=True)
    await asyncio.sleep(3600)
asyncio.run(main())
"""


def silent(text: str, share: float | None) -> None:
    """Reports to nobody."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small model's file, put together once."""
    path = choose_model(EngineSettings(home=tmp_path_factory.mktemp("model")), silent).path
    assert path is not None
    return path


@contextlib.asynccontextmanager
async def running(home: Path, **settings: Any) -> AsyncIterator[EngineHandle]:
    defaults = {"context_tokens": 512, "threads": 1, "engine": "xllamacpp"}
    engine = await start_engine(EngineSettings(home=home, **{**defaults, **settings}), silent)
    try:
        yield engine
    finally:
        await engine.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether it runs (a zombie does not)."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


@pytest.mark.llama
async def test_small_model_from_nothing(tmp_path: Path) -> None:
    told: list[tuple[str, float | None]] = []
    settings = EngineSettings(home=tmp_path, context_tokens=512, threads=1, engine="xllamacpp")
    engine = await start_engine(settings, lambda text, share: told.append((text, share)))
    try:
        assert engine.state.name == "ready"
        assert engine.info.smoke_test_model
        assert (engine.info.context_tokens, engine.info.slots) == (512, 2)
        assert ("putting the small model together", 1.0) in told
        assert told[-1] == ("engine ready", None)
        async with httpx.AsyncClient(base_url=engine.info.url) as http:
            body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
            assert (await http.post("/v1/chat/completions", json=body)).status_code == 401
            headers = {"Authorization": f"Bearer {engine.api_key}", "Origin": "http://elsewhere.example"}
            answer = await http.post("/v1/chat/completions", json=body, headers=headers)
            assert answer.status_code == 200
            assert answer.headers["access-control-allow-origin"] == engine.info.url
            saved = await http.post("/slots/0?action=save", json={"filename": "a.bin"}, headers=headers)
            assert saved.status_code == 200
        assert (tmp_path / "slots" / "a.bin").is_file()
        assert "serving at" in (tmp_path / "logs" / "engine.log").read_text()
        assert engine.api_key not in (tmp_path / "logs" / "engine.log").read_text()
    finally:
        await engine.stop()
        await engine.stop()
    assert told[-1] == ("engine stopped", None)
    assert isinstance(engine, ManagedEngine)
    assert not alive(engine.pid)


@pytest.mark.llama
async def test_dead_engine_comes_back_at_its_address(tmp_path: Path, model: Path) -> None:
    async with running(tmp_path, model=str(model)) as engine:
        assert isinstance(engine, ManagedEngine)
        assert not engine.info.smoke_test_model
        url, first = engine.info.url, engine.pid
        os.kill(first, signal.SIGKILL)
        await until(lambda: engine.state.name == "failed")
        assert "signal 9" in engine.state.detail
        assert "started again in 1 s" in engine.state.detail
        await until(lambda: engine.state.name == "ready")
        assert engine.info.url == url
        assert engine.pid != first
        async with httpx.AsyncClient() as http:
            assert (await http.get(url + "/health")).status_code == 200


@pytest.mark.llama
async def test_loading_is_seen(tmp_path: Path, model: Path) -> None:
    settings = EngineSettings(home=tmp_path, model=str(model), context_tokens=512, threads=1, engine="xllamacpp")
    told: list[str] = []
    engine = await start_engine(settings, lambda text, share: told.append(text), wait=False)
    try:
        await engine.wait_ready()
        assert [text.split(":")[0] for text in told] == ["engine starting", "engine loading", "engine ready"]
    finally:
        await engine.stop()


@pytest.mark.llama
async def test_ctrl_c_is_not_for_the_engine(tmp_path: Path, model: Path) -> None:
    async with running(tmp_path, model=str(model)) as engine:
        assert isinstance(engine, ManagedEngine)
        assert os.getpgid(engine.pid) != os.getpgid(0)
        os.kill(engine.pid, signal.SIGINT)
        async with httpx.AsyncClient() as http:
            assert (await http.get(engine.info.url + "/health")).status_code == 200
        assert engine.state.name == "ready"


@pytest.mark.llama
@pytest.mark.parametrize("stage", ["loading", "ready"])
async def test_no_engine_outlives_its_parent(tmp_path: Path, model: Path, stage: str) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path), str(model), stage]
    parent = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert parent.stdout is not None
        pid = int(await parent.stdout.readline())
        assert alive(pid)
    finally:
        parent.kill()
        await parent.wait()
    await until(lambda: not alive(pid))


@pytest.mark.llama
async def test_model_that_does_not_load(tmp_path: Path, model: Path) -> None:
    half = tmp_path / "half.gguf"
    await asyncio.to_thread(lambda: half.write_bytes(model.read_bytes()[:3_000_000]))
    with pytest.raises(SetupError, match="cannot load the model") as caught:
        async with running(tmp_path, model=str(half)):
            pass
    assert "engine.log" in str(caught.value)


async def test_taken_port(tmp_path: Path, model: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(SetupError, match="choose another port"):
            async with running(tmp_path, model=str(model), port=other.getsockname()[1]):
                pass


async def test_external_server_is_watched_not_owned(tmp_path: Path) -> None:
    async with ScriptedLlama(n_ctx=4096, model="/models/big.gguf", api_key="k", loading=True) as llama:
        async with running(tmp_path, llama_url=llama.url + "/v1/", llama_api_key="k") as engine:
            assert (engine.info.kind, engine.info.url) == ("external", llama.url)
            assert engine.state.name == "loading"
            llama.app.loading = False
            await until(lambda: engine.state.name == "ready")
            assert (engine.info.model, engine.info.context_tokens, engine.info.slots) == ("big.gguf", 4096, 2)
        assert llama.app.script.remaining() == 0
        async with httpx.AsyncClient() as http:
            assert (await http.get(llama.url + "/health")).status_code == 200


async def test_external_server_that_is_away_or_refuses(tmp_path: Path) -> None:
    async with ScriptedLlama(api_key="k") as llama:
        async with running(tmp_path, llama_url=llama.url, llama_api_key="wrong") as engine:
            assert engine.state.name == "failed"
            assert "API key" in engine.state.detail
        url = llama.url
    async with running(tmp_path, llama_url=url) as engine:
        assert engine.state.name == "failed"
        assert "DUCKLM_LLAMA_URL" in engine.state.detail


async def test_llama_server_program(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A llama-server on PATH, here a script around the scripted double, runs below our guard and ends with it."""
    root, ready_script = Path(__file__).parents[2], tmp_path / "script.json"
    ready_script.write_text('{"server": {"api_key": "unused"}}')
    program = tmp_path / "llama-server"
    program.write_text(
        f"""#!{sys.executable}
import os, sys
if "--help" in sys.argv:
    print("--model M --port P --host H --ctx-size N")
    sys.exit()
open({str(tmp_path / "pid")!r}, "w").write(str(os.getpid()))
sys.path.insert(0, {str(root)!r})
import asyncio
from tests.doubles.scripted_llama import ScriptedLlama
async def main():
    port = int(sys.argv[sys.argv.index("--port") + 1])
    async with ScriptedLlama(port, api_key=os.environ["LLAMA_API_KEY"]):
        await asyncio.Event().wait()
asyncio.run(main())
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    async with running(tmp_path, model=str(model), engine="") as engine:
        assert isinstance(engine, ManagedEngine)
        assert engine.info.kind == "llama-server"
        assert engine.info.build == "b0-scripted"
        server = int((tmp_path / "pid").read_text())
        assert server != engine.pid
        os.kill(engine.pid, signal.SIGKILL)  # the guard alone: the server must not stay behind
        await until(lambda: not alive(server))
        await until(lambda: engine.state.name == "ready")
        server = int((tmp_path / "pid").read_text())
    await until(lambda: not alive(server))
