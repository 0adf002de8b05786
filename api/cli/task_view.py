"""A task in detail, for people."""

from typing import Any

from rich.text import Text

from api.cli.output import ago, counted, duration, one_line, out, print_table, safe, share, status_text
from domain.task.timeline import Step

_GOOD = ("ok", "exit 0", "answered", "done", "replied")
_BAD = ("failed", "no directive", "refused", "denied", "error", "timeout", "uncertain", "cut off")


def print_task(task: dict[str, Any], steps: list[Step]) -> None:
    """State, steps, notices, what it waits for and the answer."""
    _head(task)
    out.print()
    columns = (">v", "call", ">read", ">cached", ">prefilled", ">written", ">time", "outcome", "~what")
    print_table(columns, map(_row, steps), "no steps yet")
    for notice in task.get("notices") or ():
        out.print(f"⚠ {safe(notice)}", style="yellow", markup=False)
    for approval in task.get("pending_approvals") or ():
        out.print(
            f"\nwaits for approval of {approval['tool']}: `ducklm approvals allow {approval['approval_id']}`",
            style="yellow",
            markup=False,
        )
    if task.get("response") is not None:
        out.print()
        out.print(safe(task["response"]), markup=False)


def _head(task: dict[str, Any]) -> None:
    title = Text.assemble((one_line(task.get("title") or ""), "bold"), "  ", status_text(task["status"]))
    if task.get("waiting_for"):
        title.append(f" ({one_line(task['waiting_for'])})", "yellow")
    out.print(title)
    if task.get("error"):
        out.print(safe(task["error"]), style="red", markup=False)
    facts = [f"task {task['task_id']}", f"conversation {task['conversation_id']}", f"workspace {task['workspace']}"]
    if "created_at" in task:
        facts.append(f"asked {ago(task['created_at'])}")
        counts = (("step", "iterations"), ("model call", "model_calls"), ("tool call", "tool_calls"))
        facts.append(", ".join(counted(task[key], word) for word, key in counts))
        facts.append(f"{duration(task['model_ms'])} model, {duration(task['tool_ms'])} tools")
    out.print(safe("\n".join(facts)), style="dim", markup=False)


def _row(step: Step) -> tuple[object, ...]:
    outcome = Text(step.outcome)
    if step.outcome.startswith(_GOOD) or "action" in step.outcome:
        outcome.stylize("green")
    elif step.outcome.startswith(_BAD) or step.outcome.startswith("exit"):
        outcome.stylize("red")
    attempts = f" ×{step.attempts}" if step.attempts > 1 else ""
    time, what = duration(step.ms) if step.ms else "", one_line(step.text)
    if step.kind == "tool":
        return (step.version, f"  {step.name}{attempts}", "", "", "", "", time, outcome, what)
    tokens = (step.prompt_tokens, share(step.cache_share), step.prefilled_tokens, step.completion_tokens)
    return (step.version, f"{step.name}{attempts}", *tokens, time, outcome, what)
