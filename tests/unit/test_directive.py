"""Reading what a model answers as a directive."""

import contextlib
import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.directive import (
    ActionDirective,
    InvalidDirective,
    directive_schema,
    native_tools,
    parse_directive,
    parse_tool_calls,
)
from domain.tools import CATALOGUE


def test_a_directive_has_typed_arguments_with_defaults() -> None:
    read = parse_directive('{"intent":"x","actions":[{"tool":"file_read","arguments":{"path":"a"}}],"done":false}')
    assert read.actions[0].arguments == {"path": "a", "offset": 0, "limit": 400}


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"intent":"x","actions":[{"tool":"list_dir","arguments":{}}],"done":false}\n```',
        '{"intent":"x","actions":[{"tool":"List-Dir","arguments":"{}"}],"done":false}',
        ' {"actions":[{"tool":"list_dir"}]} ',
    ],
)
def test_harmless_slips_of_small_models_are_understood(text: str) -> None:
    assert parse_directive(text).actions[0].tool == "list_dir"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a valid directive"),
        ("[]", "not a valid directive"),
        ('{"intent":1}', "Expected `str`"),
        ('{"actions":[{"tool":"list_dir","arguments":{"path":1}}]}', "Expected `str`"),
        ('{"actions":[{"tool":"list_dir","arguments":{"pfad":"."}}]}', "unknown field"),
        ('{"actions":[{"tool":"file_read","arguments":[]}]}', "must be an object"),
        ('{"actions":[{"tool":"file_read","arguments":{"path":"a","limit":0}}]}', ">= 1"),
        ('{"actions":[{"tool":"x","arguments":{}},{"tool":"y","arguments":{}}]}', "unknown tool 'y'"),
        ('{"actions":[' + ",".join(['{"tool":"list_dir"}'] * 5) + "]}", "at most 4"),
        ('{"intent":"\\ud800"}', "not a valid directive"),
    ],
)
def test_faults_are_named(text: str, says: str) -> None:
    with pytest.raises(InvalidDirective, match=re.escape(says)):
        parse_directive(text)


def test_finish_is_done() -> None:
    assert parse_tool_calls([("finish", '{"intent":"ready"}')]) == ActionDirective("ready", (), True)


def test_no_call_at_all_is_no_directive() -> None:
    with pytest.raises(InvalidDirective, match="no tool was called"):
        parse_tool_calls([])


def test_no_actions_and_not_done_hands_over_all_the_same() -> None:
    assert parse_directive('{"intent":"x","actions":[],"done":false}').done is True


@given(st.text(max_size=300) | st.binary(max_size=300).map(lambda b: b.decode("utf-8", "replace")))
@settings(max_examples=200, deadline=None)
def test_whatever_a_model_says_is_a_directive_or_a_named_fault(text: str) -> None:
    with contextlib.suppress(InvalidDirective):
        parse_directive(text)


def test_the_schema_is_flat_and_small() -> None:
    """Grammar engines choke on references and large repetition bounds."""
    text = msgspec.json.encode(directive_schema()).decode()
    assert "$ref" not in text
    assert "maxLength" not in text
    assert len(native_tools()) <= 12
    tools = [a["properties"]["tool"]["const"] for a in directive_schema()["properties"]["actions"]["items"]["anyOf"]]
    assert tools == list(CATALOGUE)
