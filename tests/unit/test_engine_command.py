"""How engines are called, what their deaths are made of, and when they are started again."""

import json
import os
import sys
from pathlib import Path

import pytest

from adapters.engine.command import llama_server_launch, server_flags, xllamacpp_launch
from adapters.engine.diagnosis import diagnose, log_tail
from adapters.engine.discovery import describe, engine_installed
from adapters.engine.managed import backoff
from adapters.engine.model_file import ChosenModel
from adapters.engine.settings import Engine, EngineSettings
from adapters.engine.start import start_engine
from domain.errors import SetupError

NEW_BUILD = frozenset(
    [
        "--model",
        "--hf-repo",
        "--alias",
        "--host",
        "--port",
        "--cors-origins",
        "--slot-save-path",
        "--ctx-size",
        "--parallel",
        "--no-kv-unified",
        "--jinja",
        "--metrics",
        "--no-ui",
        "--threads",
        "--ctx-checkpoints",
        "--cache-ram",
    ]
)
OLD_BUILD = NEW_BUILD - {"--cors-origins", "--no-ui", "--no-kv-unified", "--ctx-checkpoints"} | {"--no-webui"}
MODEL = ChosenModel("m.gguf", 4096, Path("/models/m.gguf"))


def fake_program(folder: Path, help_text: str, code: int = 0) -> Path:
    """A program that says something and ends."""
    path = folder / "llama-server"
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{help_text}\nEND\nexit {code}\n")
    path.chmod(0o755)
    return path


def test_llama_server_is_closed_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LLAMA_ARG_TOOLS", "LLAMA_ARG_AGENT", "LLAMA_ARG_CORS_ORIGINS", "DUCKLM_TOKEN"):
        monkeypatch.setenv(name, "all")
    monkeypatch.setenv("LLAMA_ARG_N_GPU_LAYERS", "7")
    settings = EngineSettings(home=tmp_path, slots=3, cache_ram=100, extra_args=("--swa-full",))
    launch = llama_server_launch(Path("/bin/llama-server"), NEW_BUILD, settings, MODEL, 1234, "secret")
    line = " ".join(launch.command)
    assert "--host 127.0.0.1 --port 1234 --cors-origins http://127.0.0.1:1234" in line
    assert f"--slot-save-path {tmp_path / 'slots'}" in line
    assert "--ctx-size 12288 --parallel 3" in line
    assert line.endswith("--cache-ram 100 --swa-full")
    assert "secret" not in line
    assert launch.env["LLAMA_API_KEY"] == "secret"
    assert launch.env["LLAMA_ARG_N_GPU_LAYERS"] == "7"
    assert not {"LLAMA_ARG_TOOLS", "LLAMA_ARG_AGENT", "LLAMA_ARG_CORS_ORIGINS", "DUCKLM_TOKEN"} & set(launch.env)
    assert launch.command[:2] == (sys.executable, "-P")  # a folder named adapters in the workspace is not run


def test_older_builds_get_what_they_know(tmp_path: Path) -> None:
    settings = EngineSettings(home=tmp_path, ctx_checkpoints=4)
    line = " ".join(llama_server_launch(Path("/x"), OLD_BUILD, settings, MODEL, 1, "k").command)
    assert "--no-webui" in line
    assert "--cors-origins" not in line
    assert "--ctx-checkpoints" not in line


def test_names_are_fetched_by_llama_server_only(tmp_path: Path) -> None:
    named = ChosenModel("o/r:q", 4096, hf_name="o/r:q")
    settings = EngineSettings(home=tmp_path)
    assert "--hf-repo o/r:q" in " ".join(llama_server_launch(Path("/x"), NEW_BUILD, settings, named, 1, "k").command)
    with pytest.raises(SetupError, match="cannot download"):
        xllamacpp_launch(settings, named, 1, "k")


