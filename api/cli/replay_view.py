"""A moment of a task, for people and for programs."""

from typing import Any

import msgspec
from rich.rule import Rule
from rich.text import Text

from api.cli.event_line import event_line
from api.cli.output import one_line, out, safe, status_text
from api.contract import event_view
from domain.messages import Message, wire
from domain.task.context import Prefix
from domain.task.events import ActionDirected
from domain.task.replay import Change, Moment
from domain.task.timeline import arguments_line

Sent = tuple[Prefix, list[Message]] | None
_SPEAKERS = {"system": "blue", "user": "green", "assistant": "magenta", "tool": "cyan"}
_SHOWN = 300
"""Characters of a changed value that are shown to people."""


def as_json(seen: Moment, sent: Sent, problem: str) -> dict[str, Any]:
    """Everything, for programs; messages as they went to the model server."""
    context: dict[str, Any] | None = None
    if seen.checks:
        context = {
            "transport": seen.state.transport,
            "role": seen.state.role,
            "prefix_sha256": seen.state.prefix_sha256,
            "context_sha256": seen.checks[-1].recorded,
            "check": seen.verdict,
            "tools": sent[0].tools if sent else None,
            "messages": list(map(wire, sent[1])) if sent else None,
            "problem": problem,
        }
    return {
        "task_id": seen.state.task_id,
        "at": seen.at,
        "last": seen.last,
        "event": event_view(seen.event),
        "state": seen.state,
        "changes": seen.changes,
        "directive": seen.directive,
        "observations": seen.state.pending,
        "context": context,
        "checks": seen.checks,
        "unreadable": [{"version": e.version, "position": e.position, "data": e.data} for e in seen.unreadable],
    }


def print_moment(seen: Moment, sent: Sent, problem: str) -> None:
    """Everything, for people: what happened, what it changed, and what the model had been sent by then."""
    state = seen.state
    out.print(
        Text.assemble(
            ("task ", "dim"), state.task_id, ("  version ", "dim"), (str(seen.at), "bold"), (f" of {seen.last}  ", "dim"),
            status_text(state.status), (f"  {one_line(state.waiting_for)}", "yellow"),
        )
    )  # fmt: skip
    out.print(event_line(seen.event, with_stream=False))
    for envelope in seen.unreadable:
        out.print(f"version {envelope.version} can't be read and was stepped over: {envelope.type}", style="red")
    _section("changed by this event")
    for change in seen.changes:
        _print_change(change)
    if not seen.changes:
        out.print("nothing", style="dim")
    _print_directive(seen)
    if state.pending:
        _section("observations that the next context adds")
        for observation in state.pending:
            out.print(safe(observation.text), markup=False)
    if state.response is not None:
        _section("answer")
        out.print(safe(state.response), markup=False)
    _print_context(seen, sent, problem)
    out.print(f"\n`ducklm replay {state.task_id} --at N` with N from 1 to {seen.last}", style="dim")


def _section(title: str) -> None:
    out.print()
    out.print(Rule(title, align="left", style="dim"), soft_wrap=False)


def _print_change(change: Change) -> None:
    name = Text(f"{change.field:<18} ", "bold")
    if not change.is_list:
        out.print(Text.assemble(name, (_value(change.before), "red"), " → ", (_value(change.after), "green")))
        return
    for sign, items, style in (("−", change.before, "red"), ("+", change.after, "green")):
        for item in items:
            out.print(Text.assemble(name, (f"{sign} {_value(item)}", style)))


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return one_line(text, _SHOWN) or '""'


def _print_directive(seen: Moment) -> None:
    directive = seen.directive
    if directive is None:
        return
    _section("latest directive")
    if not isinstance(directive, ActionDirected):
        out.print(f"rejected, try {directive.attempt}: {safe(directive.problem)}", style="yellow", markup=False)
        return
    out.print(safe(directive.intent) or "(no intent)", style="bold", markup=False)
    for action in directive.actions:
        out.print(f"▸ {action.tool} {safe(arguments_line(action.tool, action.arguments))}", markup=False)
    if directive.done:
        out.print("done: the thinker answers next", style="dim")


def _print_context(seen: Moment, sent: Sent, problem: str) -> None:
    if not seen.checks:
        _section("no context was built yet")
        return
    state = seen.state
    words = {"ok": "as recorded", "mismatch": "NOT as recorded", "unknown": "can't be checked, parts can't be read"}
    _section(f"context for {state.role}, about {state.context_tokens:,} tokens, {state.transport}")
    where = f", from version {seen.first_bad.version} on" if seen.first_bad else ""
    verdict = f" ({words[seen.verdict]}{where})  "
    out.print(Text.assemble("hash ", status_text(seen.verdict), verdict, (seen.checks[-1].recorded, "dim")))
    if sent is None:
        out.print(problem, style="red", markup=False)
        return
    prefix, messages = sent
    if prefix.tools:
        names = ", ".join(str(t.get("function", {}).get("name", "?")) for t in prefix.tools)
        out.print(f"{len(prefix.tools)} tools: {names} (schemas: --json)", style="dim", markup=False)
    own = len(messages) - len(state.messages)
    for n, message in enumerate(messages):
        where = "" if message.role == "system" or n >= own else " · earlier task"
        call = f" · answers {message.tool_call_id}" if message.tool_call_id else ""
        out.print(Text(f"\n{n + 1} {message.role}{where}{call}", f"bold {_SPEAKERS[message.role]}"))
        if message.content:
            out.print(safe(message.content), markup=False)
        for tool_call in message.tool_calls:
            out.print(f"→ {tool_call.name} {safe(tool_call.arguments)}", style="magenta", markup=False)
