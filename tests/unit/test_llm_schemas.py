"""Schemas of constrained answers: flat, small, and what the structs say."""

import json
from typing import Any

import msgspec
import pytest

from adapters.llm import SCHEMA_NAMES, MemoryDecision, RecallSelection, Reflection, response_schema
from adapters.llm.schema_lint import lint_schema
from domain.directive import directive_schema
from domain.errors import NotFound
from tests.doubles.llama_script import minimal


@pytest.mark.parametrize("name", SCHEMA_NAMES)
def test_schemas_are_fit_for_grammar_engines(name: str) -> None:
    schema = response_schema(name)
    assert lint_schema(schema) == ()
    assert len(json.dumps(schema)) < 4000


@pytest.mark.parametrize(
    ("name", "struct"),
    [("reflection", Reflection), ("recall_selection", RecallSelection), ("memory_decision", MemoryDecision)],
)
def test_what_the_schema_allows_the_struct_takes(name: str, struct: type[msgspec.Struct]) -> None:
    schema = response_schema(name)
    assert schema["required"] == list(schema["properties"])
    assert schema["additionalProperties"] is False
    msgspec.json.decode(json.dumps(minimal(schema)), type=struct)


def test_a_memory_is_read() -> None:
    said = minimal(response_schema("memory_decision")["properties"]["memories"]["items"])
    decision = msgspec.convert({"memories": [{**said, "text": "Отчёты короткие"}]}, MemoryDecision)
    assert decision.memories[0].text == "Отчёты короткие"


def test_the_directive_is_the_published_one() -> None:
    assert response_schema("action_directive") == directive_schema()


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(NotFound, match="memory_decision"):
        response_schema("memory")


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"$ref": "#/x"}, "$ref"),
        ({"properties": {"a": {"type": "string", "pattern": "^a+$"}}}, "$.a: pattern"),
        ({"properties": {"a": {"maxLength": 10_000}}}, "maxLength 10000"),
        ({"items": {"anyOf": [{"type": "string"}] * 13}}, "13 choices"),
        ({"anyOf": [{"properties": {"x": {"format": "date"}}}]}, "$.anyOf[0].x: format"),
    ],
)
def test_lint_finds_what_breaks_grammars(schema: dict[str, Any], says: str) -> None:
    (problem,) = lint_schema(schema)
    assert says in problem


def test_lint_finds_depth() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(8):
        schema = {"properties": {"a": schema}}
    assert "deeper" in lint_schema(schema)[0]
