"""Server-sent events: deltas, resuming, heartbeats, what ends a turn."""

import asyncio

import pytest

import api.streaming
from tests.doubles.scripted_llama import act, done, say, slow
from tests.program import Program


async def test_a_chat_streams_reasoning_answer_events_and_done(program: Program) -> None:
    program.llama.push("action", done())
    program.llama.push("thinker", say("Hello there, friend.", reasoning="be kind"))
    seen = [m async for m in program.stream("POST", "/v1/chat/stream", {"message": "hi"})]
    names = [name for name, _, _ in seen]
    assert names[-1] == "done"
    assert {"event", "reasoning_delta", "content_delta", "done"} <= set(names)
    text = "".join(d["text"] for n, _, d in seen if n == "content_delta" and d["role"] == "thinker")
    assert text == "Hello there, friend."
    assert seen[-1][2]["response"] == "Hello there, friend."
    for name, id_, data in seen:
        assert (int(id_) == data["position"]) if name == "event" else id_ == ""
    positions = [d["position"] for n, _, d in seen if n == "event"]
    assert positions == sorted(set(positions))


async def test_a_stream_resumes_after_the_last_event_it_saw(program: Program) -> None:
    answer = await program.chat("hi")
    events = await program.events(answer["task_id"])
    middle = events[3]["position"]
    path = f"/v1/tasks/{answer['task_id']}/events"
    seen = [m async for m in program.stream("GET", path, **{"last-event-id": str(middle)})]
    assert [int(i) for n, i, _ in seen if n == "event"] == [e["position"] for e in events[4:]]
    assert seen[-1][0] == "done"
    await _bad_id(program, path)


async def test_streams_say_that_they_are_streams(program: Program) -> None:
    answer = await program.chat("hi")
    path = f"/v1/tasks/{answer['task_id']}/events"
    for method, url, body in (("GET", path, None), ("POST", "/v1/chat/stream", {"message": "x"})):
        async with program.http.stream(method, url, json=body, headers={"accept": "text/event-stream"}) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
    assert (await program.http.get(path)).headers["content-type"] == "application/json"
    assert (await program.http.get(path, headers={"last-event-id": ""})).status_code == 200


async def _bad_id(program: Program, path: str) -> None:
    response = await program.http.get(path, headers={"accept": "text/event-stream", "last-event-id": "abc"})
    assert response.status_code == 400


async def test_a_late_reader_first_gets_the_text_so_far(program: Program) -> None:
    program.llama.push("thinker", slow(say("alpha beta gamma delta epsilon zeta"), 0.1))
    sending = asyncio.create_task(program.chat("hi"))
    await program.llama.wait_until(lambda s: len(s.requests) == 2)
    await asyncio.sleep(0.35)
    (task,) = (await program.get("/v1/tasks"))["items"]
    text: dict[str, str] = {}
    async for name, _, data in program.stream("GET", f"/v1/tasks/{task['task_id']}/events"):
        if name == "content_delta" and data["role"] == "thinker":
            have = text.get(data["call_id"], "")
            assert data["offset"] == len(have) or data["offset"] == 0
            text[data["call_id"]] = have[: data["offset"]] + data["text"]
    assert list(text.values()) == ["alpha beta gamma delta epsilon zeta"]
    await sending


async def test_many_readers_reconnecting_at_random_miss_nothing(program: Program) -> None:
    (program.workspace / "a.txt").write_text("x")
    program.llama.push("action", *(slow(act("search_files", pattern=f"p{n}"), 0.01) for n in range(8)), done())
    sending = asyncio.create_task(program.chat("hi"))
    await program.llama.wait_until(lambda s: len(s.requests) >= 1)
    (task,) = (await program.get("/v1/tasks"))["items"]
    path = f"/v1/tasks/{task['task_id']}/events"

    async def read(leave_after: int) -> list[int]:
        got: list[int] = []
        while True:
            count = 0
            async for name, id_, _ in program.stream("GET", path, **{"last-event-id": str(got[-1] if got else 0)}):
                if name == "done":
                    return got
                if name == "event":
                    got.append(int(id_))
                    count += 1
                    if count == leave_after:
                        break

    readers = await asyncio.gather(*(read(1 + n % 5) for n in range(20)))
    await sending
    expected = [e["position"] for e in await program.events(task["task_id"])]
    assert all(r == expected for r in readers)


async def test_a_stream_of_a_waiting_task_stays_open_and_beats(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api.streaming, "HEARTBEAT_SECONDS", 0.05)
    program.llama.push("action", act("shell_exec", command="echo hi > f"), done())
    answer = await program.chat("do")
    beats, names = 0, []
    async for name, _, _ in program.stream("GET", f"/v1/tasks/{answer['task_id']}/events"):
        names.append(name)
        beats += name == "heartbeat"
        if beats == 3:
            await program.post(f"/v1/approvals/{answer['pending_approvals'][0]['approval_id']}/allow_once")
            beats += 1
    assert names[-1] == "done"


async def test_the_turn_of_a_message_ends_when_its_task_waits(program: Program) -> None:
    program.llama.push("action", act("shell_exec", command="echo hi > f"), done())
    seen = [m async for m in program.stream("POST", "/v1/chat/stream", {"message": "do"})]
    assert seen[-1][0] == "done"
    assert seen[-1][2]["status"] == "waiting_for_approval"
    assert seen[-1][2]["pending_approvals"]


async def test_live_output_of_a_command_is_streamed(program: Program) -> None:
    program.llama.push("action", act("shell_exec", command="for i in 1 2 3; do echo line $i; sleep 0.1; done"), done())
    answer = await program.chat("do")
    await program.post(f"/v1/approvals/{answer['pending_approvals'][0]['approval_id']}/allow_once")
    output = ""
    async for name, _, data in program.stream("GET", f"/v1/tasks/{answer['task_id']}/events"):
        if name == "tool_output":
            output = output[: data["offset"]] + data["text"]
    assert output.split() == ["line", "1", "line", "2", "line", "3"]


async def test_a_slow_reader_is_served_again_from_the_log(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api.streaming, "QUEUE", 3)
    program.llama.push("thinker", say("word " * 300))
    seen = [m async for m in program.stream("POST", "/v1/chat/stream", {"message": "hi"})]
    expected = [e["position"] for e in await program.events(seen[-1][2]["task_id"])]
    assert [d["position"] for n, _, d in seen if n == "event"] == expected
