"""docs/cli.md and the help tell every command and every option."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App

from api.cli.main import app

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"
EVERYWHERE = {"*", "--json", "--home", "--url", "--help", "--version", "-h"}


def commands(owner: App, words: tuple[str, ...] = ("ducklm",)) -> Iterator[tuple[str, App]]:
    """Every command by its full name, groups that do something by themselves included."""
    for name in owner:
        if name.startswith("-"):
            continue
        command = owner[name]
        if command.default_command is not None:
            yield " ".join((*words, name)), command
        yield from commands(command, (*words, name))


ALL = dict(commands(app))


def section(name: str) -> str:
    _, found, rest = DOCS.read_text().partition(f"### `{name}`\n")
    assert found, f"docs/cli.md has no section ### `{name}`"
    return rest.split("\n##")[0]


def names(command: App) -> set[str]:
    """Options, and positional arguments in capitals."""
    return {
        name
        for argument in command.assemble_argument_collection(parse_docstring=True)
        for name in argument.names
        if not (name.startswith("-") and not name.startswith("--"))
    }


def test_the_commands_of_the_issue_are_there() -> None:
    wanted = (
        "up serve worker ask tasks/show tasks/cancel tasks/continue approvals/allow approvals/deny grants/revoke events/tail replay "
        "projections/status projections/rebuild projections/verify models models/ping models/probe doctor token open conversations"
    )
    assert {"ducklm " + name.replace("/", " ") for name in wanted.split()} <= ALL.keys()


@pytest.mark.parametrize("name", ALL)
def test_every_command_has_a_section_with_an_example(name: str) -> None:
    examples = [line for line in section(name).splitlines() if line.startswith("      ")]
    assert any(name in line for line in examples)


@pytest.mark.parametrize("name", ALL)
def test_every_option_is_told(name: str) -> None:
    told = section(name)
    missing = {option for option in names(ALL[name]) - EVERYWHERE if option not in told}
    assert not missing, f"{name}: not told: {missing}"


@pytest.mark.parametrize("name", ALL)
def test_every_command_takes_json_and_its_help_has_an_example(name: str) -> None:
    assert "--json" in names(ALL[name])
    function = ALL[name].default_command
    assert function is not None
    assert "```" in (function.__doc__ or ""), f"{name}: no example in the help"


def test_no_section_tells_of_a_command_that_is_not_there() -> None:
    told = [line[5:-1] for line in DOCS.read_text().splitlines() if line.startswith("### `ducklm")]
    assert sorted(told) == sorted(ALL)
