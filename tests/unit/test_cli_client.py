"""Finding the server, its token, and errors that come back as what they were."""

from datetime import UTC, datetime
from pathlib import Path

import httpx
import msgspec
import pytest

from api.cli.client import envelope_of, error_of, find_server, need_server, one_task
from api.cli.running import only_one, read_server_file, server_file, write_server_file
from api.contract import event_view
from api.problems import TABLE, problem_of
from api.settings import Settings
from domain import errors
from domain.events import REGISTRY, Envelope, Unreadable, decode_body

GOLDEN = sorted((Path(__file__).parents[1] / "golden" / "events").glob("*.json"))


def settings(home: Path, token: str = "") -> Settings:
    return Settings(home=str(home), token=token)


def test_no_server_is_told_with_what_to_do(tmp_path: Path) -> None:
    assert find_server(settings(tmp_path)) is None
    with pytest.raises(errors.SetupError, match="ducklm up"):
        need_server(settings(tmp_path))


def test_a_server_file_that_a_crash_left_behind_is_no_server(tmp_path: Path) -> None:
    write_server_file(tmp_path, "http://127.0.0.1:9")
    assert find_server(settings(tmp_path)) is None
    server_file(tmp_path).write_text("{half")
    assert find_server(settings(tmp_path)) is None


def test_the_token_of_this_machine_goes_to_this_machine_only(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    here, there = (find_server(settings(tmp_path), url) for url in ("http://127.0.0.1:1/", "https://duck.example"))
    assert here is not None
    assert (here.url, here.token) == ("http://127.0.0.1:1", "secret")
    assert there is not None
    assert there.token == ""
    given = find_server(settings(tmp_path, "mine"), "https://duck.example")
    assert given is not None
    assert given.token == "mine"


@pytest.mark.parametrize("url", ["duck:8000", "ftp://duck", "http://"])
def test_what_is_no_address_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(errors.BadInput, match="http://HOST:PORT"):
        find_server(settings(tmp_path), url)


def test_one_process_holds_a_home_and_takes_its_server_file_away(tmp_path: Path) -> None:
    with only_one(tmp_path):
        write_server_file(tmp_path, "http://x")
        assert read_server_file(tmp_path) is not None
        with pytest.raises(errors.SetupError, match="already running"), only_one(tmp_path):
            pass
        assert read_server_file(tmp_path) is not None, "who does not hold it takes nothing away"
    assert read_server_file(tmp_path) is None


@pytest.mark.parametrize("cls", [c for c in TABLE if c is not errors.DuckError], ids=lambda c: c.__name__)
def test_a_problem_comes_back_with_the_exit_code_of_its_error(cls: type[errors.DuckError]) -> None:
    back = error_of(
        httpx.Response(TABLE[cls].status, json=problem_of(cls("why")), request=httpx.Request("GET", "http://x"))
    )
    assert "why" in str(back)
    assert TABLE[type(back)].exit_code == TABLE[cls].exit_code


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b""])
def test_an_answer_that_is_no_problem_is_not_from_us(body: bytes) -> None:
    back = error_of(httpx.Response(502, content=body, request=httpx.Request("GET", "http://x")))
    assert isinstance(back, errors.SetupError)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda p: p.stem)
def test_every_event_comes_back_from_the_api_as_it_was(path: Path) -> None:
    was = decode_body(path.stem, path.read_bytes(), "task-x", 3, 7)
    assert envelope_of(msgspec.json.decode(msgspec.json.encode(event_view(was)))) == was


def test_events_that_cannot_be_read_come_back_as_such() -> None:
    now = datetime(2026, 12, 1, tzinfo=UTC)
    was = Envelope(7, "task-x", 3, "id", now, "tool", "x", "", Unreadable("task.future.v9", {"a": 1}, "unknown"))
    view = msgspec.json.decode(msgspec.json.encode(event_view(was)))
    assert envelope_of(view) == was
    known = next(tag for tag in REGISTRY if tag.startswith("task.created"))
    assert isinstance(envelope_of({**view, "type": known, "data": {"no": 1}}).data, Unreadable)


def test_a_task_is_meant_by_the_end_of_its_id() -> None:
    assert one_task("ab", ["x-ab"]) == "x-ab"
    with pytest.raises(errors.NotFound, match="ducklm ask"):
        one_task("last", [])
    with pytest.raises(errors.NotFound, match="ducklm tasks"):
        one_task("zz", [])
    with pytest.raises(errors.BadInput, match="2 tasks"):
        one_task("a", ["xa", "ya"])
