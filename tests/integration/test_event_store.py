"""The log on a real Postgres: order, conflicts, idempotency, bad bodies, many writers."""

import threading

import psycopg
import pytest

from adapters.store.blobs import Blobs
from adapters.store.event_store import DuplicateCommand, EventStore, Write
from adapters.store.recorder import TABLE, OneTripRecorder
from adapters.store.tasks import SNAPSHOT_EVERY, Aggregates
from domain.errors import ConcurrencyConflict, NotFound, StorageError
from domain.events import Unreadable
from domain.ids import task_stream
from domain.task.events import TaskCancelled, TaskCreated, TaskPaused, TaskResumed

CREATED = TaskCreated("c", "привет \x00 \u202e 🦆", "/w")


def test_what_is_appended_is_read_back_with_position_cause_and_time(store: EventStore) -> None:
    stored = store.append([Write("task-1", 0, [CREATED, TaskPaused("x")])], correlation_id="1", caused_by="before")
    assert [e.position for e in stored] == [1, 2]
    assert store.load("task-1") == stored == store.read(0, 10)
    assert stored[0].causation_id == "before"
    assert stored[1].causation_id == stored[0].id
    assert stored[0].time.utcoffset() is not None


def test_an_append_to_a_stream_that_has_moved_on_is_a_conflict_and_changes_nothing(store: EventStore) -> None:
    store.append([Write("task-1", 0, [CREATED])])
    with pytest.raises(ConcurrencyConflict):
        store.append([Write("task-2", 0, [CREATED]), Write("task-1", 0, [CREATED])])
    assert store.head() == 1
    assert store.load("task-2") == []


def test_a_command_key_counts_once(store: EventStore) -> None:
    store.append([Write("task-1", 0, [CREATED])], command_key="k")
    with pytest.raises(DuplicateCommand):
        store.append([Write("task-2", 0, [CREATED])], command_key="k")
    assert store.head() == 1


def test_the_key_is_inserted_in_the_transaction_of_the_append(store: EventStore) -> None:
    store.append([Write("task-1", 0, [CREATED])])
    with pytest.raises(ConcurrencyConflict):
        store.append([Write("task-1", 0, [CREATED])], command_key="k")
    assert not store.used("k")


def test_our_own_append_that_was_committed_and_then_retried_is_no_conflict(store: EventStore) -> None:
    """The library retries after a lost connection; the second try meets the events of the first."""
    put, tries = store._log.events.put, []

    def twice(envelopes: object, **kwargs: object) -> object:
        tries.append(put(envelopes, **kwargs))  # type: ignore[arg-type]
        return put(envelopes, **kwargs)  # type: ignore[arg-type]

    store._log.events.put = twice  # type: ignore[method-assign, assignment]
    stored = store.append([Write("task-1", 0, [CREATED])])
    assert [e.position for e in stored] == [1]
    assert len(tries) == 1


def test_more_than_a_chunk_of_events_over_the_unix_socket(store: EventStore) -> None:
    stored = store.append([Write("task-1", 0, [TaskPaused(str(n)) for n in range(1200)])])
    assert [e.version for e in stored] == list(range(1, 1201))
    assert store.head() == 1200


def test_a_bad_body_hides_nothing(store: EventStore) -> None:
    store.append([Write(task_stream("1"), 0, [CREATED])])
    with psycopg.connect(store.conninfo) as conn:
        conn.execute(
            f"INSERT INTO {TABLE} (originator_id, originator_version, topic, state) VALUES (%s, 2, 'task.x.v9', '{{')",
            (task_stream("1"),),
        )
    store.append([Write(task_stream("1"), 2, [TaskCancelled("enough")])])
    log = store.load(task_stream("1"))
    assert isinstance(log[1].data, Unreadable)
    assert Aggregates(store).task("1").state.status == "cancelled"


