"""kill -9 at every boundary of an effect, then a restart: nothing acknowledged is lost, nothing is doubled, no unsafe tool
runs twice, the task ends, and read models equal a rebuild."""

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

from adapters.store.event_store import EventStore
from api.database import sql_engine
from domain.ids import task_stream
from projections.catalogue import READ_MODELS
from projections.rebuild import Rebuilder
from tests.doubles.scripted_llama import Reply, Request, ScriptedLlamaThread, act, done, say

TOKEN = "victim-token"
COMMAND = "echo ran >> effects.log; sleep 1; echo slept"
POINTS = [
    *(
        f"{when}:task.{event}.v1"
        for event in (
            "created", "model_requested", "model_replied", "approval_requested", "approval_granted", "tool_started",
            "tool_observed", "completed",
        )
        for when in ("before", "after")
    ),
    "reply", "effect:file_write", "effect:shell_exec", "tool:shell_exec", "projection:tasks",
]  # fmt: skip


def plan(request: Request) -> Reply:
    """What to do next, from what the prompt shows: the same after any restart."""
    shown = json.dumps(request.body["messages"], ensure_ascii=False)
    if "file_write: " not in shown:
        return act("file_write", path="утка.txt", content="кря\n")
    if "shell_exec: " not in shown:
        return act("shell_exec", command=COMMAND)
    return done()


@pytest.fixture
def llama() -> Iterator[ScriptedLlamaThread]:
    with ScriptedLlamaThread() as running:
        running.default("action", plan)
        running.default("thinker", say("Готово."))
        yield running


class Victim:
    """The program in a process of its own."""

    def __init__(self, home: Path, database_url: str, llama_url: str) -> None:
        self.home = home
        self.acknowledged = home / "acknowledged.txt"
        self.acknowledged.touch()
        self.env = {
            **os.environ, "DUCKLM_HOME": str(home), "DUCKLM_DATABASE_URL": database_url, "DUCKLM_LLAMA_URL": llama_url,
            "DUCKLM_TOKEN": TOKEN, "DUCKLM_PORT": "0", "VICTIM_ACKNOWLEDGED": str(self.acknowledged),
        }  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, point: str = "") -> httpx.Client:
        (self.home / "server.json").unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.victim", point], env=self.env,
            stdout=subprocess.DEVNULL, stderr=(self.home / "stderr.txt").open("ab"),
        )  # fmt: skip
        until(lambda: (self.home / "server.json").exists() or self.died())
        assert not self.died(), (self.home / "stderr.txt").read_text()[-2000:]
        url = json.loads((self.home / "server.json").read_text())["url"]
        return httpx.Client(base_url=url, headers={"authorization": f"Bearer {TOKEN}"}, timeout=10)

    def died(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def stop(self) -> None:
        if self.process is not None and not self.died():
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(20)


def until(reached: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, "nothing happened for a minute"
        time.sleep(0.05)


def drive(client: httpx.Client, victim: Victim, task_id: str = "") -> str:
    """Sends the message (or finds its task), allows what is asked, continues what is uncertain, until it has ended or the
    process has died; returns the status."""
    try:
        if not task_id:
            tasks = client.get("/v1/tasks").json()["items"]
            if not tasks:
                client.post("/v1/chat", json={"message": "сделай"}, timeout=3)
                tasks = client.get("/v1/tasks").json()["items"]
            task_id = tasks[0]["task_id"]
        while not victim.died():
            task = client.get(f"/v1/tasks/{task_id}").json()
            if task["status"] in ("completed", "failed", "cancelled"):
                return str(task["status"])
            if task["status"] == "paused":
                assert "uncertain" in task["waiting_for"]
                client.post(f"/v1/tasks/{task_id}/resume")
            for approval in task["pending_approvals"]:
                client.post(f"/v1/approvals/{approval['approval_id']}/allow_once")
            time.sleep(0.05)
    except httpx.ReadTimeout:
        return drive(client, victim)
    except (httpx.TransportError, KeyError, json.JSONDecodeError):
        until(victim.died)
    return "died"


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_any_boundary_loses_and_doubles_nothing(
    point: str, tmp_path: Path, database_url: str, llama: ScriptedLlamaThread
) -> None:
    victim = Victim(tmp_path, database_url, llama.url)
    try:
        client = victim.start(point)
        assert drive(client, victim) == "died"
        client = victim.start()
        assert drive(client, victim) == "completed"
        (task,) = client.get("/v1/tasks").json()["items"]
        assert len(client.get("/v1/conversations").json()["items"]) == 1
    finally:
        victim.stop()
    check_log(database_url, victim.acknowledged.read_text().split(), task["task_id"])
    assert (tmp_path / "workspace" / "утка.txt").read_text() == "кря\n"
    effects = tmp_path / "workspace" / "effects.log"
    times = len(effects.read_text().split()) if effects.exists() else 0
    uncertain = point.startswith(("after:task.tool_started", "tool:", "effect:shell", "before:task.tool_observed"))
    assert times == 1 or (uncertain and times == 0)


def check_log(database_url: str, acknowledged: list[str], task_id: str) -> None:
    store, engine = EventStore(database_url), sql_engine(database_url)
    try:
        log = store.read(0, 10_000)
        assert set(acknowledged) <= {e.id for e in log}
        assert len({e.id for e in log}) == len(log)
        types = [e.type.split(".")[1] for e in store.load(task_stream(task_id))]
        assert types.count("created") == types.count("completed") == types.count("response_completed") == 1
        for call in {e.data.call_id for e in log if e.type == "task.tool_requested.v1"}:  # type: ignore[attr-defined]
            outcomes = [
                e for e in log
                if e.type in ("task.tool_observed.v1", "task.tool_failed.v1", "task.tool_outcome_uncertain.v1")
                and e.data.call_id == call  # type: ignore[attr-defined]
            ]  # fmt: skip
            assert len(outcomes) == 1
        for name in READ_MODELS:
            assert Rebuilder(engine, store).verify(name) == []
    finally:
        store.close()
        engine.dispose()
