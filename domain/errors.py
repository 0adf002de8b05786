"""Everything that can go wrong, as one tree.

::

    DuckError
    ├── BadInput                 what came from a person or program is not acceptable
    │   ├── TooLarge
    │   └── NotFound
    ├── Conflict                 the state does not allow it (any more)
    │   └── ConcurrencyConflict  someone else appended to the stream first
    ├── AccessDenied             no or wrong credentials
    │   └── ForeignOrigin        the request came from a web page elsewhere
    ├── ModelError               the model server did not give a usable answer
    │   ├── ModelUnavailable     nothing answers (down, refused, 5xx)
    │   ├── ModelLoading         it answers, but the model is still loading
    │   ├── ModelTimeout         silence for longer than the idle limit
    │   ├── ModelProtocolError   broken stream, malformed body
    │   ├── ModelRejected        4xx that a retry will not mend
    │   └── ContextOverflow      more tokens than the context of a slot holds
    ├── ToolError                a tool could not do its work
    │   ├── ToolRefused          policy or path rules forbid it
    │   └── ToolTimeout
    ├── StorageError             the event store or database did not take or give data
    ├── ShuttingDown             this process is about to stop; the work is kept and goes on elsewhere or later
    └── SetupError               configuration or environment is not usable

A message says what happened, what was kept and what to do. ``transient`` errors may be retried as they are.
HTTP statuses and exit codes are assigned in one table, ``api.problems``.
"""

__all__ = [
    "AccessDenied",
    "BadInput",
    "ConcurrencyConflict",
    "Conflict",
    "ContextOverflow",
    "DuckError",
    "ForeignOrigin",
    "ModelError",
    "ModelLoading",
    "ModelProtocolError",
    "ModelRejected",
    "ModelTimeout",
    "ModelUnavailable",
    "NotFound",
    "SetupError",
    "ShuttingDown",
    "StorageError",
    "TooLarge",
    "ToolError",
    "ToolRefused",
    "ToolTimeout",
]


class DuckError(Exception):
    """Base of all errors of this program. ``str(error)`` is written for a person."""

    transient = False


class BadInput(DuckError): ...


class TooLarge(BadInput): ...


class NotFound(BadInput): ...


class Conflict(DuckError): ...


class ConcurrencyConflict(Conflict):
    transient = True


class AccessDenied(DuckError): ...


class ForeignOrigin(AccessDenied): ...


class ModelError(DuckError): ...


class ModelUnavailable(ModelError):
    transient = True


class ModelLoading(ModelError):
    transient = True


class ModelTimeout(ModelError):
    transient = True


class ModelProtocolError(ModelError):
    transient = True


class ModelRejected(ModelError): ...


class ContextOverflow(ModelError):
    """``prompt_tokens`` were sent, the slot holds ``context_tokens`` (0 when the server did not say)."""

    def __init__(self, message: str, prompt_tokens: int = 0, context_tokens: int = 0) -> None:
        super().__init__(message)
        self.prompt_tokens = prompt_tokens
        self.context_tokens = context_tokens


class ToolError(DuckError): ...


class ToolRefused(ToolError): ...


class ToolTimeout(ToolError): ...


class StorageError(DuckError):
    transient = True


class ShuttingDown(DuckError):
    transient = True


class SetupError(DuckError): ...
