"""Which message shapes keep the prompt cache under a model's chat template.

A prompt is cached as far as the next one begins with it. So a short tool loop is rendered by the server itself
(``/apply-template``: no token is generated), step by step, and each prompt is compared with the one before.
"""

from typing import Any

from adapters.llm.link import HttpRefusal
from adapters.llm.server import ModelServer
from domain.messages import Message, ToolCall
from domain.model import Observations, Transport, TransportProbe, Trial

_STEPS = 3
_PERSON = "Why do the tests fail?"
_TEMPLATE_FAILURES = (400, 500)
"""How llama-server answers when a template raises; anything else (loading, no access) is no verdict on the template."""
_NEXT = "Thanks. And now the documentation."
_TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look at one step.",
        "parameters": {"type": "object", "properties": {"step": {"type": "integer"}}, "required": ["step"]},
    },
}


async def probe(server: ModelServer) -> TransportProbe:
    """Tries every shape and chooses. Raises ``ModelError`` when the server is not there."""
    props = await server.props()
    trials: list[Trial] = []
    if props.llama:
        native: tuple[tuple[Transport, Observations], ...] = (
            (("native_tools", "tool"),) if props.info.native_tools else ()
        )
        for transport, observations in (*native, ("json_schema", "tool"), ("json_schema", "user")):
            for reasoning in (False, True):
                trial = await _try(server, transport, observations, reasoning)
                if trial is None:
                    return _chosen(
                        server, tuple(trials), "the server has no /apply-template to check the template with"
                    )
                trials.append(trial)
    reason = "" if props.llama else "the server is no llama-server: its template cannot be checked"
    if props.llama and not props.info.native_tools:
        reason = "the chat template has no tool calls"
    return _chosen(server, tuple(trials), reason, props.info.model, props.info.template_hash)


def choose(trials: tuple[Trial, ...]) -> tuple[Trial, bool]:
    """The best shape and whether reasoning is sent back in it.

    Native calls win when the loop stays append-only either with reasoning or without it; else the JSON shape that
    loses least, observations as ``tool`` messages where both lose the same."""
    for transport in ("native_tools", "json_schema"):
        keeping = [t for t in trials if t.transport == transport and t.keeps]
        if keeping:
            first = keeping[0]
            return first, any(t.reasoning for t in keeping if t.observations == first.observations)
    usable = [t for t in trials if t.transport == "json_schema" and not t.problem]
    best = min(usable, key=lambda t: t.lost, default=Trial("json_schema", "user", False))
    return best, best.reasoning


def _chosen(
    server: ModelServer, trials: tuple[Trial, ...], reason: str, model: str = "", template_hash: str = ""
) -> TransportProbe:
    best, send_reasoning = choose(trials)
    return TransportProbe(
        url=server.link.shown,
        model=model,
        template_hash=template_hash,
        transport=best.transport,
        observations=best.observations,
        send_reasoning=send_reasoning,
        reason=reason or _verdict(best, trials),
        trials=trials,
    )


def _verdict(best: Trial, trials: tuple[Trial, ...]) -> str:
    if best.transport == "native_tools":
        return "native tool calls keep the prompt append-only"
    native = [t for t in trials if t.transport == "native_tools"]
    if native and all(t.problem for t in native):
        return f"the template fails with native tool calls: {native[0].problem}"
    losses = min((t.lost for t in native if not t.problem), default=0)
    return f"native tool calls lose {losses} characters of the prompt in {_STEPS + 1} steps"


async def _try(server: ModelServer, transport: Transport, observations: Observations, reasoning: bool) -> Trial | None:
    """Renders the whole loop in one shape; None where the server cannot render."""
    tools: tuple[dict[str, Any], ...] = (_TOOL,) if transport == "native_tools" else ()
    history: tuple[Message, ...] = (
        Message("system", "You are DuckLM. Say what the tools showed."),
        Message("user", _PERSON),
    )
    thought = "Let me see." if reasoning else ""
    lost: list[int] = []
    try:
        before = await server.rendered(history, tools)
        if before is None:
            return None
        for step in range(_STEPS + 2):
            history += _turn(step, transport, observations, thought)
            prompt = await server.rendered(history, tools) or ""
            if history[-1].content not in prompt or _PERSON not in prompt:
                return Trial(transport, observations, reasoning, problem="the template leaves out messages")
            lost.append(len(before) - _common(before, prompt))
            before = prompt
    except HttpRefusal as refused:
        if refused.status not in _TEMPLATE_FAILURES:
            raise server.link.failure(refused) from None
        return Trial(
            transport, observations, reasoning, problem=str(refused.error.get("message", refused.status))[:300]
        )
    return Trial(transport, observations, reasoning, tuple(lost[:_STEPS]), lost[_STEPS], lost[_STEPS + 1])


def _turn(step: int, transport: Transport, observations: Observations, thought: str) -> tuple[Message, Message]:
    """The messages that one step adds: the model's, and what answers it."""
    if step > _STEPS:
        return Message("assistant", "The answer.", thought), Message("user", _NEXT)
    arguments = f'{{"step": {step}}}'
    seen = f"Observation {step}." + ("\n\nNow write the answer for the person." if step == _STEPS else "")
    if transport == "native_tools":
        call = ToolCall(f"call{step:05d}", "look", arguments)  # nine characters: some templates insist on it
        return Message("assistant", "", thought, (call,)), Message("tool", seen, tool_call_id=call.id)
    directive = f'{{"intent": "look", "actions": [{{"tool": "look", "arguments": {arguments}}}], "done": false}}'
    return Message("assistant", directive, thought), Message(observations, seen)


def _common(one: str, other: str) -> int:
    """Length of the common beginning."""
    if other.startswith(one):
        return len(one)
    return next(i for i, (a, b) in enumerate(zip(one, other + "\0", strict=False)) if a != b)
