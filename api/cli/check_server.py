"""Checks of what listens, and of programs that are optional."""

import shutil
import socket

import httpx

from api.cli.checks import Check
from api.cli.running import read_server_file
from api.settings import Settings


def server(settings: Settings) -> Check:
    """A DuckLM that runs, or a port that is free for one."""
    running = read_server_file(settings.home_path)
    if running is not None:
        try:
            health = httpx.get(f"{running.url}/health", timeout=5, trust_env=False)
        except httpx.HTTPError:
            pass  # left behind by a crash; the next start replaces it
        else:
            if health.is_success:
                return Check("server", "ok", f"running at {running.url}, process {running.pid}")
            found = f"running at {running.url}, but not well: {health.text[:200]}"
            return Check("server", "fail", found, f"see {settings.home_path / 'logs' / 'ducklm.log'}")
    return _port(settings)


def _port(settings: Settings) -> Check:
    place = f"{settings.host}:{settings.port}"
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((settings.host, settings.port))
        except OSError as error:
            advice = "choose another with --port or DUCKLM_PORT, or stop what uses it"
            return Check("server", "fail", f"not running, and {place} can't be used: {error.strerror or error}", advice)
    return Check("server", "ok", f"not running; {place} is free")


def bubblewrap(_settings: Settings) -> Check:
    return _program("bubblewrap", ("bwrap",), "optional, to lock commands in: apt install bubblewrap")


def chromium(_settings: Settings) -> Check:
    return _program(
        "chromium",
        ("chromium", "chromium-browser", "google-chrome"),
        "optional, for browser tests: apt install chromium",
    )


def _program(name: str, names: tuple[str, ...], advice: str) -> Check:
    found = next(filter(None, map(shutil.which, names)), None)
    return Check(name, "ok", found) if found else Check(name, "warn", "not installed", advice)
