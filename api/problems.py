"""The one table of errors: HTTP status, title and exit code of everything under ``DuckError``."""

from typing import Any

import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException, NotFoundException, ValidationException
from msgspec import Struct

from domain import errors as d
from domain.directive import InvalidDirective

_log = structlog.get_logger()


class Kind(Struct, frozen=True):
    """How an error is told: to programs (status, slug), to people (title), to shells (exit code)."""

    status: int
    slug: str
    title: str
    exit_code: int


TABLE: dict[type[d.DuckError], Kind] = {
    d.DuckError: Kind(500, "error", "Something went wrong", 1),
    d.BadInput: Kind(400, "bad-input", "The input is not acceptable", 2),
    InvalidDirective: Kind(400, "bad-input", "The input is not acceptable", 2),
    d.TooLarge: Kind(413, "too-large", "Too large", 2),
    d.NotFound: Kind(404, "not-found", "Not found", 3),
    d.Conflict: Kind(409, "conflict", "The state does not allow it", 4),
    d.ConcurrencyConflict: Kind(409, "conflict", "The state does not allow it", 4),
    d.AccessDenied: Kind(401, "access-denied", "No access", 5),
    d.ForeignOrigin: Kind(403, "foreign-origin", "Foreign origin", 5),
    d.ModelError: Kind(502, "model-error", "The model server gave no usable answer", 6),
    d.ModelUnavailable: Kind(503, "model-unavailable", "The model server does not answer", 6),
    d.ModelLoading: Kind(503, "model-loading", "The model is still loading", 6),
    d.ModelTimeout: Kind(504, "model-timeout", "The model server is silent", 6),
    d.ModelProtocolError: Kind(502, "model-protocol", "The model server's answer is broken", 6),
    d.ModelRejected: Kind(502, "model-rejected", "The model server refused the request", 6),
    d.ContextOverflow: Kind(502, "context-overflow", "The context is too small", 6),
    d.ToolError: Kind(500, "tool-error", "A tool failed", 7),
    d.ToolRefused: Kind(403, "tool-refused", "Refused by the rules", 7),
    d.ToolTimeout: Kind(504, "tool-timeout", "A tool ran out of time", 7),
    d.StorageError: Kind(503, "storage", "The database is not available", 8),
    d.ShuttingDown: Kind(503, "shutting-down", "DuckLM is stopping", 8),
    d.SetupError: Kind(500, "setup", "The setup is not usable", 9),
}


def kind_of(error: d.DuckError) -> Kind:
    """The entry for an error's class, or of the nearest class above it."""
    for cls in type(error).__mro__:
        if cls in TABLE:
            return TABLE[cls]
    return TABLE[d.DuckError]


def problem(kind: Kind, detail: str, **extra: Any) -> dict[str, Any]:
    """An RFC 9457 problem."""
    return {"type": f"urn:ducklm:{kind.slug}", "title": kind.title, "status": kind.status, "detail": detail, **extra}


def problem_of(error: d.DuckError) -> dict[str, Any]:
    return problem(kind_of(error), str(error))


def _response(body: dict[str, Any], headers: dict[str, str] | None = None) -> Response[dict[str, Any]]:
    return Response(body, status_code=body["status"], media_type="application/problem+json", headers=headers)


def on_duck_error(request: Request[Any, Any, Any], error: d.DuckError) -> Response[dict[str, Any]]:
    body = problem_of(error)
    headers = {"Retry-After": "2"} if body["status"] == 503 else None
    return _response(body, headers)


def on_http_error(request: Request[Any, Any, Any], error: HTTPException) -> Response[dict[str, Any]]:
    """Litestar's own errors in the same shape."""
    detail = error.detail
    if isinstance(error, ValidationException) and isinstance(error.extra, list):
        parts = [f"{e.get('key', 'body')}: {e.get('message')}" if isinstance(e, dict) else str(e) for e in error.extra]
        detail = f"{detail}: {'; '.join(parts)}" if parts else detail
    if isinstance(error, NotFoundException):
        detail = f"there is nothing at {request.url.path}"
    slug = {404: "not-found", 405: "method-not-allowed", 413: "too-large"}.get(error.status_code, "bad-input")
    kind = Kind(error.status_code, slug, TITLES.get(error.status_code, "The request is not acceptable"), 2)
    return _response(problem(kind, detail))


TITLES = {404: "Not found", 405: "Method not allowed", 413: "Too large", 415: "Unsupported media type"}


def on_bug(request: Request[Any, Any, Any], error: Exception) -> Response[dict[str, Any]]:
    """A fault of our own: logged in full, told without internals."""
    _log.exception("request_failed", path=request.url.path, method=request.method)
    kind = TABLE[d.DuckError]
    return _response(problem(kind, f"an unexpected {type(error).__name__}; it is in the log with this path"))
