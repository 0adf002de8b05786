"""The program as processes: what a person starts on a command line, together and apart."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.doubles.scripted_llama import ScriptedLlamaThread, say, slow

TOKEN = "process-token"


@pytest.fixture
def llama() -> Iterator[ScriptedLlamaThread]:
    with ScriptedLlamaThread() as running:
        yield running


class Process:
    """``ducklm`` with arguments, its output in a file."""

    def __init__(self, home: Path, *args: str, **env: str) -> None:
        self.home = home
        home.mkdir(exist_ok=True)
        self.output = home / f"output-{time.monotonic_ns()}.txt"
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "api.cli.main", *args],
            env={**os.environ, "DUCKLM_HOME": str(home), "DUCKLM_TOKEN": TOKEN, "DUCKLM_PORT": "0", **env},
            stdout=self.output.open("ab"), stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip

    def says(self, words: str, seconds: float = 90) -> None:
        end = time.monotonic() + seconds
        while words not in self.output.read_text():
            assert self.popen.poll() is None, self.output.read_text()
            assert time.monotonic() < end, self.output.read_text()
            time.sleep(0.05)

    def client(self) -> httpx.Client:
        url = json.loads((self.home / "server.json").read_text())["url"]
        return httpx.Client(base_url=url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=60)

    def stop(self, sig: int = signal.SIGINT) -> int:
        if self.popen.poll() is None:
            os.killpg(self.popen.pid, sig)
        return self.popen.wait(30)


def test_up_with_nothing_installed_keeps_its_data_over_ctrl_c(tmp_path: Path, llama: ScriptedLlamaThread) -> None:
    llama.default("thinker", say("quack"))
    first = Process(tmp_path / "h", "up", DUCKLM_LLAMA_URL=llama.url)
    first.says("DuckLM ready at http://127.0.0.1:")
    assert f"/?token={TOKEN}" in first.output.read_text()
    with first.client() as client:
        answer = client.post("/v1/chat", json={"message": "hello"}).json()
        assert answer["response"] == "quack"
    second = Process(tmp_path / "h", "up", DUCKLM_LLAMA_URL=llama.url)
    assert second.popen.wait(30) == 9
    assert "already running" in second.output.read_text()
    assert first.stop() == 0
    assert "everything is kept" in first.output.read_text()
    third = Process(tmp_path / "h", "up", DUCKLM_LLAMA_URL=llama.url)
    try:
        third.says("DuckLM ready at")
        with third.client() as client:
            assert [t["task_id"] for t in client.get("/v1/tasks").json()["items"]] == [answer["task_id"]]
    finally:
        assert third.stop(signal.SIGTERM) == 0
    left = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, text=True, check=False).stdout
    assert left == ""


def test_a_port_in_use_is_said_before_anything_is_started(tmp_path: Path, llama: ScriptedLlamaThread) -> None:
    port = llama.url.rsplit(":", 1)[1]
    process = Process(tmp_path / "h", "up", DUCKLM_LLAMA_URL=llama.url, DUCKLM_PORT=port)
    assert process.popen.wait(30) == 9
    assert "choose another port" in process.output.read_text()
    assert not (tmp_path / "h" / "postgres").exists()


def test_a_home_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    process = Process(tmp_path / "h", "up", DUCKLM_HOME=str(tmp_path / "file" / "home"))
    assert process.popen.wait(30) == 9
    assert "DUCKLM_HOME" in process.output.read_text()


def test_server_and_workers_apart(tmp_path: Path, database_url: str, llama: ScriptedLlamaThread) -> None:
    """Deltas cross processes; a worker that is killed is replaced by the other, which finishes its task."""
    env = {"DUCKLM_DATABASE_URL": database_url, "DUCKLM_LLAMA_URL": llama.url}
    llama.push("thinker", slow(say("one two three four five six"), 0.1), *[slow(say("again " * 60), 0.2)] * 2)
    server = Process(tmp_path / "s", "serve", **env)
    workers: list[Process] = [Process(tmp_path / "w1", "worker", **env)]
    try:
        server.says("DuckLM ready at")
        workers[0].says("is ready")
        with server.client() as client:
            pieces = _streamed(client, "hi")
            assert "".join(pieces) == "one two three four five six"
            assert len(pieces) > 2
            with pytest.raises(httpx.ReadTimeout):
                client.post("/v1/chat", json={"message": "long"}, timeout=2)
            task_id = client.get("/v1/tasks").json()["items"][0]["task_id"]
            workers.append(Process(tmp_path / "w2", "worker", **env))
            workers[1].says("is ready")
            os.killpg(workers[0].popen.pid, signal.SIGKILL)
            end = time.monotonic() + 90
            while client.get(f"/v1/tasks/{task_id}").json()["status"] != "completed":
                assert time.monotonic() < end
                time.sleep(0.2)
            events = client.get(f"/v1/tasks/{task_id}/events").json()["items"]
            attempts = [e["data"]["attempt"] for e in events if e["type"] == "task.model_requested.v1"]
            assert attempts == [1, 1, 2]
    finally:
        server.stop()
        for worker in workers:
            worker.stop(signal.SIGTERM)


def _streamed(client: httpx.Client, message: str) -> list[str]:
    pieces: list[str] = []
    event = ""
    with client.stream("POST", "/v1/chat/stream", json={"message": message}) as response:
        for line in response.iter_lines():
            if line.startswith("event:"):
                event = line[6:].strip()
            elif line.startswith("data:") and event == "content_delta":
                data: dict[str, Any] = json.loads(line[5:])
                if data["role"] == "thinker":
                    pieces.append(data["text"])
    return pieces
