"""Faults while the program runs: the database dies, connections are cut, the model server flaps, the unexpected happens."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from adapters.runtime import interpreter
from tests.doubles.scripted_llama import act, calls, done, hang, loading, say, slow
from tests.program import Program, start_program

LONG = "sleep 3; echo ran >> effects.log; echo the end"


async def approved(program: Program, command: str) -> str:
    """A task whose command is running."""
    program.llama.push("action", act("shell_exec", command=command), done())
    answer = await program.chat("do it")
    await program.post(f"/v1/approvals/{answer['pending_approvals'][0]['approval_id']}/allow_once")
    for _ in range(400):
        if "tool_started" in await program.types(answer["task_id"]):
            return str(answer["task_id"])
        await asyncio.sleep(0.02)
    raise AssertionError("the command did not start")


async def settled(program: Program, task_id: str, seconds: float = 60) -> dict[str, Any]:
    """The task when it has ended or waits, asked for patiently: the server may answer 503 meanwhile."""
    async with asyncio.timeout(seconds):
        while True:
            response = await program.http.get(f"/v1/tasks/{task_id}")
            if response.status_code == 200 and response.json()["status"] != "running":
                return dict(response.json())
            assert response.status_code in (200, 503), response.text
            await asyncio.sleep(0.1)


async def test_postgres_killed_under_a_running_command_loses_nothing(tmp_path: Path) -> None:
    """The embedded server is started again, and what the process knows of the command is written then."""
    async with start_program("", tmp_path) as program:
        task_id = await approved(program, LONG)
        server = program.runtime.database.embedded
        assert server is not None
        assert server._server is not None
        os.kill(server._server.get_postmaster_info().pid, signal.SIGKILL)
        task = await settled(program, task_id)
        assert task["status"] == "completed", task
        types = await program.types(task_id)
        assert types.count("tool_observed") == 1
        assert "tool_outcome_uncertain" not in types
        assert (program.workspace / "effects.log").read_text() == "ran\n"
        assert (await program.chat("and now?"))["status"] == "completed"
        assert (await program.get("/health")) == {"status": "ok"}


async def test_all_connections_cut_at_once_are_made_again(program: Program) -> None:
    task_id = await approved(program, LONG)
    await asyncio.to_thread(cut_connections, program.runtime.database.conninfo)
    task = await settled(program, task_id)
    assert task["status"] == "completed"
    assert (program.workspace / "effects.log").read_text() == "ran\n"
    answer = await program.http.post("/v1/chat", json={"message": "and now?"})
    assert answer.status_code in (200, 503)


def cut_connections(conninfo: str) -> None:
    with psycopg.connect(conninfo, autocommit=True) as conn:
        conn.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


async def test_a_worker_that_loses_its_lock_for_a_moment_keeps_its_tasks(program: Program) -> None:
    task_id = await approved(program, "sleep 8; echo ran >> effects.log")
    with psycopg.connect(program.runtime.database.conninfo, autocommit=True) as conn:
        cut = conn.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = 7263"
        )
        assert cut.fetchall() == [(True,)]
    task = await settled(program, task_id)
    assert task["status"] == "completed"
    assert "tool_outcome_uncertain" not in await program.types(task_id)


async def test_a_server_that_is_there_but_cannot_answer_makes_no_storm(program: Program) -> None:
    program.llama.default("action", loading())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program.runtime.models, "_retries", program.runtime.models._retries.__class__(1, 0.0, 0.01, 0.01))
        answer = await program.chat("?")
        assert answer["status"] == "paused"
        await asyncio.sleep(8)
        with psycopg.connect(program.runtime.database.conninfo) as conn:
            (jobs,) = conn.execute("SELECT count(*) FROM procrastinate_jobs").fetchone() or (0,)
        assert jobs <= 1
        assert (await program.types(answer["task_id"])).count("paused") <= 4
        program.llama.default("action", done())
        assert (await program.until(answer["task_id"], lambda t: t["status"] == "completed"))["response"]


async def test_the_unexpected_fails_the_task_and_says_so(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("nobody thought of this")

    monkeypatch.setattr(interpreter, "build_context", broken)
    answer = await program.chat("?")
    assert answer["status"] == "failed"
    assert "nobody thought of this" in answer["error"]
    monkeypatch.undo()
    again = await program.post(f"/v1/tasks/{answer['task_id']}/continue", {})
    assert again["status"] == "completed"


async def test_arguments_nested_without_end_are_a_faulty_directive(program: Program) -> None:
    program.llama.push("action", calls(("list_dir", '{"path":' + "[" * 3000 + "]" * 3000 + "}")), done())
    answer = await program.chat("?")
    assert answer["status"] == "completed"
    assert "directive_rejected" in await program.types(answer["task_id"])


async def test_a_persons_pause_outlasts_failures_and_answers(program: Program) -> None:
    program.llama.push("action", hang(600))
    sending = asyncio.create_task(program.chat("hang"))
    await program.llama.wait_until(lambda s: len(s.requests) == 1)
    (task,) = (await program.get("/v1/tasks"))["items"]
    await program.post(f"/v1/tasks/{task['task_id']}/pause", {"reason": "lunch"})
    await sending
    await program.llama.stop()
    await program.llama.start()
    await asyncio.sleep(7)
    assert (await program.get(f"/v1/tasks/{task['task_id']}"))["waiting_for"] == "lunch"
    await program.post(f"/v1/tasks/{task['task_id']}/resume")
    await program.until(task["task_id"], lambda t: t["status"] == "completed", seconds=40)


async def test_pause_with_a_question_open(program: Program) -> None:
    program.llama.push("action", act("shell_exec", command="touch made"), done())
    answer = await program.chat("do")
    task_id, approval_id = answer["task_id"], answer["pending_approvals"][0]["approval_id"]
    await program.post(f"/v1/tasks/{task_id}/pause")
    await program.post(f"/v1/tasks/{task_id}/resume")
    (listed,) = (await program.get("/v1/tasks", status="waiting_for_approval"))["items"]
    assert listed["task_id"] == task_id
    (conversation,) = (await program.get("/v1/conversations"))["items"]
    assert conversation["last_status"] == "waiting_for_approval"
    await program.post(f"/v1/tasks/{task_id}/pause")
    await program.post(f"/v1/approvals/{approval_id}/allow_once")
    await asyncio.sleep(0.5)
    assert not (program.workspace / "made").exists()
    assert (await program.get("/v1/tasks"))["items"][0]["status"] == "paused"
    await program.post(f"/v1/tasks/{task_id}/resume")
    await program.until(task_id, lambda t: t["status"] == "completed")
    assert (program.workspace / "made").exists()


async def test_a_later_task_is_told_what_really_ran(program: Program) -> None:
    program.llama.push(
        "action",
        calls(("file_write", {"path": "made.txt", "content": "x"}), ("shell_exec", {"command": "make"})),
    )
    answer = await program.chat("do both")
    await program.post(f"/v1/tasks/{answer['task_id']}/cancel")
    await program.chat("what was done?", conversation_id=answer["conversation_id"])
    told = [m["content"] for m in program.llama.requests[1].body["messages"] if m["role"] == "tool"]
    assert len(told) == 2
    assert "file_write: ok" in told[0]
    assert "was stopped" in told[1]


async def test_continue_after_the_token_limit_goes_on(database_url: str, tmp_path: Path) -> None:
    async with start_program(database_url, tmp_path, max_task_tokens=600) as program:
        count = iter(range(100))
        program.llama.default("action", lambda _r: act("search_files", pattern=f"p{next(count)}"))
        answer = await program.chat("look")
        assert "tokens is reached" in answer["notices"][0]
        before = (await program.get(f"/v1/tasks/{answer['task_id']}"))["iterations"]
        program.llama.push("action", done())
        again = await program.post(f"/v1/tasks/{answer['task_id']}/continue", {})
        assert again["status"] == "completed"
        assert (await program.get(f"/v1/tasks/{answer['task_id']}"))["iterations"] == before + 1


async def test_after_a_model_swap_history_is_sent_in_a_shape_every_template_takes(program: Program) -> None:
    program.llama.push("action", act("list_dir", path="."), done(), done())
    first = await program.chat("look")
    program.llama.app.native_tools = False
    program.llama.app.model = "other.gguf"
    program.llama.app.chat_template = "{# another #}"
    program.runtime.models._servers[next(iter(program.runtime.models._servers))]._props = None  # type: ignore[assignment]
    await program.chat("and now?", conversation_id=first["conversation_id"])
    messages = program.llama.requests[-2].body["messages"]
    assert {m["role"] for m in messages} == {"system", "user", "assistant"}
    assert not any(m.get("tool_calls") for m in messages)


async def test_large_output_does_not_hold_up_everybody_else(program: Program) -> None:
    program.llama.push("action", act("shell_exec", command="yes 0123456789 | head -c 20000000"), done())
    program.llama.push("thinker", slow(say("seen"), 0.01))
    answer = await program.chat("flood")
    await program.post(f"/v1/approvals/{answer['pending_approvals'][0]['approval_id']}/allow_once")
    slowest = 0.0
    while (await program.get(f"/v1/tasks/{answer['task_id']}"))["status"] == "running":
        begun = asyncio.get_running_loop().time()
        await program.get("/health")
        slowest = max(slowest, asyncio.get_running_loop().time() - begun)
        await asyncio.sleep(0.02)
    events = await program.events(answer["task_id"])
    (observed,) = [e["data"] for e in events if e["type"] == "task.tool_observed.v1"]
    assert observed["size"] == 20_000_000
    assert observed["truncated"]
    assert len(observed["output"]) <= 70_000
    assert observed["blob_sha256"]
    assert slowest < 30, "the loop was blocked"
