"""Approvals end to end, and the rules that lead to them."""

import asyncio
from pathlib import Path

import pytest

from tests.doubles.scripted_llama import act, done, say
from tests.program import Program, start_program


async def waiting(program: Program, command: str = "touch made.txt && echo ok") -> dict[str, object]:
    program.llama.push("action", act("shell_exec", command=command), done())
    answer = await program.chat("do it")
    assert answer["status"] == "waiting_for_approval", answer
    return answer


async def test_a_command_waits_for_a_person_and_runs_as_shown_when_allowed(program: Program) -> None:
    answer = await waiting(program)
    (approval,) = answer["pending_approvals"]
    assert approval["arguments"]["command"] == "touch made.txt && echo ok"
    assert len(approval["action_sha256"]) == 64
    assert not (program.workspace / "made.txt").exists()
    assert [a["approval_id"] for a in (await program.get("/v1/approvals/pending"))["items"]] == [
        approval["approval_id"]
    ]
    allowed = await program.post(f"/v1/approvals/{approval['approval_id']}/allow_once")
    assert allowed["status"] == "allowed_once"
    await program.until(answer["task_id"], lambda t: t["status"] == "completed")
    assert (program.workspace / "made.txt").exists()
    (command,) = (await program.get("/v1/commands"))["items"]
    assert (command["status"], command["exit_code"], command["decision"]) == ("ok", 0, "allowed once")
    assert (await program.get("/v1/approvals/pending"))["items"] == []


async def test_a_second_answer_is_a_conflict(program: Program) -> None:
    answer = await waiting(program)
    approval_id = answer["pending_approvals"][0]["approval_id"]
    await program.post(f"/v1/approvals/{approval_id}/deny", {"reason": "no"})
    problem = await program.post(f"/v1/approvals/{approval_id}/allow_once", status=409)
    assert "answered already" in problem["detail"]
    await program.until(answer["task_id"], lambda t: t["status"] == "completed")
    assert not (program.workspace / "made.txt").exists()


async def test_a_denial_and_its_reason_reach_the_model(program: Program) -> None:
    answer = await waiting(program)
    approval_id = answer["pending_approvals"][0]["approval_id"]
    await program.post(f"/v1/approvals/{approval_id}/deny", {"reason": "не трогай"})
    await program.until(answer["task_id"], lambda t: t["status"] == "completed")
    assert "не трогай" in str(program.llama.requests[1].body["messages"][-1])


async def test_allowed_for_ever_is_asked_no_more_until_it_is_revoked(program: Program) -> None:
    answer = await waiting(program)
    approval_id = answer["pending_approvals"][0]["approval_id"]
    await program.post(f"/v1/approvals/{approval_id}/allow_forever")
    await program.until(answer["task_id"], lambda t: t["status"] == "completed")
    program.llama.push("action", act("shell_exec", command="touch made.txt && echo ok"), done())
    assert (await program.chat("again"))["status"] == "completed"
    (grant,) = (await program.get("/v1/grants"))["items"]
    assert (grant["uses"], grant["revoked_at"]) == (1, None)
    revoked = await program.post(f"/v1/grants/{grant['grant_id']}/revoke")
    assert revoked["revoked_at"]
    await waiting(program)
    await program.post(f"/v1/grants/{grant['grant_id']}/revoke", status=409)
    await program.post("/v1/grants/nothing/revoke", status=404)


async def test_a_grant_covers_exactly_one_action(program: Program) -> None:
    answer = await waiting(program)
    await program.post(f"/v1/approvals/{answer['pending_approvals'][0]['approval_id']}/allow_forever")
    await program.until(answer["task_id"], lambda t: t["status"] == "completed")
    await waiting(program, "touch made.txt && echo ok; rm -rf .")


async def test_a_waiting_task_holds_no_worker_and_survives_a_restart(database_url: str, tmp_path: Path) -> None:
    async with start_program(database_url, tmp_path, concurrency=1) as program:
        answer = await waiting(program)
        assert (await program.chat("something else"))["status"] == "completed"
    async with start_program(database_url, tmp_path, concurrency=1) as program:
        (approval,) = (await program.get("/v1/approvals/pending"))["items"]
        program.llama.push("action", done())
        program.llama.push("thinker", say("it was made"))
        await program.post(f"/v1/approvals/{approval['approval_id']}/allow_once")
        task = await program.until(answer["task_id"], lambda t: t["status"] == "completed")
        assert task["response"] == "it was made"
        assert (program.workspace / "made.txt").exists()


async def test_cancelling_a_task_takes_its_question_back(program: Program) -> None:
    answer = await waiting(program)
    await program.post(f"/v1/tasks/{answer['task_id']}/cancel")
    assert (await program.get("/v1/approvals/pending"))["items"] == []
    approval_id = answer["pending_approvals"][0]["approval_id"]
    await program.post(f"/v1/approvals/{approval_id}/allow_once", status=409)


async def test_cancel_ends_a_running_command_and_its_children(program: Program) -> None:
    answer = await waiting(program, "sleep 300 & echo started; sleep 300")
    await program.post(f"/v1/approvals/{answer['pending_approvals'][0]['approval_id']}/allow_once")
    await program.until(answer["task_id"], lambda t: t["tool_calls"] == 1 and t["status"] == "running")
    for _ in range(200):
        if "tool_started" in await program.types(str(answer["task_id"])):
            break
        await asyncio.sleep(0.02)
    await program.post(f"/v1/tasks/{answer['task_id']}/cancel")
    for _ in range(200):
        types = await program.types(str(answer["task_id"]))
        if types[-1] == "tool_failed":
            break
        await asyncio.sleep(0.02)
    assert types[-2:] == ["cancelled", "tool_failed"]


@pytest.mark.parametrize("path", [".env", "../outside.txt", "/etc/passwd", "sub/../../x", "id_rsa"])
async def test_secret_and_outside_files_are_refused(program: Program, path: str) -> None:
    (program.workspace / ".env").write_text("KEY=1")
    program.llama.push("action", act("file_read", path=path), done())
    answer = await program.chat("read it")
    events = await program.events(answer["task_id"])
    (failed,) = [e for e in events if e["type"] == "task.tool_failed.v1"]
    assert failed["data"]["kind"] == "refused"


async def test_an_approval_that_does_not_exist_is_a_404(program: Program) -> None:
    for action in ("allow_once", "allow_forever", "deny"):
        await program.post(f"/v1/approvals/nothing/{action}", status=404)
