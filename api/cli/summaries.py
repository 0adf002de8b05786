"""An event in a few words."""

from typing import Any

from api.cli.output import counted
from domain import conversation as c
from domain import grants as g
from domain.events import Envelope, Unreadable
from domain.server import TransportChosen
from domain.task import events as e
from domain.task.timeline import arguments_line


def short_type(envelope: Envelope) -> str:
    """The type as people read it: without a first version."""
    return envelope.type.removesuffix(".v1")


def summary(data: Any) -> str:
    """What happened, in less than a line where possible; "" when the type says it all."""
    match data:
        case Unreadable(problem=problem):
            return f"can't be read: {problem}"
        case e.TaskCreated(message=message):
            return message
        case e.ContextBuilt(role=role, tokens=tokens, suffix=suffix):
            return f"{role}: {counted(len(suffix), 'new message')}, about {tokens:,} tokens in all"
        case e.ModelRequested(role=role, attempt=attempt, model=model):
            return f"{role} → {model or 'the model'}" + (f", attempt {attempt}" if attempt > 1 else "")
        case e.ModelReplied():
            return _reply(data)
        case e.ModelFailed(role=role, error=error, message=message):
            return f"{role}: {error}: {message}"
        case e.ActionDirected(intent=intent, actions=actions, done=done):
            words = [
                intent,
                *(f"{a.tool} {arguments_line(a.tool, a.arguments)}" for a in actions),
                "done" if done else "",
            ]
            return " · ".join(w for w in words if w)
        case e.DirectiveRejected(problem=problem, attempt=attempt):
            return f"try {attempt}: {problem}"
        case e.ToolRequested(tool=tool, arguments=arguments) | e.ApprovalRequested(tool=tool, arguments=arguments):
            return f"{tool} {arguments_line(tool, arguments)}"
        case e.ToolStarted(attempt=attempt, worker=worker):
            return f"by {worker}" + (f", attempt {attempt}" if attempt > 1 else "")
        case e.ToolObserved():
            code = "" if data.exit_code is None else f" exit {data.exit_code},"
            return f"{data.tool}:{code} {'ok' if data.ok else 'failed'}, {data.size:,} bytes"
        case e.ToolFailed(tool=tool, kind=kind, message=message):
            return f"{tool}: {kind}: {message}"
        case e.ToolRepeated(tool=tool, arguments=arguments, count=count):
            return f"{tool} {arguments_line(tool, arguments)}: time {count}, not run"
        case e.ToolOutcomeUncertain(tool=tool, message=message):
            return f"{tool}: {message}"
        case e.ResponseCompleted(text=text):
            return text
    return _other(data)


def _reply(v: e.ModelReplied) -> str:
    usage = v.usage
    tokens = (
        f"{usage.prompt_tokens:,} read, {usage.cached_tokens:,} of them cached, {usage.completion_tokens:,} written"
    )
    calls = ", ".join(call.name for call in v.tool_calls)
    return f"{v.role}: {tokens}" + (f", calls {calls}" if calls else "")


def _other(data: Any) -> str:
    match data:
        case e.ApprovalGranted(scope=scope):
            return scope
        case e.TaskFailed(error=error, message=message):
            return f"{error}: {message}"
        case e.TaskPaused(reason=reason, resumes=resumes):
            return f"{reason} (the {resumes} ends it)"
        case e.TaskResumed(extra=extra) if extra:
            return f"{extra} more steps"
        case c.ConversationStarted(title=text) | c.ConversationRenamed(title=text) | c.MessageAdded(text=text):
            return text
        case g.GrantIssued(tool=tool, arguments=arguments):
            return f"{tool} {arguments_line(tool, arguments)}"
        case g.GrantRevoked(grant_id=grant_id):
            return grant_id
        case TransportChosen(probe=probe):
            return f"{probe.transport} for {probe.model or probe.url}: {probe.reason}"
    return str(getattr(data, "reason", ""))
