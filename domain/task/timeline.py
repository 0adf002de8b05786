"""A task as a list of its model and tool calls, each with what it cost and what became of it. Pure, for showing."""

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import fields, replace

from domain.events import Envelope
from domain.task import events as e
from domain.tools import CATALOGUE

Kind = Literal["model", "tool"]


class Step(Struct, frozen=True):
    """One call. ``version`` is that of the event it began with; ``name`` the role or tool; ``text`` the intent, answer,
    problem or arguments; ``prefilled_tokens`` were read anew, ``cached_tokens`` were in the server's cache."""

    kind: Kind
    version: int
    call_id: str
    name: str
    text: str = ""
    outcome: str = "asked for"
    attempts: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    prefilled_tokens: int = 0
    completion_tokens: int = 0
    ms: float = 0.0

    @property
    def cache_share(self) -> float | None:
        """Share of the prompt that was in the cache; None where nothing was read."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else None


def timeline(log: Iterable[Envelope]) -> list[Step]:
    """The calls of a task in the order in which they were asked for."""
    steps: dict[str, Step] = {}
    for envelope in log:
        data: Any = envelope.data
        call_id = getattr(data, "call_id", "")
        if not call_id:
            continue
        step = steps.get(call_id) or _begun(envelope, data)
        if step is not None:
            steps[call_id] = replace(step, **_told(data))
    return list(steps.values())


def _begun(envelope: Envelope, data: Any) -> Step | None:
    if isinstance(data, e.ContextBuilt | e.ModelRequested):
        return Step("model", envelope.version, data.call_id, data.role)
    if isinstance(data, e.ToolRequested | e.ToolRepeated | e.ToolFailed | e.ToolObserved):
        return Step("tool", envelope.version, data.call_id, data.tool)
    return None


def _told(data: Any) -> dict[str, Any]:
    """What an event adds to its step."""
    match data:
        case e.ModelRequested(attempt=attempt):
            return {"attempts": attempt, "outcome": "running"}
        case e.ModelReplied():
            return _reply(data)
        case e.ModelFailed(error=error, message=message):
            return {"outcome": error, "text": message}
        case e.ActionDirected(intent=intent, actions=actions, done=done):
            return {"outcome": _plan(len(actions), done), "text": intent}
        case e.DirectiveRejected(problem=problem):
            return {"outcome": "no directive", "text": problem}
        case e.ResponseCompleted(text=text):
            return {"outcome": "answered", "text": text}
        case e.ToolRequested(tool=tool, arguments=arguments):
            return {"text": arguments_line(tool, arguments)}
        case e.ToolStarted(attempt=attempt):
            return {"attempts": attempt, "outcome": "running"}
        case e.ToolObserved(ok=ok, exit_code=code, latency_ms=ms):
            return {"outcome": ("ok" if ok else "failed") if code is None else f"exit {code}", "ms": ms}
        case e.ToolFailed(kind=kind):
            return {"outcome": kind}
        case e.ToolRepeated(tool=tool, arguments=arguments, count=count):
            return {"outcome": f"not run again ({count})", "text": arguments_line(tool, arguments)}
        case e.ToolOutcomeUncertain():
            return {"outcome": "uncertain"}
        case e.ApprovalRequested():
            return {"outcome": "waits for approval"}
        case e.ApprovalGranted(scope=scope):
            return {"outcome": f"allowed {scope}"}
        case e.ApprovalDenied():
            return {"outcome": "denied"}
    return {}


def _reply(v: e.ModelReplied) -> dict[str, Any]:
    usage = v.usage
    prefilled = v.timings.prompt_n or max(usage.prompt_tokens - usage.cached_tokens, 0)
    return {
        "outcome": "replied" if v.finish_reason != "length" else "cut off",
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "prefilled_tokens": prefilled,
        "completion_tokens": usage.completion_tokens,
        "ms": v.latency_ms,
    }


def _plan(actions: int, done: bool) -> str:
    if not actions:
        return "done"
    return f"{actions} action{'s' if actions > 1 else ''}" + (", then done" if done else "")


def arguments_line(tool: str, arguments: dict[str, Any]) -> str:
    """A call's arguments in one line: the one that matters first and bare, others by name, defaults left out."""
    spec = CATALOGUE.get(tool)
    defaults = {f.name: f.default for f in fields(spec.arguments)} if spec else {}
    first = next((n for n in ("command", "path", "pattern", "glob") if arguments.get(n)), "")
    words = [str(arguments[first])] if first else []
    for name, value in arguments.items():
        if name == "content":
            words.append(f"({len(str(value))} characters)")
        elif name != first and value != defaults.get(name):
            words.append(f"{name}={value!r}")
    return " ".join(words)
