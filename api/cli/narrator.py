"""Tells a turn as it happens: which event is worth which words."""

from typing import Any

from api.cli.screen import Screen, result_line
from api.cli.sse import ServerEvent
from api.cli.tally import Shown, Tally
from domain.task import events as e
from domain.task.timeline import arguments_line

_WORKING = {
    "action": "deciding what to do", "thinker": "thinking about the answer", "critic": "looking back",
    "coder": "writing code", "summary": "condensing", "recall": "remembering",
}  # fmt: skip


class Narrator:
    """Events and deltas of one task, in order, to a screen."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._shown = Shown()
        self._tally = Tally()
        self._answer = ""

    def delta(self, event: ServerEvent) -> None:
        """A piece of a running call."""
        d = event.data
        if event.name == "progress":
            self._progress(d["total"], d["cached"], d["processed"])
        elif event.name in ("reasoning_delta", "content_delta", "tool_output"):
            text = self._shown.new_part(d["call_id"], event.name, d["offset"], d["text"])
            if not text:
                return
            if event.name == "reasoning_delta":
                self._screen.reasoning(d["role"], text)
            elif event.name == "tool_output":
                self._screen.tool_output(text)
            elif d["role"] == "thinker":
                self._answer += text
                self._screen.answer(text)

    def _progress(self, total: int, cached: int, processed: int) -> None:
        done = f"{processed:,} of {total:,} tokens"
        self._screen.status(f"reading the context: {done}" + (f", {cached:,} from the cache" if cached else ""))

    def event(self, event: Any) -> None:
        """Something happened."""
        s = self._screen
        match event:
            case e.ContextBuilt():
                s.status("asking the model")
            case e.ModelRequested():
                self._asked(event)
            case e.ModelReplied():
                self._tally.add(event)
            case e.ModelFailed(message=message, retry=retry):
                s.note(f"! {message}" + (" It is asked again." if retry else ""), "yellow" if retry else "red")
            case e.ActionDirected(intent=intent, actions=actions):
                if intent.strip():
                    s.note(f"● {intent.strip()}", "bold")
                s.status("running a tool" if actions else "thinking about the answer")
            case e.DirectiveRejected(problem=problem, attempt=attempt):
                s.note(f"! no valid directive (try {attempt}): {problem}", "yellow")
            case e.LoopStopped(reason=reason):
                s.note(f"! stopped looking: {reason}", "yellow")
            case e.ResponseCompleted():
                self._completed(event)
            case e.TaskPaused(reason=reason, resumes=resumes):
                s.note(f"⏸ paused: {reason}", "yellow")
                s.status("waiting for the model server" if resumes == "model" else "waiting for you")
            case e.TaskResumed():
                s.note("▶ goes on")
                s.status("going on")
            case e.TaskFailed(message=message):
                s.note(f"✗ {message}", "bold red")
            case e.TaskCancelled(reason=reason):
                s.note(f"✗ cancelled: {reason}", "yellow")
            case _:
                self._tool(event)

    def _asked(self, event: e.ModelRequested) -> None:
        self._screen.status(_WORKING.get(event.role, f"asking the {event.role}"))
        if event.attempt > 1 and self._shown.forget(event.call_id):
            self._screen.answer_ends()
            self._screen.note("! what was said so far broke off; it starts again", "yellow")
            self._answer = ""

    def _tool(self, event: Any) -> None:
        s = self._screen
        match event:
            case e.ToolRequested(tool=tool, arguments=arguments):
                s.tool(tool, arguments_line(tool, arguments))
                s.status(f"{tool} is next")
            case e.ToolStarted():
                s.status("running")
            case e.ApprovalRequested():
                s.status("waiting for your approval")
            case e.ApprovalGranted():
                s.status("allowed")
            case e.ToolObserved():
                if not self._shown.any(event.call_id, "tool_output") and event.output:
                    s.tool_output(event.output if event.output.endswith("\n") else event.output + "\n")
                s.note(*result_line(event.ok, event.exit_code, event.latency_ms))
            case e.ToolFailed(kind=kind, message=message):
                s.note(f"  ✗ {kind}: {message}", "red")
            case e.ToolRepeated(tool=tool, arguments=arguments, count=count):
                s.tool(tool, arguments_line(tool, arguments))
                s.note(f"  ↺ asked for {count} times and nothing has changed; not run again", "yellow")
            case e.ToolOutcomeUncertain(message=message):
                s.note(f"  ? {message}", "bold yellow")

    def _completed(self, event: e.ResponseCompleted) -> None:
        """The event decides what the answer is; usually all of it was shown as it came."""
        if self._answer.strip() != event.text:
            if not event.text.startswith(self._answer.lstrip()) or not self._answer.strip():
                self._screen.answer_ends()
                self._answer = ""
            self._screen.answer(event.text[len(self._answer.lstrip()) :])
        self._screen.answer_ends()
        for notice in event.notices:
            self._screen.note(f"⚠ {notice}", "yellow")
        self._screen.status("")

    def ended(self, answer: dict[str, Any]) -> None:
        """The last line: what it cost, and where it stands in the log."""
        self._screen.note(f"{self._tally.line()} · position {answer['position']} · task {answer['task_id']}")