def test_xllamacpp_is_told_by_standard_input(tmp_path: Path) -> None:
    extra = ("--swa-full", "--cache-reuse", "256")
    launch = xllamacpp_launch(EngineSettings(home=tmp_path, extra_args=extra, cache_ram=5), MODEL, 1234, "secret")
    said = json.loads(launch.stdin)
    assert "secret" not in " ".join(launch.command)
    assert "secret" not in launch.env.values()
    assert (said["api_key"], said["context_tokens"], said["parent"]) == ("secret", 8192, os.getpid())
    assert said["params"] == {"swa_full": True, "n_cache_reuse": 256, "cache_ram_mib": 5}


@pytest.mark.parametrize("extra", [("--tools", "all"), ("--cache-reuse",), ("--cache-reuse", "x")])
def test_xllamacpp_flags_that_do_not_fit(tmp_path: Path, extra: tuple[str, ...]) -> None:
    with pytest.raises(SetupError, match=extra[0]):
        xllamacpp_launch(EngineSettings(home=tmp_path, extra_args=extra), MODEL, 1, "k")


async def test_flags_are_read_from_help(tmp_path: Path) -> None:
    program = fake_program(tmp_path, "-c, --ctx-size N   context\n--port PORT\n-np, --parallel N")
    assert await server_flags(program) == {"--ctx-size", "--port", "--parallel"}


async def test_a_program_that_is_no_llama_server(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"shows no llama-server \(exit code 127\).*libcudart"):
        await server_flags(fake_program(tmp_path, "error while loading libcudart.so", 127))
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x00")
    broken.chmod(0o755)
    with pytest.raises(SetupError, match="does not run"):
        await server_flags(broken)


def test_own_build_comes_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "path").mkdir()
    (tmp_path / "llama" / "bin").mkdir(parents=True)
    on_path = fake_program(tmp_path / "path", "")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    settings = EngineSettings(home=tmp_path, llama_dir=tmp_path / "llama")
    assert describe(settings).llama_server == str(on_path)
    own = fake_program(tmp_path / "llama" / "bin", "")
    assert describe(settings).llama_server == str(own)


async def test_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("adapters.engine.start.xllamacpp_version", lambda: "")
    monkeypatch.setattr("adapters.engine.discovery.xllamacpp_version", lambda: "")
    settings = EngineSettings(home=tmp_path)
    assert not engine_installed(settings)
    with pytest.raises(SetupError, match="DUCKLM_LLAMA_URL"):
        await start_engine(settings, lambda text, share: None)


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://host", "http://"])
async def test_bad_address(tmp_path: Path, url: str) -> None:
    with pytest.raises(SetupError, match="no address of a model server"):
        await start_engine(EngineSettings(home=tmp_path, llama_url=url), lambda text, share: None)


@pytest.mark.parametrize(
    ("code", "line", "advice"),
    [
        (1, "ggml_backend_alloc: failed to allocate buffer of size 9", "not enough memory"),
        (1, "E srv start: couldn't bind HTTP server socket", "port was taken"),
        (1, "error: invalid argument: --nonsense", "does not know one of its flags"),
        (1, "E srv load_model: failed to load model, 'x.gguf'", "cannot load the model"),
        (-9, "", "want of memory"),
        (137, "", "want of memory"),
        (132, "", "another processor"),
    ],
)
def test_deaths_are_explained(code: int, line: str, advice: str) -> None:
    text = diagnose(Engine("llama-server", "http://h", "x.gguf"), code, [line], Path("engine.log"))
    assert advice in text
    assert line in text
    assert "engine.log" in text


def test_a_name_that_cannot_be_fetched() -> None:
    engine = Engine("llama-server", "http://h", "owner/repo:Q4")
    text = diagnose(engine, 1, ["E cmn: failed to load model ''"], Path("l"))
    assert "neither downloaded nor to be had" in text


def test_only_the_last_start_is_quoted(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_text("old\n")
    start = log.stat().st_size
    with log.open("a") as more:
        more.write("\nnew one\nnew two\n")
    assert log_tail(log, start) == ["new one", "new two"]
    assert log_tail(log, 10**9) == ["old", "new one", "new two"]  # it was cut since
    assert log_tail(tmp_path / "none") == []


def test_backoff_grows_to_a_minute() -> None:
    assert [backoff(n) for n in range(1, 9)] == [1, 2, 4, 8, 16, 32, 60, 60]
