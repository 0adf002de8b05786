"""Looking back at a task: any moment of any possible history, and contexts that were tampered with."""

import random
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from api.cli.replay_view import as_json, print_moment
from domain.errors import BadInput, NotFound
from domain.events import Envelope, Event, Unreadable, tag_of
from domain.messages import Message
from domain.task import events as e
from domain.task.context import ContextInputs, Earlier, Prefix, build_context
from domain.task.evolve import evolve, fold
from domain.task.replay import changes, moment
from domain.task.state import Task
from domain.task.timeline import arguments_line, timeline
from tests.histories import Simulation

TASK = "0198aaaa-0000-7000-8000-000000000001"
NOW = datetime(2026, 12, 1, tzinfo=UTC)


def logged(events: list[Event]) -> list[Envelope]:
    return [Envelope(n, f"task-{TASK}", n, f"e{n}", NOW, "runtime", TASK, "", data) for n, data in enumerate(events, 1)]


def made_up(seed: int, steps: int = 60) -> list[Envelope]:
    return logged(Simulation(TASK, random.Random(seed).choice).run(steps).events)


def no_history(refs: tuple[e.HistoryRef, ...]) -> list[Message]:
    assert not refs
    return []


def broken(log: list[Envelope], index: int) -> list[Envelope]:
    """The same log, one event of which can't be read any more."""
    bad = replace(log[index], data=Unreadable(tag_of(log[index].data), {"x": 1}, "invalid"))
    return [*log[:index], bad, *log[index + 1 :]]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000))
def test_every_context_of_every_history_is_as_recorded(seed: int) -> None:
    log = made_up(seed)
    seen = moment(TASK, log, no_history)
    assert seen.state == fold(TASK, log)
    assert [c.version for c in seen.checks] == [v.version for v in log if isinstance(v.data, e.ContextBuilt)]
    assert all(check.verdict == "ok" for check in seen.checks)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.data())
def test_any_moment_is_the_fold_up_to_it_and_can_be_shown(seed: int, data: st.DataObject) -> None:
    log = made_up(seed)
    at = data.draw(st.integers(1, len(log)))
    seen = moment(TASK, log, no_history, at)
    assert seen.state == fold(TASK, log[:at])
    assert seen.event == log[at - 1]
    decoded = msgspec.json.decode(msgspec.json.encode(as_json(seen, None, "")))
    assert decoded["at"] == at
    assert decoded["state"]["version"] == at


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.data())
def test_an_event_that_cannot_be_read_hides_nothing_and_accuses_nobody(seed: int, data: st.DataObject) -> None:
    log = made_up(seed)
    index = data.draw(st.integers(0, len(log) - 1))
    seen = moment(TASK, broken(log, index), no_history)
    assert seen.last == len(log)
    assert [u.version for u in seen.unreadable] == [index + 1]
    for check in seen.checks:
        assert check.verdict == "ok" if check.version < index + 1 else check.verdict in ("ok", "unknown")
    assert len(timeline(broken(log, index))) <= len(timeline(log))


def test_a_context_that_is_not_what_was_recorded_is_found_and_those_after_it_stay_ok() -> None:
    log = next(log for seed in range(100) if contexts(log := made_up(seed)) > 2)
    index = next(i for i, v in enumerate(log) if isinstance(v.data, e.ContextBuilt))
    built = log[index].data
    assert isinstance(built, e.ContextBuilt)
    suffix = (*built.suffix, e.Said(Message("user", "planted")))
    log[index] = replace(log[index], data=replace(built, suffix=suffix))
    seen = moment(TASK, log, no_history)
    assert [c.verdict for c in seen.checks][:2] == ["mismatch", "ok"]
    assert seen.verdict == "mismatch", "a piece of the last context is that piece"
    assert seen.first_bad == seen.checks[0]


def contexts(log: list[Envelope]) -> int:
    return sum(isinstance(v.data, e.ContextBuilt) for v in log)


