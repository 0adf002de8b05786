"""Projections: rebuild equals live, batches count once, a poisoned event parks one of them only."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, select, text

from adapters.runtime.worker import install_queue
from adapters.store.event_store import EventStore, Write, new_id
from api.database import sql_engine
from domain import conversation as conv
from domain import grants
from domain.errors import NotFound
from domain.events import Envelope, tag_of_class
from domain.ids import GRANTS_STREAM, conversation_stream, task_stream
from domain.task.events import ApprovalGranted, TaskCreated, TaskPaused
from projections import checkpoints
from projections.base import Rows
from projections.catalogue import READ_MODELS, all_projections
from projections.rebuild import Rebuilder
from projections.runner import ProjectionRunner
from projections.tasks import TasksProjection
from tests.histories import Simulation


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    install_queue(database_url)
    made = sql_engine(database_url)
    yield made
    made.dispose()


@pytest.fixture
def runner(store: EventStore, engine: Engine) -> ProjectionRunner:
    made = ProjectionRunner(engine, store, all_projections())
    made.ensure()
    return made


def fill(store: EventStore, seed: int, tasks: int = 6) -> None:
    """Interleaved histories of several tasks in two conversations, with grants."""
    chance = random.Random(seed)
    owners = [conv.Conversation(new_id()) for _ in range(2)]
    versions = {o.conversation_id: 0 for o in owners}
    granted = 0
    for n in range(tasks):
        owner = chance.choice(owners)
        task_id = new_id()
        simulation = Simulation(task_id, chance.choice, owner.conversation_id).run(chance.randrange(80))
        events: list[Any] = [] if versions[owner.conversation_id] else [conv.ConversationStarted("t\x00", "/w")]
        events += [conv.MessageAdded(f"m{n}", task_id, "user", "привет"), conv.ConversationRenamed(f"title {n}")]
        store.append([Write(conversation_stream(owner.conversation_id), versions[owner.conversation_id], events)])
        versions[owner.conversation_id] += len(events)
        done = 0
        while done < len(simulation.events):
            part = simulation.events[done : done + chance.randrange(1, 9)]
            store.append([Write(task_stream(task_id), done, part)], correlation_id=task_id)
            done += len(part)
            if any(isinstance(e, ApprovalGranted) and e.scope == "forever" for e in part):
                issued = grants.GrantIssued(f"g{granted}", "shell_exec", "/w", {}, "ab", task_id)
                store.append([Write(GRANTS_STREAM, granted, [issued])])
                granted += 1


def contents(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    out = {}
    with engine.connect() as conn:
        for cls in READ_MODELS.values():
            for name, table in cls().tables.items():
                key = next(iter(table.primary_key.columns))
                out[name] = [tuple(r) for r in conn.execute(select(table).order_by(key))]
    return out


@pytest.mark.parametrize("seed", range(12))
def test_rebuilt_equals_live_for_every_projection(
    seed: int, store: EventStore, engine: Engine, runner: ProjectionRunner
) -> None:
    chance = random.Random(seed)
    for part in range(3):
        fill(store, seed * 10 + part, 3)
        if chance.random() < 0.7:
            runner.catch_up()
    runner.catch_up()
    rebuilder = Rebuilder(engine, store)
    live = contents(engine)
    assert live["tasks"]
    assert live["messages"]
    for name in READ_MODELS:
        assert rebuilder.verify(name) == []
        rebuilder.rebuild(name)
    assert contents(engine) == live


def test_one_event_at_a_time_equals_all_at_once(store: EventStore, engine: Engine, runner: ProjectionRunner) -> None:
    fill(store, 99, 4)
    for projection in runner.projections:
        while runner._step(projection, 1):
            pass
    singly = contents(engine)
    for name in READ_MODELS:
        Rebuilder(engine, store).rebuild(name)
    assert contents(engine) == singly


def test_verify_finds_a_row_that_was_changed_by_hand(
    store: EventStore, engine: Engine, runner: ProjectionRunner
) -> None:
    fill(store, 1)
    runner.catch_up()
    with engine.begin() as conn:
        conn.execute(
            text("UPDATE rm_tasks_v1 SET title = 'forged' WHERE task_id = (SELECT min(task_id) FROM rm_tasks_v1)")
        )
    found = Rebuilder(engine, store).verify("tasks")
    assert {d.side for d in found} == {"live", "rebuilt"}
    assert any(d.row["title"] == "forged" for d in found)
    Rebuilder(engine, store).rebuild("tasks")
    assert Rebuilder(engine, store).verify("tasks") == []


def test_a_poisoned_event_parks_one_projection_and_says_where(
    store: EventStore, engine: Engine, runner: ProjectionRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, 2, 2)
    runner.catch_up()
    (bad,) = store.append([Write(task_stream("poison"), 0, [TaskCreated("c", "boom", "/w")])], correlation_id="poison")
    store.append([Write(task_stream("poison"), 1, [TaskPaused("x")])], correlation_id="poison")
    tasks = next(p for p in runner.projections if isinstance(p, TasksProjection))
    tag, original = tag_of_class(TaskCreated), TasksProjection.handlers[TaskCreated]

    def explode(rows: Rows, e: Envelope) -> None:
        if e.correlation_id == "poison":
            raise ValueError("cannot digest this")
        original(rows, e)

    monkeypatch.setitem(tasks._by_tag, tag, explode)
    runner.catch_up()
    with engine.connect() as conn:
        standing = {c["name"]: c for c in checkpoints.all_checkpoints(conn)}
    assert standing["tasks"]["parked_position"] == bad.position
    assert "cannot digest this" in standing["tasks"]["parked_reason"]
    assert standing["tasks"]["position"] == bad.position - 1
    assert all(c["position"] == store.head() for n, c in standing.items() if n != "tasks")
    again = ProjectionRunner(engine, store, all_projections())
    again.ensure()
    again.catch_up()
    assert Rebuilder(engine, store).verify("tasks") == []


def test_a_crash_in_the_middle_of_a_batch_counts_nothing_twice(
    store: EventStore, engine: Engine, runner: ProjectionRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, 3)
    moved = checkpoints.move
    times = iter([True, True, False])

    def die(*args: Any, **kwargs: Any) -> None:
        if next(times, False):
            raise RuntimeError("killed between the tables and the checkpoint")
        moved(*args, **kwargs)

    monkeypatch.setattr(checkpoints, "move", die)
    runner.catch_up()
    for name in READ_MODELS:
        assert Rebuilder(engine, store).verify(name) == []


def test_jobs_are_deferred_once_for_each_event_that_wakes_a_task(
    store: EventStore, engine: Engine, runner: ProjectionRunner
) -> None:
    store.append([Write(task_stream("a"), 0, [TaskCreated("c", "m", "/w")])], correlation_id="a")
    runner.catch_up()
    store.append([Write(task_stream("a"), 1, [TaskPaused("lunch")])], correlation_id="a")
    store.append([Write(task_stream("a"), 2, [TaskPaused("gone", resumes="model")])], correlation_id="a")
    runner.catch_up()
    with engine.connect() as conn:
        jobs = conn.execute(
            text("SELECT lock, args->>'task_id', scheduled_at IS NULL FROM procrastinate_jobs ORDER BY id")
        )
        assert [tuple(j) for j in jobs] == [("a", "a", True), ("a", "a", False)]


def test_an_unknown_projection_is_named_with_those_there_are(store: EventStore, engine: Engine) -> None:
    with pytest.raises(NotFound, match="there are: tasks, conversations"):
        Rebuilder(engine, store).rebuild("tusks")


def test_readers_see_no_gap_while_a_projection_is_rebuilt(
    store: EventStore, engine: Engine, runner: ProjectionRunner
) -> None:
    import threading

    fill(store, 4)
    runner.catch_up()
    with engine.connect() as conn:
        count = conn.execute(text("SELECT count(*) FROM rm_tasks_v1")).scalar()
    stop, seen, errors = threading.Event(), set(), []

    def read() -> None:
        while not stop.is_set():
            try:
                with engine.connect() as conn:
                    seen.add(conn.execute(text("SELECT count(*) FROM rm_tasks_v1")).scalar())
            except Exception as error:
                errors.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(5):
        Rebuilder(engine, store).rebuild("tasks")
    stop.set()
    reader.join()
    assert errors == []
    assert seen == {count}
