"""The checks of ``ducklm doctor``. A check never raises for what it finds; one that breaks is a finding of its own."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import import_module
from inspect import isawaitable
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from api.cli.options import Common
from domain.errors import DuckError

if TYPE_CHECKING:
    from api.settings import Settings

LEAST_PYTHON = (3, 11)
Status = Literal["ok", "warn", "fail"]


class Check(Struct, frozen=True):
    """One line: what was looked at, how it is, and what to do ("" when there is nothing to do)."""

    name: str
    status: Status
    found: str
    advice: str = ""


CHECKS = (
    ("home", "api.cli.check_home:home"),
    ("workspace", "api.cli.check_home:workspace"),
    ("token", "api.cli.check_home:token"),
    ("user", "api.cli.check_home:user"),
    ("socket", "api.cli.check_database:socket"),
    ("database", "api.cli.check_database:database"),
    ("engine", "api.cli.check_engine:engine"),
    ("models.yaml", "api.cli.check_engine:roles"),
    ("server", "api.cli.check_server:server"),
    ("bubblewrap", "api.cli.check_server:bubblewrap"),
    ("chromium", "api.cli.check_server:chromium"),
)
"""Each is imported when its turn comes, so that a broken installation breaks no more than one line."""


async def examine(options: Common) -> AsyncIterator[Check]:
    """All checks, in the order in which things are needed."""
    yield python()
    settings, check = _settings(options)
    yield check
    for name, place in CHECKS:
        yield await _carefully(name, place, settings)


def python() -> Check:
    found = f"{sys.version.split()[0]} at {sys.executable}"
    if sys.version_info[:2] < LEAST_PYTHON:
        return Check("python", "fail", found, "DuckLM needs Python 3.11 or later: `uv python install 3.12`")
    return Check("python", "ok", found)


def _settings(options: Common) -> "tuple[Settings | None, Check]":
    try:
        settings = options.settings()
    except DuckError as error:
        return None, Check("settings", "fail", str(error), "correct or unset it; the checks below use the defaults")
    except Exception as error:
        return None, _broken("settings", error)
    import os

    given = sorted(name for name in os.environ if name.startswith("DUCKLM_"))
    return settings, Check("settings", "ok", ", ".join(given) + " set" if given else "all at their defaults")


async def _carefully(name: str, place: str, settings: "Settings | None") -> Check:
    try:
        if settings is None:
            from api.settings import Settings

            settings = Settings()
        module, _, function = place.partition(":")
        look: Callable[[Settings], Check | Awaitable[Check]] = getattr(import_module(module), function)
        found = look(settings)
        return await found if isawaitable(found) else found
    except Exception as error:
        return _broken(name, error)


def _broken(name: str, error: Exception) -> Check:
    if isinstance(error, ImportError):
        return Check(name, "fail", f"can't be loaded: {error}", "the installation is damaged: `uv sync --reinstall`")
    return Check(name, "fail", f"the check broke: {type(error).__name__}: {error}")
