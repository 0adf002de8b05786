"""Finds in a JSON schema what llama-server's grammar engine is known to fail at, or to obey without saying so."""

from collections.abc import Iterator
from typing import Any

MAX_CHOICES = 12
MAX_REPEATS = 64
MAX_DEPTH = 6
_UNSUPPORTED = ("$ref", "$defs", "pattern", "format", "not", "if", "allOf", "patternProperties", "uniqueItems")
_BOUNDS = ("maxLength", "minLength", "maxItems", "minItems")


def lint_schema(schema: dict[str, Any]) -> tuple[str, ...]:
    """One line per problem, with the path to it; empty when the schema is fit to constrain a model."""
    return tuple(_problems(schema, "$", 0))


def _problems(node: dict[str, Any], path: str, depth: int) -> Iterator[str]:
    if depth > MAX_DEPTH:
        yield f"{path}: deeper than {MAX_DEPTH} levels"
        return
    for word in _UNSUPPORTED:
        if word in node:
            yield f"{path}: {word} is not supported everywhere"
    for bound in _BOUNDS:
        if node.get(bound, 0) > MAX_REPEATS:
            yield f"{path}: {bound} {node[bound]} makes the grammar slow or unparsable; check lengths in code"
    for branch in ("anyOf", "oneOf"):
        choices = node.get(branch, [])
        if len(choices) > MAX_CHOICES:
            yield f"{path}: {len(choices)} choices in {branch}, at most {MAX_CHOICES} work well"
        for number, choice in enumerate(choices):
            yield from _problems(choice, f"{path}.{branch}[{number}]", depth + 1)
    if isinstance(node.get("items"), dict):
        yield from _problems(node["items"], f"{path}[]", depth + 1)
    for name, value in node.get("properties", {}).items():
        yield from _problems(value, f"{path}.{name}", depth + 1)
