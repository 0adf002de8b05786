"""The action directive: what the ``action`` role answers, whichever transport carried it."""

from typing import Any

import msgspec
from msgspec import Struct

from domain.errors import BadInput
from domain.tools import CATALOGUE, FINISH, ToolSpec, argument_schema

MAX_ACTIONS = 4


class Action(Struct, frozen=True):
    """One tool call with validated arguments (JSON builtins)."""

    tool: str
    arguments: dict[str, Any]


class ActionDirective(Struct, frozen=True):
    """What to do next. ``done`` with no actions hands over to the thinker."""

    intent: str
    actions: tuple[Action, ...] = ()
    done: bool = False


class InvalidDirective(BadInput):
    """The model's text is no directive; the message goes back to the model in full."""


def directive_schema(catalogue: dict[str, ToolSpec] = CATALOGUE) -> dict[str, Any]:
    """The JSON schema published at ``/v1/schemas/action_directive`` and sent as ``response_format``."""
    actions = [
        {
            "type": "object",
            "properties": {"tool": {"const": spec.name}, "arguments": argument_schema(spec.arguments)},
            "required": ["tool", "arguments"],
            "additionalProperties": False,
        }
        for spec in catalogue.values()
    ]
    return {
        "type": "object",
        "properties": {
            "intent": {"type": "string"},
            "actions": {"type": "array", "items": {"anyOf": actions}, "minItems": 0, "maxItems": MAX_ACTIONS},
            "done": {"type": "boolean"},
        },
        "required": ["intent", "actions", "done"],
        "additionalProperties": False,
    }


def native_tools(catalogue: dict[str, ToolSpec] = CATALOGUE) -> tuple[dict[str, Any], ...]:
    """The same catalogue as OpenAI ``tools``, plus ``finish``."""
    tools = [(s.name, s.description, argument_schema(s.arguments)) for s in catalogue.values()]
    finish = {
        "type": "object",
        "properties": {"intent": {"type": "string"}},
        "required": ["intent"],
        "additionalProperties": False,
    }
    tools.append((FINISH, "No more tools are needed: the answer is written next.", finish))
    return tuple(
        {"type": "function", "function": {"name": name, "description": text, "parameters": schema}}
        for name, text, schema in tools
    )


class _RawAction(Struct):
    tool: str
    arguments: Any = {}


class _RawDirective(Struct):
    intent: str = ""
    actions: list[_RawAction] = []
    done: bool = False


def parse_directive(text: str, catalogue: dict[str, ToolSpec] = CATALOGUE) -> ActionDirective:
    """Reads a directive from JSON text. Raises ``InvalidDirective`` with every problem found."""
    try:
        raw = msgspec.json.decode(_unfenced(text), type=_RawDirective)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise InvalidDirective(f"not a valid directive: {error}") from error
    return _checked(raw.intent, [(a.tool, a.arguments) for a in raw.actions], raw.done, catalogue)


def parse_tool_calls(
    calls: list[tuple[str, str]], content: str = "", catalogue: dict[str, ToolSpec] = CATALOGUE
) -> ActionDirective:
    """Reads a directive from native tool calls, each ``(name, arguments as JSON text)``."""
    intent, done, actions = content.strip(), False, []
    for name, arguments in calls:
        value = _object(name, arguments or "{}")
        if name == FINISH:
            done = True
            intent = str(value.get("intent", "")) or intent
        else:
            actions.append((name, value))
    if not calls:
        raise InvalidDirective("no tool was called; call a tool, or call finish when none is needed")
    return _checked(intent, actions, done, catalogue)


def _unfenced(text: str) -> str:
    """Small models like to wrap JSON in a Markdown fence although told not to."""
    stripped = text.strip()
    if stripped.startswith("```") and stripped.endswith("```") and "\n" in stripped:
        return stripped[stripped.index("\n") + 1 : -3].strip()
    return stripped


def _object(tool: str, value: Any) -> dict[str, Any]:
    """Arguments as an object; some models send the object as a string of JSON inside the JSON."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            raise InvalidDirective(f"arguments of {tool} are not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidDirective(f"arguments of {tool} must be an object, not {type(value).__name__}")
    return value


def _checked(
    intent: str, actions: list[tuple[str, Any]], done: bool, catalogue: dict[str, ToolSpec]
) -> ActionDirective:
    problems: list[str] = []
    checked: list[Action] = []
    if len(actions) > MAX_ACTIONS:
        problems.append(f"{len(actions)} actions at once; at most {MAX_ACTIONS} are allowed")
    for tool, raw in actions:
        name = _known(tool, catalogue)
        if name is None:
            problems.append(f"unknown tool {tool!r}; there are: {', '.join(catalogue)}")
            continue
        try:
            arguments = msgspec.convert(_object(name, raw), catalogue[name].arguments)
        except (msgspec.ValidationError, InvalidDirective, RecursionError) as error:
            problems.append(f"{name}: {error}")
        else:
            checked.append(Action(name, msgspec.to_builtins(arguments)))
    if problems:
        raise InvalidDirective("; ".join(problems))
    return ActionDirective(intent, tuple(checked), done or not checked)


def _known(tool: str, catalogue: dict[str, ToolSpec]) -> str | None:
    """The catalogue's name for what the model wrote; case and dashes may differ, nothing else is guessed."""
    folded = tool.strip().lower().replace("-", "_").replace(" ", "_")
    return folded if folded in catalogue else None
