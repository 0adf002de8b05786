"""The constrained answers that models give, by name, as structs and as JSON schemas.

Schemas stay flat and small: grammar engines choke on references, large repetition bounds and patterns, and small
models on depth. Lengths are checked in code, after parsing.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from domain.directive import directive_schema
from domain.errors import NotFound


def _doc(text: str) -> Meta:
    return Meta(description=text)


class Reflection(Struct, frozen=True, forbid_unknown_fields=True):
    """What the critic makes of a finished task. Empty texts mean "nothing to say"; ``confidence`` in percent."""

    summary: Annotated[str, _doc("one sentence: what was to be done and what was done")]
    result: Literal["success", "partial", "failure"]
    worked: Annotated[str, _doc("what helped")]
    failed: Annotated[str, _doc("what went wrong, and why")]
    lesson: Annotated[str, _doc("what to do next time, useful without this task; empty if nothing is new")]
    skill: Annotated[str, _doc("name of the skill that should change; empty if none")]
    skill_patch: Annotated[str, _doc("the lines to add to that skill; empty if none")]
    confidence: Annotated[int, Meta(ge=0, le=100, description="percent")]


class RecallSelection(Struct, frozen=True, forbid_unknown_fields=True):
    """Which of the numbered memories bear on the task. Numbers, because small models garble ids."""

    relevant: Annotated[list[int], _doc("numbers of the memories that help with this task; may be empty")]


class ProposedMemory(Struct, frozen=True, forbid_unknown_fields=True):
    """``quote`` must stand word for word in the message numbered ``source``; the runtime checks it."""

    text: Annotated[str, _doc("the fact, in the language it was said in")]
    quote: Annotated[str, _doc("the exact words it rests on, copied")]
    source: Annotated[int, Meta(ge=0, le=999, description="number of the message with these words")]
    subject: Annotated[Literal["person", "workspace", "other"], _doc("whom or what it is about")]
    kind: Literal["preference", "instruction", "fact", "decision"]
    scope: Annotated[Literal["global", "workspace", "conversation"], _doc("where it will be of use")]
    importance: Annotated[int, Meta(ge=1, le=5, description="5: needed nearly always")]


class MemoryDecision(Struct, frozen=True, forbid_unknown_fields=True):
    """What to remember of a finished task; most tasks leave nothing."""

    memories: Annotated[list[ProposedMemory], Meta(max_length=8)]


def flat_schema(struct: type[Struct]) -> dict[str, Any]:
    """The JSON schema of a struct without references, titles and defaults, every key required."""
    (root,), components = msgspec.json.schema_components([struct], ref_template="{name}")
    inlined: dict[str, Any] = _inlined(root, components)
    return inlined


def _inlined(node: Any, components: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inlined(item, components) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inlined(components[node["$ref"]], components)
    if "properties" in node:
        properties = {name: _inlined(value, components) for name, value in node["properties"].items()}
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
    kept = {key: _inlined(value, components) for key, value in node.items() if key not in ("title", "default")}
    # msgspec gives an enum no type; some servers insist on one
    return {"type": "string", **kept} if "enum" in kept and all(isinstance(v, str) for v in kept["enum"]) else kept


_SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "action_directive": directive_schema,
    "reflection": lambda: flat_schema(Reflection),
    "recall_selection": lambda: flat_schema(RecallSelection),
    "memory_decision": lambda: flat_schema(MemoryDecision),
}
SCHEMA_NAMES = tuple(_SCHEMAS)


def response_schema(name: str) -> dict[str, Any]:
    """The JSON schema of a constrained answer. Raises ``NotFound``."""
    if name not in _SCHEMAS:
        raise NotFound(f"There is no response schema {name!r}; there are: {', '.join(SCHEMA_NAMES)}.")
    return _SCHEMAS[name]()
