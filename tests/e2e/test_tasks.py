"""Tasks end to end: API, log, queue, model dialect, real files; only the model's words are scripted."""

import asyncio
from itertools import pairwise

import httpx
import pytest

from tests.doubles.scripted_llama import (
    act,
    calls,
    cut,
    directive,
    done,
    hang,
    http_error,
    only_reasoning,
    overflow,
    say,
    slow,
)
from tests.program import Program, start_program


async def test_story_1_a_question_about_real_files_is_answered_from_them(program: Program) -> None:
    (program.workspace / "README.md").write_text("# Утка\n")
    program.llama.push("action", act("list_dir", path="."), act("file_read", path="README.md"), done())
    program.llama.push("thinker", say("В папке README.md про утку.", reasoning="посмотрел"))
    answer = await program.chat("что в этой папке?")
    assert answer["status"] == "completed"
    assert answer["response"] == "В папке README.md про утку."
    assert answer["pending_approvals"] == []
    shown = program.llama.requests[2].body["messages"][-1]["content"]
    assert "# Утка" in shown
    types = await program.types(answer["task_id"])
    assert types == [
        "created", "context_built", "model_requested", "model_replied", "action_directed",
        "tool_requested", "tool_started", "tool_observed",
        "context_built", "model_requested", "model_replied", "action_directed",
        "tool_requested", "tool_started", "tool_observed",
        "context_built", "model_requested", "model_replied", "action_directed",
        "context_built", "model_requested", "model_replied", "response_completed", "completed",
    ]  # fmt: skip
    task = await program.get(f"/v1/tasks/{answer['task_id']}")
    assert (task["tool_calls"], task["model_calls"], task["iterations"]) == (2, 4, 3)
    messages = (await program.get(f"/v1/conversations/{answer['conversation_id']}/messages"))["items"]
    assert [(m["role"], m["text"]) for m in messages] == [
        ("user", "что в этой папке?"),
        ("assistant", "В папке README.md про утку."),
    ]


async def test_every_request_carries_role_task_and_call(program: Program) -> None:
    answer = await program.chat("hello")
    events = await program.events(answer["task_id"])
    asked = [e["data"]["call_id"] for e in events if e["type"] == "task.model_requested.v1"]
    sent = [r.body["metadata"] for r in program.llama.requests]
    assert [m["call_id"] for m in sent] == asked
    assert [m["role"] for m in sent] == ["action", "thinker"]
    assert {m["task_id"] for m in sent} == {answer["task_id"]}


@pytest.mark.parametrize("native", [True, False])
async def test_the_prompt_only_ever_grows(database_url: str, tmp_path: object, native: bool) -> None:
    """Within a task and on to the next message of the conversation, each request begins with the one before."""
    async with start_program(database_url, tmp_path) as program:  # type: ignore[arg-type]
        program.llama.app.native_tools = native
        (program.workspace / "a.txt").write_text("alpha")
        program.llama.push("action", act("list_dir", path="."), act("file_read", path="a.txt"), done(), done())
        first = await program.chat("look")
        await program.chat("and now?", conversation_id=first["conversation_id"])
        requests = [r.body for r in program.llama.requests]
        assert len(requests) == 6
        for earlier, later in pairwise(requests):
            assert later["messages"][: len(earlier["messages"])] == earlier["messages"]
            assert later.get("tools") == earlier.get("tools")
        assert ("tools" in requests[0]) is native
        if not native:
            assert requests[0]["response_format"]["json_schema"]["name"] == "action_directive"
        usage = (await program.get("/v1/usage"))["items"]
        assert sum(u["cached_tokens"] for u in usage) > 0


async def test_an_unusable_directive_is_repaired(program: Program) -> None:
    program.llama.push("action", say("I will look."), act("fly", to="moon"), done())
    answer = await program.chat("look")
    types = await program.types(answer["task_id"])
    assert types.count("directive_rejected") == 2
    assert answer["status"] == "completed"
    assert "unknown tool 'fly'" in str(program.llama.requests[2].body["messages"])


async def test_three_unusable_directives_lead_to_the_thinker_who_says_so(program: Program) -> None:
    program.llama.push("action", say("no"), say("nein"), say("нет"))
    answer = await program.chat("look")
    assert answer["status"] == "completed"
    assert "no valid directive in 3 tries" in answer["notices"][0]


async def test_a_model_that_repeats_itself_is_stopped(program: Program) -> None:
    program.llama.default("action", act("list_dir", path="."))
    answer = await program.chat("look")
    types = await program.types(answer["task_id"])
    assert types.count("tool_started") == 1
    assert types.count("tool_repeated") == 3
    assert "loop_stopped" in types
    assert "the same way again and again" in answer["notices"][0]


async def test_the_loop_ends_at_its_limit_and_goes_on_with_one_click(program: Program) -> None:
    count = iter(range(1000))
    program.llama.default("action", lambda _r: act("search_files", pattern=f"p{next(count)}"))
    answer = await program.chat("look")
    assert answer["status"] == "completed"
    assert answer["notices"] == ["the limit of 12 steps is reached"]
    program.llama.push("action", done())
    again = await program.post(f"/v1/tasks/{answer['task_id']}/continue", {})
    assert again["status"] == "completed"
    assert (await program.get(f"/v1/tasks/{answer['task_id']}"))["iterations"] == 13
    await program.post(f"/v1/tasks/{answer['task_id']}/continue", {}, status=409)


