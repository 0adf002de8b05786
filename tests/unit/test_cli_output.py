"""How commands speak."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.cli.output import ago, duration, fail, one_line, print_table, safe, share
from api.cli.tally import Shown, Tally
from api.problems import TABLE
from domain import errors
from domain.model import Usage
from domain.task.events import ModelReplied


@given(st.text())
def test_no_text_of_a_model_can_steer_the_terminal(text: str) -> None:
    shown = safe(text)
    assert not any(ord(c) < 32 and c not in "\n\t" for c in shown)
    assert not any(0x7F <= ord(c) < 0xA0 or 0x202A <= ord(c) <= 0x202E or 0x2066 <= ord(c) <= 0x2069 for c in shown)
    shown.encode()


def test_what_is_hidden_is_shown_and_the_rest_stays() -> None:
    assert safe("\x1b[31mred\r\nтекст\t\u202e") == "␛[31mred\nтекст\t<U+202E>"
    assert one_line("a\n  b\tc") == "a b c"
    assert one_line("abcdef", 4) == "abc…"


def test_times_and_shares_in_words() -> None:
    now = datetime(2026, 12, 1, tzinfo=UTC)
    assert ago(now - timedelta(seconds=3), now) == "just now"
    assert ago((now - timedelta(minutes=5)).isoformat(), now) == "5 min ago"
    assert ago(now - timedelta(days=2, hours=3), now) == "2 d ago"
    assert [duration(5), duration(1500), duration(61_000)] == ["5 ms", "1.5 s", "1 min 1 s"]
    assert [share(None), share(0.805)] == ["–", "80%"]


@pytest.mark.parametrize("cls", TABLE, ids=lambda cls: cls.__name__)
def test_every_error_has_its_exit_code_and_is_told(
    cls: type[errors.DuckError], capsys: pytest.CaptureFixture[str]
) -> None:
    assert fail(cls("it [broke] \x1b[2J")) == TABLE[cls].exit_code != 0
    assert "it [broke] ␛[2J" in capsys.readouterr().err
    assert fail(cls("it broke"), as_json=True) == TABLE[cls].exit_code
    problem = json.loads(capsys.readouterr().err)
    assert problem["detail"] == "it broke"
    assert problem["status"] == TABLE[cls].status


def test_a_table_for_a_pipe_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("id", ">n", "~text"), [("a" * 36, 7, "word " * 200)], "nothing")
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["id", "n", "text"]
    assert row.count("word") == 200
    print_table(("id",), [], "nothing here")
    assert capsys.readouterr().out == "nothing here\n"


def test_what_is_sent_twice_is_shown_once() -> None:
    shown = Shown()
    assert shown.new_part("c", "content", 0, "abc") == "abc"
    assert shown.new_part("c", "content", 3, "de") == "de"
    assert shown.new_part("c", "content", 0, "abcdefg") == "fg", "the text so far, after a reconnect"
    assert shown.new_part("c", "content", 0, "abc") == ""
    assert shown.new_part("c", "reasoning", 0, "x") == "x"
    assert shown.new_part("c", "content", 10, "z") == "[…]z", "what never came is told of"
    assert shown.forget("c")
    assert shown.new_part("c", "content", 0, "new") == "new"
    assert not shown.forget("other")


@given(st.text(max_size=40), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=10))
def test_overlapping_pieces_always_give_the_text(text: str, spans: list[tuple[int, int]]) -> None:
    shown, seen = Shown(), ""
    for start, length in [*spans, (0, len(text))]:
        offset = min(start, len(seen))
        seen += shown.new_part("c", "content", offset, text[offset : offset + length])
    assert seen == text


def test_the_cost_of_a_turn_leaves_out_what_nobody_counted() -> None:
    tally = Tally()
    assert tally.line().startswith("0 model calls · 0.")
    tally.add(ModelReplied("c", "action", "", usage=Usage(1000, 20, 800)))
    assert "1 model call · 1,000 tokens read (80% from the cache) · 20 written" in tally.line()