def test_earlier_tasks_are_part_of_the_hash_and_when_they_are_gone_it_is_unknown() -> None:
    ref, said = e.HistoryRef("t0", 5), (Message("user", "before"), Message("assistant", "yes"))
    created = e.TaskCreated("c", "now", "/w")
    inputs = ContextInputs("json_schema", Prefix("system"), "Do.", (Earlier(ref, said, 10),))
    built = build_context(evolve(Task(TASK), created), "action", inputs)
    log = logged([created, built])

    def gone(refs: tuple[e.HistoryRef, ...]) -> list[Message]:
        raise NotFound(f"there is no task {refs[0].task_id}")

    assert [c.verdict for c in moment(TASK, log, lambda refs: said).checks] == ["ok"]
    assert [c.verdict for c in moment(TASK, log, lambda refs: said[:1]).checks] == ["mismatch"]
    assert [c.verdict for c in moment(TASK, log, gone).checks] == ["unknown"]


@pytest.mark.parametrize("at", [0, -1, 99_999])
def test_a_version_there_is_not_is_refused_with_those_there_are(at: int) -> None:
    log = made_up(1)
    with pytest.raises(BadInput, match=f"1 to {len(log)}"):
        moment(TASK, log, no_history, at)


def test_changes_tell_what_went_and_what_came() -> None:
    before = Task(TASK, notices=("a", "b"), iterations=1)
    after = replace(before, notices=("a", "c", "d"), iterations=2, version=9)
    found = {c.field: (c.before, c.after) for c in changes(before, after)}
    assert found == {"notices": (("b",), ("c", "d")), "iterations": (1, 2)}


def test_the_moment_is_shown_to_people(capsys: pytest.CaptureFixture[str]) -> None:
    log = next(log for seed in range(100) if contexts(log := made_up(seed)) > 1)
    seen = moment(TASK, log, no_history)
    print_moment(seen, (Prefix("You are \x1b[31mDuckLM."), [Message("system", "You are \x1b[31mDuckLM.")]), "")
    shown = capsys.readouterr().out
    assert f"version {len(log)} of {len(log)}" in shown
    assert "hash ok" in shown
    assert "You are ␛[31mDuckLM." in shown


def test_the_timeline_tells_cost_and_outcome_of_each_call() -> None:
    log = logged(
        [
            e.TaskCreated("c", "m", "/w"),
            e.ModelRequested("m1", "action", 1, "w", "m", 0.1, 10),
            e.ModelReplied("m1", "action", "", usage=e.Usage(100, 5, 80), latency_ms=12.0),
            e.ActionDirected("m1", "look", (e.Planned("t1", "list_dir", {"path": "."}),), False),
            e.ToolRequested("t1", "list_dir", {"path": "src"}, "repeatable", "s", "f"),
            e.ToolStarted("t1", 1, "w"),
            e.ToolObserved("t1", "list_dir", True, "x", latency_ms=3.0),
            e.ToolRepeated("t2", "list_dir", {"path": "src"}, "f", "t1", 2),
            e.ModelRequested("m2", "thinker", 2, "w", "m", 0.1, 10),
        ]
    )
    model, tool, again, open_call = timeline(log)
    assert (model.name, model.outcome, model.text) == ("action", "1 action", "look")
    assert (model.prefilled_tokens, model.cached_tokens, model.cache_share, model.ms) == (20, 80, 0.8, 12.0)
    assert (tool.name, tool.text, tool.outcome, tool.ms, tool.cache_share) == ("list_dir", "src", "ok", 3.0, None)
    assert again.outcome == "not run again (2)"
    assert (open_call.outcome, open_call.attempts) == ("running", 2)


def test_arguments_in_a_line_leave_out_defaults_but_nothing_else() -> None:
    assert arguments_line("shell_exec", {"command": "ls -la", "timeout": 120, "wait": 0}) == "ls -la"
    assert arguments_line("shell_exec", {"command": "make", "timeout": 5, "wait": 0}) == "make timeout=5"
    assert arguments_line("file_write", {"path": "a", "content": "xyz"}) == "a (3 characters)"
    assert arguments_line("unknown", {"b": 1}) == "b=1"
    assert arguments_line("list_dir", {}) == ""
