"""Structured logs: JSON lines when nobody watches, colours on a terminal. Never a secret: values that look like one
under a telling name are replaced before anything is written."""

import logging
import sys
from pathlib import Path
from typing import Any, TextIO

import structlog

_SECRET_NAMES = ("token", "password", "secret", "api_key", "authorization", "cookie")


def _hide_secrets(_logger: Any, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    for name in event:
        if any(part in name.lower() for part in _SECRET_NAMES) and not name.endswith("_tokens"):
            event[name] = "…"
    return event


def configure_logs(level: str, file: Path | None = None) -> None:
    """Logs of ``level`` and above to ``file``, or to standard error."""
    stream: TextIO = file.open("a", encoding="utf-8", buffering=1) if file else sys.stderr
    renderer: Any = (
        structlog.dev.ConsoleRenderer() if stream.isatty() else structlog.processors.JSONRenderer(ensure_ascii=False)
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _hide_secrets,
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(stream=stream, level=logging.WARNING, format="%(levelname)s %(name)s %(message)s", force=True)
    # Pools log each reconnect attempt while the database is away; our own lines say it once.
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
    logging.getLogger("procrastinate").setLevel(logging.CRITICAL)
