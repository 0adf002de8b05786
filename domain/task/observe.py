"""What a model is told of a tool's outcome: labelled as data, capped, with a hint how to see the rest."""

from domain.task.events import ToolFailed, ToolObserved
from domain.text import for_model

MAX_SHOWN = 12_000
"""Characters of one output that enter the context; the whole of it stays in the log."""

_FENCE_OPEN = "<output untrusted>"
_FENCE_CLOSE = "</output>"


def shown_output(observed: ToolObserved) -> str:
    """The observation of a finished call."""
    status = "ok" if observed.ok else "failed"
    if observed.exit_code is not None:
        status += f", exit code {observed.exit_code}"
    body = for_model(observed.output).replace(_FENCE_CLOSE, "</ output>")
    if len(body) > MAX_SHOWN:
        half = MAX_SHOWN // 2
        left_out = len(body) - 2 * half
        body = (
            f"{body[:half]}\n[… {left_out} characters left out; ask for a part of it, "
            f"by offset and limit, a narrower search or head and tail …]\n{body[-half:]}"
        )
    elif observed.truncated:
        body += f"\n[the output had {observed.size} bytes; what is missing was cut]"
    return f"{observed.tool}: {status}\n{_FENCE_OPEN}\n{body}\n{_FENCE_CLOSE}"


def shown_failure(failed: ToolFailed) -> str:
    words = {
        "refused": "refused by the rules, not run",
        "denied": "the person said no, not run",
        "error": "could not run",
        "timeout": "ran out of time",
        "cancelled": "was stopped",
    }
    return f"{failed.tool}: {words[failed.kind]}. {failed.message}".strip()
