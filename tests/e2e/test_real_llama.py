"""One task on the real llama.cpp with the small model: its words are poor; protocol, streaming, constrained output,
timings, cache and cancel are what is checked."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from api.bootstrap import make_runtime
from api.server import address, listen, running
from api.settings import load_settings
from tests.doubles.scripted_llama import ScriptedLlama
from tests.program import TOKEN, Program

pytestmark = [pytest.mark.llama, pytest.mark.slow, pytest.mark.xdist_group("llama")]


@pytest.fixture
async def program(database_url: str, tmp_path: Path) -> AsyncIterator[Program]:
    settings = load_settings(
        {}, home=str(tmp_path), database_url=database_url, token=TOKEN, port=0, log_level="error", threads=2
    )
    sock = listen(settings)
    runtime = await make_runtime(settings)
    assert runtime.model_engine is not None
    await runtime.model_engine.wait_ready()
    async with running(runtime, sock):
        program = Program(runtime, ScriptedLlama(), address(sock), settings.workspace_path)
        program.http.timeout = 300
        yield program
        await program.http.aclose()


async def test_a_task_on_the_real_engine(program: Program) -> None:
    (program.workspace / "duck.txt").write_text("quack\n")
    status = await program.get("/v1/status")
    assert status["engine"]["smoke_test_model"] is True
    seen = [m async for m in program.stream("POST", "/v1/chat/stream", {"message": "List the files, please."})]
    answer = seen[-1][2]
    assert seen[-1][0] == "done"
    if answer["status"] == "waiting_for_approval":  # whatever it wanted to run
        await program.post(f"/v1/tasks/{answer['task_id']}/cancel")
        return
    assert answer["status"] == "completed", answer
    events = [d for n, _, d in seen if n == "event"]
    replies = [e["data"] for e in events if e["type"] == "task.model_replied.v1"]
    assert all(r["timings"]["predicted_n"] > 0 and r["usage"]["prompt_tokens"] > 0 for r in replies)
    assert all(r["timings"]["cache_n"] > 0 for r in replies[1:]), "each request begins with the one before"
    directed = [e for e in events if e["type"] in ("task.action_directed.v1", "task.directive_rejected.v1")]
    assert directed
    streamed = "".join(d["text"] for n, _, d in seen if n == "content_delta" and d["role"] == "thinker")
    assert streamed.strip() == answer["response"]
    chosen = [e for e in program.runtime.database.store.read(0, 100) if e.type == "server.transport_chosen.v1"]
    assert len(chosen) == 1


async def test_cancel_stops_the_real_engine(program: Program) -> None:
    sending = asyncio.create_task(program.chat("Write a very long story about a duck."))
    await asyncio.sleep(0)
    for _ in range(600):
        tasks = (await program.get("/v1/tasks"))["items"]
        if tasks and "model_requested" in await program.types(tasks[0]["task_id"]):
            break
        await asyncio.sleep(0.05)
    await program.post(f"/v1/tasks/{tasks[0]['task_id']}/cancel")
    assert (await sending)["status"] == "cancelled"
    engine = program.runtime.model_engine
    assert engine is not None
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {engine.api_key}"}) as client:
        for _ in range(200):
            slots = (await client.get(f"{engine.info.url}/slots")).json()
            assert len(slots) == 2
            if not any(s["is_processing"] for s in slots):
                return
            await asyncio.sleep(0.05)
    pytest.fail("a slot is still working")
