"""Laws that hold for every possible history of a task."""

from datetime import UTC, datetime

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.events import Envelope, Event, Unreadable, decode_body, encode_body, tag_of
from domain.ids import task_stream
from domain.task.evolve import evolve, fold
from domain.task.react import react
from domain.task.state import Task
from tests.histories import Simulation

TASK_ID = "t-1"


@st.composite
def simulations(draw: st.DrawFn, steps: int = 60) -> Simulation:
    choose = lambda options: draw(st.sampled_from(options))  # noqa: E731 - a name would say nothing more
    return Simulation(TASK_ID, choose).run(draw(st.integers(1, steps)))


def enveloped(events: list[Event]) -> list[Envelope]:
    time = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        Envelope(n, task_stream(TASK_ID), n, f"e{n}", time, "runtime", TASK_ID, "", e) for n, e in enumerate(events, 1)
    ]


@given(simulations())
@settings(max_examples=150, deadline=None)
def test_the_state_is_the_fold_of_the_stored_events(simulation: Simulation) -> None:
    stored = [
        decode_body(tag_of(e.data), encode_body(e), e.stream, e.version, e.position)
        for e in enveloped(simulation.events)
    ]
    assert not [e for e in stored if isinstance(e.data, Unreadable)]
    assert fold(TASK_ID, stored) == simulation.task


@given(simulations(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_a_fold_never_raises_whatever_is_missing_or_out_of_order(simulation: Simulation, chance: object) -> None:
    events = [*simulation.events, Unreadable("task.future.v9", {"a": 1}, "unknown")]
    chance.shuffle(events)  # type: ignore[attr-defined]
    state = Task(task_id=TASK_ID)
    for event in events[: len(events) * 2 // 3]:
        state = evolve(state, event)
        react(state)


@given(simulations())
@settings(max_examples=150, deadline=None)
def test_at_most_one_effect_is_open(simulation: Simulation) -> None:
    """Between a start and its outcome nothing else starts."""
    started: set[str] = set()
    for event in simulation.events:
        name = type(event).__name__
        if name in ("ModelRequested", "ToolStarted"):
            assert not started - {event.call_id}  # type: ignore[attr-defined]
            started.add(event.call_id)  # type: ignore[attr-defined]
        if name in ("ModelReplied", "ToolObserved", "ToolFailed", "ToolOutcomeUncertain", "TaskFailed"):
            started.clear()


@given(simulations())
@settings(max_examples=150, deadline=None)
def test_an_unsafe_tool_never_starts_twice(simulation: Simulation) -> None:
    unsafe = {e.call_id for e in simulation.events if type(e).__name__ == "ToolRequested" and e.safety == "unsafe"}
    starts = [e.call_id for e in simulation.events if type(e).__name__ == "ToolStarted"]
    assert all(starts.count(call_id) <= 1 for call_id in unsafe)


def test_a_task_comes_to_an_end_when_its_world_answers() -> None:
    """Every effect done and every question answered, a task ends within its limits whatever the model says."""
    for seed in range(200):
        import random

        chance = random.Random(seed)
        simulation = Simulation(TASK_ID, chance.choice).run(600)
        assert simulation.task.ended, (seed, simulation.task.status, react(simulation.task))


@given(simulations(30))
@settings(max_examples=60, deadline=None)
def test_a_snapshot_gives_the_state_back(simulation: Simulation) -> None:
    packed = msgspec.msgpack.encode(simulation.task)
    assert msgspec.msgpack.decode(packed, type=Task) == simulation.task
