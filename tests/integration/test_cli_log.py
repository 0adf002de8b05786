"""Commands that need no server: the log, replay, projections, and a question that starts its own DuckLM."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from adapters.store.event_store import EventStore, Write
from adapters.store.recorder import TABLE
from domain.ids import task_stream
from domain.task.events import TaskCreated
from tests.doubles.scripted_llama import ScriptedLlama, act, done, say
from tests.integration.cli import Cli
from tests.program import Program, settings_for, start_program


@pytest.fixture
async def cli(database_url: str, tmp_path: Path) -> AsyncIterator[Cli]:
    """No server runs; ``DUCKLM_URL`` is not set."""
    started = Cli(settings_for(database_url, tmp_path, "http://127.0.0.1:9"), "")
    yield started
    started.kill_what_runs()


async def two_tasks(database_url: str, home: Path) -> list[str]:
    """A conversation of two tasks, the first of which looked into a folder; their ids."""
    async with start_program(database_url, home) as program:
        return await asked_twice(program)


async def asked_twice(program: Program) -> list[str]:
    program.llama.push("action", act("list_dir", path="."), done())
    program.llama.push("thinker", say("Nothing there.", reasoning="empty"), say("Still nothing."))
    first = await program.chat("what is here?")
    second = await program.chat("and now?", conversation_id=first["conversation_id"])
    return [first["task_id"], second["task_id"]]


async def test_the_log_is_read_beside_a_server_or_without_one(database_url: str, tmp_path: Path, cli: Cli) -> None:
    first, second = await two_tasks(database_url, tmp_path)
    whole, last, tools, mine, odd = await asyncio.gather(
        cli("events", "tail", "--after", "0", "--json"),
        cli("events", "tail", "-n", "3"),
        cli("events", "tail", "--type", "task.tool_*,task.created", "--json"),
        cli("events", "tail", "--task", second[-10:], "-n", "500", "--json"),
        cli("events", "tail", "--task", "zzzz"),
    )
    events = [json.loads(line) for line in whole.out.splitlines()]
    assert [e["position"] for e in events] == sorted(e["position"] for e in events)
    assert events[0]["type"] == "conversation.started.v1"
    assert len(last.out.splitlines()) == 3
    assert "task.completed" in last.out.splitlines()[-1]
    assert [json.loads(line)["type"] for line in tools.out.splitlines()] == [
        "task.created.v1", "task.tool_requested.v1", "task.tool_started.v1", "task.tool_observed.v1", "task.created.v1",
    ]  # fmt: skip
    assert {json.loads(line)["stream"] for line in mine.out.splitlines()} == {task_stream(second)}
    assert first != second
    assert odd.code == 3


async def test_following_shows_what_comes_until_ctrl_c(database_url: str, store: EventStore, cli: Cli) -> None:
    process = await cli.start("events", "tail", "-f", "--after", "0", "--json", "--type", "task.created")
    assert process.stdout is not None
    for n in range(3):
        store.append([Write(f"task-{n}", 0, [TaskCreated("c", f"message {n}", "/w")])])
        line = await asyncio.wait_for(process.stdout.readline(), 40)
        assert json.loads(line)["data"]["message"] == f"message {n}"
    process.send_signal(signal.SIGINT)
    assert await asyncio.wait_for(process.wait(), 10) == 130


async def test_replay_gives_every_context_exactly_as_it_was_sent(database_url: str, tmp_path: Path, cli: Cli) -> None:
    async with start_program(database_url, tmp_path) as program:
        first, second = await asked_twice(program)
        sent = [r.body["messages"] for r in program.llama.requests]
        tools = program.llama.requests[0].body["tools"]
        events = {t: await program.events(t) for t in (first, second)}
    wanted = [(t, e["version"]) for t in (first, second) for e in events[t] if "model_requested" in e["type"]]
    assert len(wanted) == len(sent) == 5
    chosen = (0, 2, 4)  # the first, one after a tool, and one with an earlier task before it
    replayed = await asyncio.gather(*(cli("replay", wanted[n][0], "--at", str(wanted[n][1]), "--json") for n in chosen))
    for done_, messages in zip(replayed, [sent[n] for n in chosen], strict=True):
        assert done_.code == 0
        seen = done_.json
        assert seen["context"]["messages"] == messages
        assert seen["context"]["tools"] == tools
        assert seen["context"]["check"] == "ok"
    end = replayed[-1].json
    assert end["at"] < end["last"]
    text = (await cli("replay", "last")).out
    assert "hash ok" in text
    assert "earlier task" in text
    assert (await cli("replay", "last", "--at", "999")).code == 2


async def test_replay_finds_a_log_that_was_tampered_with_and_steps_over_what_it_cannot_read(
    database_url: str, tmp_path: Path, cli: Cli
) -> None:
    first, second = await two_tasks(database_url, tmp_path)
    with psycopg.connect(database_url) as conn:
        change(conn, first, 2, "what is here?", "what was here?")
    found = await cli("replay", first, "--json")
    assert found.code == 1
    assert [c["verdict"] for c in found.json["checks"]] == ["mismatch", "ok", "ok"]
    assert (await cli("replay", second)).code == 1, "its history is not what it was"
    with psycopg.connect(database_url) as conn:
        conn.execute(
            f"UPDATE {TABLE} SET topic = 'task.future.v7' WHERE originator_id = %s AND originator_version = 2",
            (task_stream(first),),
        )
    unread = await cli("replay", first, "--json")
    assert unread.code == 0
    assert [u["data"]["tag"] for u in unread.json["unreadable"]] == ["task.future.v7"]
    assert unread.json["state"]["status"] == "completed"
    assert "can't be read" in (await cli("replay", first)).out


def change(conn: psycopg.Connection[Any], task_id: str, version: int, old: str, new: str) -> None:
    changed = conn.execute(
        f"UPDATE {TABLE} SET state = convert_to(replace(convert_from(state, 'UTF8'), %s, %s), 'UTF8') "
        "WHERE originator_id = %s AND originator_version = %s",
        (old, new, task_stream(task_id), version),
    )
    assert changed.rowcount == 1


async def test_projections_are_shown_verified_and_mended(database_url: str, tmp_path: Path, cli: Cli) -> None:
    await two_tasks(database_url, tmp_path)
    status, verified, odd = await asyncio.gather(
        cli("projections", "status", "--json"),
        cli("projections", "verify", "--json"),
        cli("projections", "rebuild", "odd"),
    )
    assert {p["state"] for p in status.json["projections"]} == {"up to date"}
    assert (verified.code, {p["ok"] for p in verified.json}) == (0, {True})
    assert (odd.code, "tasks" in odd.err) == (3, True)
    with psycopg.connect(database_url) as conn:
        conn.execute("UPDATE rm_tasks_v1 SET title = 'forged' WHERE title = 'and now?'")
    broken = await cli("projections", "verify", "tasks")
    assert broken.code == 1
    assert "forged" in broken.out
    assert "and now?" in broken.out
    assert (await cli("projections", "rebuild", "tasks", "--json")).json["events"] > 10
    assert (await cli("projections", "verify", "tasks")).out == "ok   tasks\n"


async def test_a_question_without_a_server_starts_one_and_stops_it(database_url: str, tmp_path: Path) -> None:
    async with ScriptedLlama() as llama:
        llama.push("thinker", say("Here I am."))
        cli = Cli(settings_for(database_url, tmp_path, llama.url), "")
        asked = await cli("ask", "anybody there?")
        assert (asked.code, asked.out) == (0, "Here I am.\n")
        assert not (tmp_path / "server.json").exists()
        llama.push("action", act("shell_exec", command="touch x; true"))
        waiting = await cli("ask", "make it")
        assert waiting.code == 4
        assert "`ducklm up`, then `ducklm approvals allow" in waiting.err
    needs = await cli("tasks")
    assert (needs.code, "no DuckLM is running" in needs.err) == (9, True)


async def test_where_nothing_is_yet_nothing_is_made(tmp_path: Path) -> None:
    cli = Cli(settings_for("", tmp_path / "none", ""), "")
    for command in (("events", "tail"), ("replay", "last"), ("projections", "status")):
        looked = await cli(*command)
        assert (looked.code, "ducklm up" in looked.err) == (9, True)
    assert not (tmp_path / "none").exists()
