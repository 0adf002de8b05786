"""Made-up but possible histories of a task: an interpreter whose world is chance.

``choose`` picks one of several options, so that Hypothesis or a seeded generator can drive it."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from domain.errors import Conflict
from domain.events import Event
from domain.messages import ToolCall
from domain.model import ModelReply, Timings, Usage
from domain.task import commands as c
from domain.task.context import ContextInputs, Prefix, build_context
from domain.task.decide import decide
from domain.task.evolve import evolve
from domain.task.react import BuildContext, CallModel, EndLoop, JudgeAction, RunTool, SettleUncertain, react
from domain.task.state import ModelCall, Task, ToolCallState
from domain.tools import ToolResult, Verdict

T = TypeVar("T")
Choose = Callable[[Sequence[Any]], Any]

DIRECTIVES = (
    '{"intent":"look","actions":[{"tool":"list_dir","arguments":{"path":"."}}],"done":false}',
    """{"intent":"читать","actions":[{"tool":"file_read","arguments":{"path":"заметка.txt"}},
    {"tool":"search_files","arguments":{"pattern":"x"}}],"done":false}""",
    '{"intent":"run","actions":[{"tool":"shell_exec","arguments":{"command":"make"}}],"done":false}',
    '{"intent":"write","actions":[{"tool":"file_write","arguments":{"path":"a","content":"\\u0000b"}}],"done":true}',
    '{"intent":"enough","actions":[],"done":true}',
    "not json",
    '{"intent":"?","actions":[{"tool":"fly","arguments":{}}],"done":false}',
)
NATIVE = (
    (ToolCall("n1", "list_dir", '{"path":"."}'),),
    (ToolCall("n1", "shell_exec", '{"command":"ls -la"}'), ToolCall("n2", "finish", '{"intent":"done"}')),
    (ToolCall("n1", "finish", "{}"),),
    (ToolCall("n1", "file_read", "{bad"),),
)
PREFIX = Prefix("You are DuckLM.")


def conversation_id_of(task_id: str) -> str:
    return f"c-{task_id}"


class Simulation:
    """One task from its creation on; ``events`` is what happened, ``task`` the state."""

    def __init__(self, task_id: str, choose: Choose, conversation_id: str = "") -> None:
        self.choose = choose
        self.task = Task(task_id=task_id)
        self.events: list[Event] = []
        self.native = choose((False, True))
        self.act(c.Create(conversation_id or conversation_id_of(task_id), "почини тесты\nplease", "/w"))

    def act(self, command: c.Command) -> None:
        for event in decide(self.task, command):
            self.task = evolve(self.task, event)
            self.events.append(event)

    def run(self, steps: int) -> "Simulation":
        for _ in range(steps):
            if self.choose((False,) * 9 + (True,)):
                self._interfere()
            if not self._step() and (self.task.ended or not self._unblock()):
                break
        return self

    def _interfere(self) -> None:
        with suppress(Conflict):
            self.act(self.choose((c.Cancel("no"), c.Pause("wait"), c.Resume(), c.Pause(""), c.Resume())))

    def _unblock(self) -> bool:
        task = self.task
        if task.approval is not None and task.status == "waiting_for_approval":
            approval_id = task.approval.approval_id
            answers = (c.Grant(approval_id, "once"), c.Grant(approval_id, "forever", "g1"), c.Deny(approval_id, "nein"))
            self.act(self.choose(answers))
            return True
        if task.status == "paused":
            self.act(c.Resume())
            return True
        return False

    def _step(self) -> bool:
        match react(self.task):
            case None:
                return False
            case BuildContext(role=role):
                transport = "native_tools" if self.native else "json_schema"
                inputs = ContextInputs(transport, PREFIX, f"You are {role} now.", limit=self.choose((0, 400, 100_000)))
                self.act(c.RecordContext(build_context(self.task, role, inputs)))
            case CallModel(call_id=call_id, role=role):
                self._call_model(call_id, role)
            case JudgeAction():
                decision = self.choose(("allow", "ask", "deny"))
                self.act(c.Judge(Verdict(decision, "medium", "why"), self.choose(("", "", "g1"))))
            case RunTool(call=call):
                self._run_tool(call)
            case SettleUncertain(call_id=call_id):
                self.act(c.RecordUncertain(call_id))
            case EndLoop(stop=stop):
                self.act(stop)
        return True

    def _call_model(self, call_id: str, role: str) -> None:
        attempt = self.task.call.attempt + 1 if isinstance(self.task.call, ModelCall) else 1
        self.act(c.StartModel(attempt, "w", "m", 0.1, 100))
        outcome = self.choose(("reply",) * 6 + ("crash", "retry", "wait"))
        if outcome == "crash":
            return
        if outcome in ("retry", "wait"):
            self.act(c.RecordModelFailure(call_id, "ModelTimeout", "silence", outcome))
            return
        self.act(c.RecordReply(call_id, self._reply(role)))

    def _reply(self, role: str) -> ModelReply:
        usage, timings = Usage(100, 10, 90), Timings(90, 10, 5.0, 10, 20.0)
        if role != "action":
            text = self.choose(("Готово.", "", "done\x00"))
            return ModelReply(
                text, self.choose(("", "hm")), (), self.choose(("stop", "length")), "m", usage, timings, 30.0
            )
        if self.native:
            return ModelReply("", "", self.choose(NATIVE), "tool_calls", "m", usage, timings, 30.0)
        return ModelReply(self.choose(DIRECTIVES), "", (), "stop", "m", usage, timings, 30.0)

    def _run_tool(self, call: ToolCallState) -> None:
        self.act(c.StartTool(call.attempt + 1, "w"))
        outcome = self.choose(("ok",) * 5 + ("fail", "crash", "error"))
        if outcome == "crash":
            return
        if outcome == "error":
            self.act(c.RecordToolFailure(call.call_id, "timeout", "слишком долго"))
            return
        output = self.choose(("", "a\nb\n", "x" * 20_000, "\x00\u202e"))
        result = ToolResult(outcome == "ok", output, 0 if outcome == "ok" else 1, len(output), False, {"k": "v"})
        self.act(c.RecordToolResult(call.call_id, result, "", 1.5))
