"""``ducklm ask`` at a real terminal: what is shown, keys, Ctrl-C."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.doubles.scripted_llama import act, done, say, slow
from tests.integration.cli import Cli
from tests.program import Program

COMMAND = "touch made; true"


@pytest.fixture
async def cli(program: Program) -> AsyncIterator[Cli]:
    started = Cli(program.runtime.settings, program.url)
    yield started
    started.kill_what_runs()


async def test_work_and_answer_are_shown_as_they_come(program: Program, cli: Cli) -> None:
    (program.workspace / "a.txt").write_text("x")
    program.llama.push("action", act("list_dir", path="."), done())
    program.llama.push(
        "thinker", slow(say("# Files\n\nOne: `a.txt`, **small**. \x1b[31mEvil", reasoning="Let me see."), 0.02)
    )
    async with cli.at_terminal("ask", "what is here?") as screen:
        assert await screen.code() == 0
    assert "▸ list_dir ." in screen.text
    assert "│ a.txt" in screen.text
    assert "Let me see." in screen.text
    assert "# Files\n\nOne: `a.txt`, **small**. ␛[31mEvil\n" in screen.text
    assert "\x1b[31mEvil" not in screen.raw, "what a model writes can't steer the terminal"
    assert "position" in screen.text.splitlines()[-1] or "position" in screen.text.splitlines()[-2]


async def test_yes_runs_exactly_what_was_shown(program: Program, cli: Cli) -> None:
    program.llama.push("action", act("shell_exec", command=COMMAND), done())
    async with cli.at_terminal("ask", "make it") as screen:
        await screen.until("n no")
        assert f"$ {COMMAND}" in screen.text
        assert "risk" in screen.text
        assert not (program.workspace / "made").exists()
        screen.press("y")
        await screen.until("yes, once")
        assert await screen.code() == 0
    assert (program.workspace / "made").exists()
    assert (await program.get("/v1/grants"))["items"] == []


async def test_always_gives_a_grant_and_is_not_asked_again(program: Program, cli: Cli) -> None:
    program.llama.push("action", act("shell_exec", command=COMMAND), done(), act("shell_exec", command=COMMAND), done())
    async with cli.at_terminal("ask", "make it") as screen:
        await screen.until("n no")
        screen.press("a")
        assert await screen.code() == 0
    async with cli.at_terminal("ask", "make it again") as screen:
        assert await screen.code() == 0
        assert "n no" not in screen.text
    (grant,) = (await program.get("/v1/grants"))["items"]
    assert grant["arguments"]["command"] == COMMAND


async def test_no_asks_for_a_reason_which_goes_to_the_model(program: Program, cli: Cli) -> None:
    program.llama.push("action", act("shell_exec", command=COMMAND), done())
    async with cli.at_terminal("ask", "make it") as screen:
        await screen.until("n no")
        screen.press("n")
        await screen.until("Why?")
        screen.press("жалко\r")
        assert await screen.code() == 0
    assert "жалко" in str(program.llama.requests[1].body["messages"])
    assert not (program.workspace / "made").exists()


async def test_text_that_was_pasted_or_typed_before_is_no_answer(program: Program, cli: Cli) -> None:
    program.llama.push("action", act("shell_exec", command=COMMAND), done())
    async with cli.at_terminal("ask", "make it") as screen:
        screen.press("y")
        await screen.until("n no")
        screen.press("say yes to all\n")
        await asyncio.sleep(0.5)
        screen.press("x")
        await asyncio.sleep(0.5)
        assert not (program.workspace / "made").exists()
        assert "yes, " not in screen.text
        screen.press("n")
        await screen.until("Why?")
        screen.press("\r")
        assert await screen.code() == 0


async def test_an_answer_given_elsewhere_ends_the_question(program: Program, cli: Cli) -> None:
    program.llama.push("action", act("shell_exec", command=COMMAND), done())
    async with cli.at_terminal("ask", "make it") as screen:
        await screen.until("n no")
        (waiting,) = (await program.get("/v1/approvals/pending"))["items"]
        await program.post(f"/v1/approvals/{waiting['approval_id']}/allow_once")
        await screen.until("answered elsewhere")
        assert await screen.code() == 0
    assert (program.workspace / "made").exists()


async def test_ctrl_c_at_a_question_cancels_the_task_and_the_terminal_is_as_before(program: Program, cli: Cli) -> None:
    program.llama.push("action", act("shell_exec", command=COMMAND))
    async with cli.at_terminal("ask", "make it") as screen:
        await screen.until("n no")
        screen.press("\x03")
        assert await screen.code() == 130
    assert "cancelled at the terminal" in screen.text
    (task,) = (await program.get("/v1/tasks"))["items"]
    assert task["status"] == "cancelled"


async def test_a_second_ctrl_c_leaves_at_once(program: Program, cli: Cli) -> None:
    program.llama.push("thinker", slow(say("one two three four"), 0.2))
    async with cli.at_terminal("ask", "slowly") as screen:
        await screen.until("one")
        screen.press("\x03\x03")
        assert await screen.code(5) == 130


async def test_a_model_server_that_is_away_is_waited_for(program: Program, cli: Cli) -> None:
    await program.llama.stop()
    program.llama.push("thinker", say("Back again."))
    async with cli.at_terminal("ask", "are you there?") as screen:
        await screen.until("paused")
        await screen.until("waiting for the model server")
        await program.llama.start()
        await screen.until("Back again.")
        assert await screen.code() == 0
    assert "goes on" in screen.text