def test_psql_reads_events_as_json(store: EventStore) -> None:
    store.append([Write("task-1", 0, [TaskPaused("обед")])])
    with psycopg.connect(store.conninfo) as conn:
        assert conn.execute("SELECT type, body->'data'->>'reason' FROM event_log").fetchall() == [
            ("task.paused.v1", "обед")
        ]


def test_eight_writers_and_a_tailing_reader_skip_nothing(store: EventStore, database_url: str) -> None:
    each, writers = 250, 8
    others = [EventStore(database_url, pool_size=1) for _ in range(writers)]
    seen: list[int] = []
    ended = threading.Event()

    def write(own: EventStore, n: int) -> None:
        for i in range(each):
            own.append([Write(f"task-{n}-{i}", 0, [TaskPaused("x")] * (1 + i % 3))])

    def tail() -> None:
        while True:
            last = ended.is_set()
            batch = store.read(seen[-1] if seen else 0, 500)
            seen.extend(e.position for e in batch)
            if last and not batch:
                return

    threads = [threading.Thread(target=write, args=(own, n)) for n, own in enumerate(others)]
    reader = threading.Thread(target=tail)
    reader.start()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    ended.set()
    reader.join()
    for own in others:
        own.close()
    with psycopg.connect(database_url) as conn:
        stored = [r[0] for r in conn.execute(f"SELECT notification_id FROM {TABLE} ORDER BY 1")]
    assert seen == stored
    assert len(seen) == writers * sum(1 + i % 3 for i in range(each))


def test_blobs_are_kept_once_under_their_hash(store: EventStore) -> None:
    blobs = Blobs(store)
    sha = blobs.put(b"\x00binary")
    assert blobs.put(b"\x00binary") == sha
    assert blobs.get(sha) == b"\x00binary"
    with pytest.raises(NotFound):
        blobs.get("0" * 64)


def test_a_snapshot_changes_nothing_but_the_time_it_takes(store: EventStore) -> None:
    aggregates = Aggregates(store)
    events = [CREATED]
    for n in range(SNAPSHOT_EVERY):
        events += [TaskPaused(str(n)), TaskResumed()]
    store.append([Write(task_stream("1"), 0, events)])
    whole = aggregates.task("1")
    assert aggregates._snapshot(task_stream("1")) is not None
    store.append([Write(task_stream("1"), whole.state.version, [TaskCancelled("x")])], caused_by=whole.last_event_id)
    from domain.task.evolve import fold

    assert aggregates.task("1").state == fold("1", store.load(task_stream("1")))
    assert aggregates.task("1", at=2).state.status == "paused"


@pytest.fixture
def closed_port_url() -> str:
    return "host=127.0.0.1 port=1 user=nobody dbname=nothing connect_timeout=1"


def test_a_database_that_is_not_there_is_a_clear_error(closed_port_url: str) -> None:
    with pytest.raises(StorageError, match="can't be opened"):
        EventStore(closed_port_url)


def test_the_log_is_in_postgres_and_keeps_the_table_lock(database_url: str, store: EventStore) -> None:
    recorder = store._log.recorder
    assert isinstance(recorder, OneTripRecorder)
    assert recorder.datastore.enable_db_functions is False
    with psycopg.connect(store.conninfo) as other:
        other.execute(f"LOCK TABLE {TABLE} IN EXCLUSIVE MODE")
        waiting = threading.Thread(target=store.append, args=([Write("task-1", 0, [CREATED])],))
        waiting.start()
        waiting.join(0.5)
        assert waiting.is_alive(), "an append must wait for whoever holds the table"
        assert store.head() == 0, "readers need not wait"
        other.rollback()
    waiting.join(20)
    assert store.head() == 1


def test_many_processes_may_make_the_tables_at_once(database_url: str) -> None:
    errors: list[Exception] = []

    def open_it() -> None:
        try:
            EventStore(database_url, pool_size=1).close()
        except StorageError as error:
            errors.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == []
