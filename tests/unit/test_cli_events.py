"""Events in one line."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from api.cli.event_line import event_line
from api.cli.log import _likes
from api.cli.summaries import summary
from domain.events import Envelope, Unreadable, decode_body
from domain.task import events as e

GOLDEN = sorted((Path(__file__).parents[1] / "golden" / "events").glob("*.json"))
SILENT = {
    "task.completed.v1",
    "conversation.archived.v1",
    "task.resumed.v1",
    "task.approval_denied.v1",
    "task.cancelled.v1",
}
"""Those whose type says it all, when no reason was given."""


@pytest.mark.parametrize("path", GOLDEN, ids=lambda p: p.stem)
def test_every_event_is_one_line_that_says_something(path: Path) -> None:
    envelope = decode_body(path.stem, path.read_bytes(), "task-0198aaaa-0000-7000-8000-0000deadbeef", 3, 7)
    assert summary(envelope.data) or path.stem in SILENT
    line = event_line(envelope, with_stream=True, width=120).plain
    assert "\n" not in line
    assert len(line) <= 120
    assert path.stem.removesuffix(".v1") in line
    assert "deadbeef" in line
    assert "deadbeef" not in event_line(envelope, with_stream=False).plain


def test_an_event_that_cannot_be_read_says_so() -> None:
    data = Unreadable("task.future.v2", {}, "unknown event task.future.v2")
    line = event_line(Envelope(1, "task-x", 1, "", datetime.now(UTC), "runtime", "x", "", data), with_stream=True)
    assert "task.future.v2" in line.plain
    assert "can't be read: unknown event" in line.plain


def test_what_a_model_said_cannot_break_the_line() -> None:
    created = e.TaskCreated("c", "one\ntwo \x1b[2J", "/w")
    line = event_line(Envelope(1, "task-x", 1, "", datetime.now(UTC), "person", "x", "", created), with_stream=False)
    assert line.plain.endswith("one two ␛[2J")


def test_globs_become_patterns_in_which_only_stars_and_question_marks_match() -> None:
    assert _likes("task.tool_*") == [r"task.tool\_%", r"task.tool\_%.v%"]
    assert _likes("100%?") == [r"100\%_", r"100\%_.v%"]
