"""The rules that a machine can check: types, import directions, lint."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
BIN = Path(sys.executable).parent


@pytest.mark.parametrize("command", [["mypy"], ["lint-imports"], ["ruff", "check", "."]], ids=lambda c: c[0])
def test_it_holds(command: list[str]) -> None:
    done = subprocess.run([BIN / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
