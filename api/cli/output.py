"""How commands speak: rich text for people, JSON for programs, errors with an exit code by class."""

import sys
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from rich.console import Console

from api.problems import kind_of, problem_of
from domain.errors import DuckError

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)

Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON instead of text.")]


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


def fail(error: DuckError, as_json: bool = False) -> int:
    """Tells the error and returns the exit code of its class."""
    if as_json:
        sys.stderr.write(msgspec.json.encode(problem_of(error)).decode() + "\n")
    else:
        err.print(f"[bold red]{kind_of(error).title}:[/] ", end="")
        err.print(str(error), markup=False)
    return kind_of(error).exit_code
