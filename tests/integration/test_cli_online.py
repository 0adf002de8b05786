"""The command line against a running program: every command, its JSON, its exit codes."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from api.bootstrap import make_runtime
from api.server import address, listen, running
from api.settings import Settings
from tests.doubles.scripted_llama import ScriptedLlama, act, done, hang, http_error, say, slow
from tests.integration.cli import Cli
from tests.program import TOKEN, Program, settings_for


@pytest.fixture
async def cli(program: Program) -> AsyncIterator[Cli]:
    started = Cli(program.runtime.settings, program.url)
    yield started
    started.kill_what_runs()


async def test_a_question_is_answered_on_standard_output_alone(program: Program, cli: Cli) -> None:
    (program.workspace / "a.txt").write_text("x")
    program.llama.push("action", act("list_dir", path="."), done())
    program.llama.push("thinker", say("One **file**.\u2028Да.", reasoning="hm"))
    asked = await cli("ask", "what", "is", "here", piped="from the pipe\n")
    assert (asked.code, asked.out) == (0, "One **file**.\u2028Да.\n")
    assert "▸ list_dir" in asked.err
    assert "a.txt" in asked.err
    assert "tokens read" in asked.err
    assert "hm" not in asked.err, "reasoning is for those who watch"
    first = program.llama.requests[0].body["messages"][1]["content"]
    assert first.startswith("what is here\n\nfrom the pipe\n\n")


async def test_the_next_question_goes_on_in_the_last_conversation(
    program: Program, cli: Cli, tmp_path_factory: pytest.TempPathFactory
) -> None:
    missing = await cli("ask", "-c", "go on")
    assert (missing.code, program.llama.requests) == (3, [])
    one = (await cli("ask", "first", "--json")).json
    two = (await cli("ask", "second", "--json", "-c")).json
    assert two["conversation_id"] == one["conversation_id"]
    assert list(one) == list(await program.chat("third"))
    folder = tmp_path_factory.mktemp("project")
    three = (await cli("ask", "third", "--json", "-w", str(folder))).json
    assert (await program.get(f"/v1/tasks/{three['task_id']}"))["workspace"] == str(folder)
    assert (await cli("ask", "x", "-w", str(folder / "none"))).code == 2
    assert (await cli("ask", "x", "--conversation", "nope")).code == 3


async def test_where_nobody_can_answer_the_approval_is_named_and_can_be_answered(program: Program, cli: Cli) -> None:
    program.llama.push("action", act("shell_exec", command="touch made; true"), done())
    asked = await cli("ask", "make it")
    assert asked.code == 4
    (waiting,) = (await cli("approvals", "--json")).json
    assert f"ducklm approvals allow {waiting['approval_id']}" in asked.err
    assert "touch made; true" in asked.err
    assert "touch made; true" in (await cli("approvals")).out
    allowed = await cli("approvals", "allow", waiting["approval_id"], "--forever")
    assert (allowed.code, "allowed forever" in allowed.out) == (0, True)
    await program.until(waiting["task_id"], lambda t: t["status"] == "completed")
    assert (program.workspace / "made").exists()
    again = await cli("approvals", "allow", waiting["approval_id"], "--json")
    assert (again.code, json.loads(again.err)["type"]) == (4, "urn:ducklm:conflict")
    (grant,) = (await cli("grants", "--json")).json
    assert (await cli("grants", "revoke", grant["grant_id"])).code == 0
    assert "revoked" in (await cli("grants")).out
    assert (await cli("grants", "revoke", "nope")).code == 3


async def test_yes_allows_once_and_json_tells_of_an_open_approval(program: Program, cli: Cli) -> None:
    program.llama.push("action", act("shell_exec", command="touch a; true"), done())
    assert (await cli("ask", "x", "--yes")).code == 0
    assert (program.workspace / "a").exists()
    program.llama.push("action", act("shell_exec", command="touch b; true"), done())
    asked = await cli("ask", "x", "--json")
    assert (asked.code, asked.json["status"]) == (4, "waiting_for_approval")
    denied = await cli("approvals", "deny", asked.json["pending_approvals"][0]["approval_id"], "--reason", "not b")
    assert denied.code == 0
    task = await program.until(asked.json["task_id"], lambda t: t["status"] == "completed")
    assert "not b" in json.dumps([r.body for r in program.llama.requests])
    assert not (program.workspace / "b").exists()
    assert task["status"] == "completed"


async def test_ctrl_c_cancels_the_task(program: Program, cli: Cli) -> None:
    program.llama.push("thinker", slow(say("one two three four five six seven eight nine"), 0.3))
    process = await cli.start("ask", "slowly")
    assert process.stdout is not None
    assert await process.stdout.read(3) == b"one"
    process.send_signal(signal.SIGINT)
    out, err = await asyncio.wait_for(process.communicate(), 15)
    assert process.returncode == 130
    assert b"nine" not in out
    assert b"cancelled at the terminal" in err
    (task,) = (await program.get("/v1/tasks"))["items"]
    assert task["status"] == "cancelled"


async def test_a_terminated_command_leaves_the_task_running(program: Program, cli: Cli) -> None:
    program.llama.push("thinker", slow(say("one two three four five six"), 0.3))
    process = await cli.start("ask", "slowly")
    assert process.stdout is not None
    await process.stdout.read(3)
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 10) == 143
    (task,) = (await program.get("/v1/tasks"))["items"]
    ended = await program.until(task["task_id"], lambda t: t["status"] == "completed")
    assert ended["response"] == "one two three four five six"


async def test_a_model_server_that_is_away_pauses_and_a_failed_task_has_its_errors_code(
    program: Program, cli: Cli
) -> None:
    program.llama.push("action", http_error(400, "no such thing"))
    failed = await cli("ask", "x")
    assert failed.code == 6
    assert "no such thing" in failed.err
    await program.llama.stop()
    paused = await cli("ask", "x")
    assert paused.code == 6
    assert "paused" in paused.err
    assert "by itself" in paused.err
    quiet = await cli("ask", "x", "--json")
    assert (quiet.code, quiet.json["status"]) == (6, "paused")
    await program.llama.start()


async def test_tasks_are_listed_shown_cancelled_and_gone_on_with(program: Program, cli: Cli) -> None:
    program.llama.push("action", act("list_dir", path="."), done())
    answer = await program.chat("look here")
    listed = await cli("tasks", "--json", "-n", "1")
    assert [t["task_id"] for t in listed.json] == [answer["task_id"]]
    assert "look here" in (await cli("tasks", "--status", "completed")).out
    assert (await cli("tasks", "--status", "odd")).code == 2
    shown = await cli("tasks", "show", answer["task_id"][-12:])
    assert shown.code == 0
    assert "list_dir" in shown.out
    assert "cached" in shown.out
    steps = (await cli("tasks", "show", "last", "--json")).json["steps"]
    assert [(s["kind"], s["name"]) for s in steps] == [
        ("model", "action"), ("tool", "list_dir"), ("model", "action"), ("model", "thinker"),
    ]  # fmt: skip
    assert all(s["prefilled_tokens"] + s["cached_tokens"] == s["prompt_tokens"] for s in steps)
    assert (await cli("tasks", "cancel", "last")).code == 4, "it has ended"
    assert (await cli("tasks", "show", "nope")).code == 3
    program.llama.push("action", hang(60))
    sending = asyncio.create_task(program.chat("wait"))
    await program.llama.wait_until(lambda s: len(s.requests) == 4)
    assert (await cli("tasks", "cancel", "last", "--reason", "enough")).code == 0
    assert (await sending)["status"] == "cancelled"
    assert (await cli("tasks", "continue", "last")).code == 4


async def test_a_failed_task_goes_on_and_is_followed_to_its_end(program: Program, cli: Cli) -> None:
    program.llama.push("action", http_error(400, "odd"))
    assert (await program.chat("x"))["status"] == "failed"
    program.llama.push("thinker", say("Now it works."))
    going = await cli("tasks", "continue", "last")
    assert (going.code, going.out) == (0, "Now it works.\n")


async def test_models_conversations_token_and_the_link(program: Program, cli: Cli) -> None:
    answer = await program.chat("hello there")
    roles, ping, probe, found_out, listed, read, token, link = await asyncio.gather(
        cli("models", "--json"),
        cli("models", "ping"),
        cli("models", "probe", "--json"),
        cli("models", "probe", DUCKLM_LLAMA_URL=""),
        cli("conversations", "--json"),
        cli("conversations", "show", "last"),
        cli("token"),
        cli("open", "--json"),
    )
    assert {r["name"] for r in roles.json} >= {"action", "thinker", "critic"}
    assert ping.code == 0
    assert [p["transport"] for p in probe.json] == ["native_tools"]
    assert "native_tools" in found_out.out, "as the task had found out"
    assert [c["conversation_id"] for c in listed.json] == [answer["conversation_id"]]
    assert "hello there" in read.out
    assert token.out == f"{TOKEN}\n"
    assert link.json == {"url": f"{program.url}/?token={TOKEN}"}
    await program.llama.stop()
    assert (await cli("models", "ping")).code == 6


async def test_a_wrong_token_and_a_wrong_address(cli: Cli) -> None:
    wrong = await cli("tasks", DUCKLM_TOKEN="wrong")
    assert (wrong.code, "DUCKLM_TOKEN" in wrong.err) == (5, True)
    away = await cli("tasks", "--url", "http://127.0.0.1:9", "--json")
    assert (away.code, "ducklm up" in json.loads(away.err)["detail"]) == (9, True)


@asynccontextmanager
async def served(settings: Settings) -> AsyncIterator[str]:
    """A program on a port of its own, at its address."""
    sock = listen(settings)
    runtime = await make_runtime(settings)
    async with running(runtime, sock):
        yield address(sock)


async def test_a_server_that_goes_away_in_the_middle_and_comes_back(database_url: str, tmp_path: Path) -> None:
    async with ScriptedLlama() as llama:
        llama.push("thinker", slow(say("one " * 40), 0.3))
        settings = settings_for(database_url, tmp_path, llama.url)
        async with served(settings) as url:
            process = await Cli(settings, url).start("ask", "slowly")
            assert process.stdout is not None
            assert await process.stdout.read(3) == b"one"
        llama.push("thinker", say("From the beginning."))
        async with served(replace(settings, port=int(url.rsplit(":", 1)[1]))):
            out, err = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0
    assert out.endswith(b"From the beginning.\n")
    assert b"it starts again" in err
    assert b"connection is lost" in err
