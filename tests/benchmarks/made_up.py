"""A task of any length whose events have the sizes of real ones."""

from domain.events import Event
from domain.model import ModelReply, Timings, Usage
from domain.task import commands as c
from domain.task.context import ContextInputs, Prefix, build_context
from domain.task.decide import decide
from domain.task.events import Limits
from domain.task.evolve import evolve
from domain.task.react import BuildContext, CallModel, JudgeAction, RunTool, react
from domain.task.state import Task
from domain.tools import ToolResult, Verdict

PREFIX = Prefix("You are DuckLM.")
OUTPUT = "drwxr-xr-x  2 duck duck  4096 file.txt\n" * 12


def long_task(task_id: str, steps: int) -> list[Event]:
    """``steps`` tool steps (7 events each) and an answer."""
    task, events = Task(task_id=task_id), []

    def act(command: c.Command) -> None:
        nonlocal task
        for event in decide(task, command):
            task = evolve(task, event)
            events.append(event)

    act(c.Create("conversation", "почини тесты", "/w", True, Limits(10**6, 10**12, 10**9)))
    usage, timings = Usage(2000, 60, 1900), Timings(1900, 100, 80.0, 60, 900.0)
    n = 0
    while (effect := react(task)) is not None:
        match effect:
            case BuildContext(role=role):
                act(c.RecordContext(build_context(task, role, ContextInputs("json_schema", PREFIX, f"Be {role}."))))
            case CallModel(call_id=call_id, role=role):
                act(c.StartModel(1, "host:1", "model.gguf", 0.2, 2048))
                text = "Готово: тесты проходят."
                if role == "action":
                    n += 1
                    text = (
                        f'{{"intent":"look at part {n}","actions":[{{"tool":"search_files","arguments":{{"pattern":"p{n}"}}}}],"done":false}}'
                        if n <= steps
                        else '{"intent":"enough","actions":[],"done":true}'
                    )
                act(c.RecordReply(call_id, ModelReply(text, "", (), "stop", "model.gguf", usage, timings, 980.0)))
            case JudgeAction():
                act(c.Judge(Verdict("allow")))
            case RunTool(call=call):
                act(c.StartTool(1, "host:1"))
                act(c.RecordToolResult(call.call_id, ToolResult(True, OUTPUT, None, len(OUTPUT)), "", 2.0))
            case _:
                raise AssertionError(effect)
    return events