async def test_odd_replies_are_answered_honestly(program: Program) -> None:
    program.llama.push("thinker", only_reasoning("the answer is 42"))
    answer = await program.chat("?")
    assert answer["response"] == "the answer is 42"
    assert "into its reasoning" in answer["notices"][0]


async def test_a_stream_cut_in_the_middle_is_asked_for_again(program: Program) -> None:
    program.llama.push("thinker", cut("one two three four five six"), say("whole"))
    answer = await program.chat("?")
    assert answer["response"] == "whole"
    assert (await program.types(answer["task_id"])).count("model_failed") == 1


async def test_a_refusal_of_the_model_server_fails_the_task_with_its_words(program: Program) -> None:
    program.llama.push("action", http_error(400, "this model hates JSON", "invalid_request_error"))
    answer = await program.chat("?")
    assert answer["status"] == "failed"
    assert "this model hates JSON" in answer["error"]


async def test_a_context_that_is_too_small_is_said_so(program: Program) -> None:
    program.llama.push("action", overflow(9000, 8192))
    answer = await program.chat("?")
    assert answer["status"] == "failed"
    assert "8192" in answer["error"]


async def test_a_dead_model_server_pauses_the_task_and_it_goes_on_by_itself(program: Program) -> None:
    await program.llama.stop()
    answer = await program.chat("?")
    assert answer["status"] == "paused"
    assert program.llama.url in answer["waiting_for"]
    await program.llama.start()
    task = await program.until(answer["task_id"], lambda t: t["status"] == "completed", seconds=40)
    assert task["response"]


async def test_a_message_for_an_unknown_conversation_is_a_404(program: Program) -> None:
    body = {"message": "hi", "conversation_id": "00000000-0000-7000-8000-000000000000"}
    problem = await program.post("/v1/chat", body, status=404)
    assert problem["type"] == "urn:ducklm:not-found"


async def test_several_tasks_run_at_once(program: Program) -> None:
    for _ in range(3):
        program.llama.push("thinker", slow(say("one two three four five"), 0.05))
    answers = await asyncio.gather(*(program.chat(f"q{n}") for n in range(3)))
    assert {a["status"] for a in answers} == {"completed"}
    thinking = [r for r in program.llama.requests if r.body["metadata"]["role"] == "thinker"]
    assert len(thinking) == 3
    assert max(r.arrived for r in thinking) - min(r.arrived for r in thinking) < 5


async def test_cancel_in_the_middle_of_a_token_stream_frees_the_slot(program: Program) -> None:
    program.llama.push("thinker", slow(say("word " * 500), 0.05))
    async with asyncio.timeout(20):
        sending = asyncio.create_task(program.chat("long"))
        await program.llama.wait_until(lambda s: len(s.requests) == 2)
        (task,) = (await program.get("/v1/tasks"))["items"]
        await program.post(f"/v1/tasks/{task['task_id']}/cancel")
        answer = await sending
    assert answer["status"] == "cancelled"
    await program.llama.wait_until(lambda s: not s.requests[-1].finished)
    await program.post(f"/v1/tasks/{task['task_id']}/cancel", status=409)


async def test_a_hanging_server_is_cancelled_at_once(program: Program) -> None:
    program.llama.push("action", hang(600))
    async with asyncio.timeout(20):
        sending = asyncio.create_task(program.chat("hang"))
        await program.llama.wait_until(lambda s: len(s.requests) == 1)
        (task,) = (await program.get("/v1/tasks"))["items"]
        await program.post(f"/v1/tasks/{task['task_id']}/cancel", {"reason": "too slow"})
        assert (await sending)["error"] == "too slow"


async def test_pause_and_resume(program: Program) -> None:
    program.llama.push("action", slow(directive({"intent": "x", "actions": [], "done": True}), 0.05))
    sending = asyncio.create_task(program.chat("wait"))
    await program.llama.wait_until(lambda s: len(s.requests) == 1)
    (task,) = (await program.get("/v1/tasks"))["items"]
    paused = await program.post(f"/v1/tasks/{task['task_id']}/pause", {"reason": "lunch"})
    assert (paused["status"], paused["waiting_for"]) == ("paused", "lunch")
    assert (await sending)["status"] == "paused"
    resumed = await program.post(f"/v1/tasks/{task['task_id']}/resume")
    assert resumed["status"] in ("running", "completed")
    await program.until(task["task_id"], lambda t: t["status"] == "completed")


async def test_native_calls_with_unreadable_arguments_are_repaired(program: Program) -> None:
    program.llama.push("action", calls(("list_dir", "{broken")), done())
    answer = await program.chat("look")
    assert answer["status"] == "completed"
    assert "directive_rejected" in await program.types(answer["task_id"])


async def test_a_message_larger_than_the_context_is_refused_with_figures(database_url: str, tmp_path: object) -> None:
    async with start_program(database_url, tmp_path) as program:  # type: ignore[arg-type]
        program.llama.app.n_ctx = 2048
        answer = await program.chat("слово " * 5000)
        assert answer["status"] == "failed"
        assert "larger context" in answer["error"]
        assert not program.llama.requests


async def test_a_dropped_request_does_not_stop_the_task(program: Program) -> None:
    program.llama.push("thinker", slow(say("a b c d e f"), 0.1))
    with pytest.raises(httpx.ReadTimeout):
        await program.http.post("/v1/chat", json={"message": "x"}, timeout=0.3)
    (task,) = (await program.get("/v1/tasks"))["items"]
    await program.until(task["task_id"], lambda t: t["status"] == "completed")
