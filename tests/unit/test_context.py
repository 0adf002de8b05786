"""The context: append-only within a task and across a conversation, and never over its limit where it can help it."""

import random
from itertools import pairwise

import pytest

from domain.messages import Message
from domain.task import commands as c
from domain.task.context import (
    ContextInputs,
    Earlier,
    Prefix,
    build_context,
    estimate,
    next_hash,
    start_hash,
    transcript,
)
from domain.task.events import HistoryRef, TaskCreated
from domain.task.evolve import reply_message
from domain.task.state import Task
from tests.histories import Simulation
from tests.specification import TASK_ID, given


def requests_of(seed: int) -> list[tuple[list[Message], Task]]:
    """The messages of each request of a made-up task, and the state right after the request was built."""
    chance = random.Random(seed)
    simulation = Simulation(TASK_ID, chance.choice)
    seen: list[tuple[list[Message], Task]] = []
    for _ in range(200):
        before = len(simulation.events)
        simulation.run(1)
        if any(type(e).__name__ == "ContextBuilt" for e in simulation.events[before:]):
            seen.append((list(simulation.task.messages), simulation.task))
        if simulation.task.ended:
            break
    return seen


@pytest.mark.parametrize("seed", range(40))
def test_each_request_extends_the_one_before_and_its_reply(seed: int) -> None:
    requests = requests_of(seed)
    for (earlier, state), (later, _) in pairwise(requests):
        assert later[: len(earlier)] == earlier
        if state.reply is not None and len(later) > len(earlier):
            assert later[len(earlier)].role in ("assistant", "user", "tool")


@pytest.mark.parametrize("seed", range(40))
def test_roles_alternate_so_that_strict_templates_accept_them(seed: int) -> None:
    for messages, _ in requests_of(seed):
        roles = [m.role for m in messages]
        assert roles[0] == "user"
        assert all(not (a == b == "user") for a, b in pairwise(roles)), roles


def test_the_hash_chains_over_what_was_sent() -> None:
    spec = given(TaskCreated("c", "hello", "/w"))
    prefix = Prefix("sys")
    built = build_context(spec.task, "action", ContextInputs("json_schema", prefix, "act"))
    spec.when(c.RecordContext(built))
    assert built.context_sha256 == next_hash(start_hash(prefix.sha256, []), list(spec.task.messages))


def test_the_manifest_names_what_was_left_out_and_why() -> None:
    spec = given(TaskCreated("c", "hello", "/w"))
    old = Earlier(HistoryRef("t0", 9), (Message("user", "x" * 900),), 300)
    built = build_context(spec.task, "action", ContextInputs("json_schema", Prefix("sys"), "act", (), (old,)))
    left_out = [s for s in built.manifest if not s.included]
    assert [(s.source, s.reason) for s in left_out] == [("t0", "over the budget for earlier tasks")]


def test_long_observations_are_cut_in_the_middle_to_fit() -> None:
    from domain.task.context import _fitted
    from domain.task.state import Observation

    text = "начало " + "слово " * 5000 + " конец"
    (cut,) = _fitted((Observation(text, "s"),), 500)
    assert estimate(cut.text) <= 560
    assert cut.text.startswith("начало")
    assert cut.text.endswith("конец")
    assert "characters cut" in cut.text


def test_a_cancelled_task_is_history_with_its_open_ends_closed() -> None:
    for seed in range(60):
        messages = transcript(Simulation(TASK_ID, random.Random(seed).choice).run(seed % 12).task)
        if messages:
            assert messages[-1].role == "assistant"
            asked = {call.id for m in messages for call in m.tool_calls}
            assert {m.tool_call_id for m in messages if m.role == "tool"} <= asked


def test_an_answer_is_repeated_word_for_word() -> None:
    from domain.task.events import ModelReplied

    assert reply_message(ModelReplied("c", "thinker", " два  пробела ")).content == " два  пробела "
