"""Cleaning of model text, and telling reasoning from answer: laws that hold wherever the pieces are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.text import Cleaner, clean, cleaned, short_model
from adapters.llm.thinking import ThinkSplitter, split_unopened

any_text = st.text(st.characters() | st.sampled_from("\0\ud83d\ude00\udfff"))
pieces = st.lists(any_text, max_size=8)
tagged = st.lists(st.sampled_from(["<think>", "</think>", "<", "th", "/", "a", "\n", " ", ">", "ответ"]), max_size=12)


@pytest.mark.parametrize(
    ("dirty", "expected"),
    [("a\0b", "ab"), ("\ud83d\ude00", "😀"), ("x\ud83d", "x\ufffd"), ("\ude00y", "\ufffdy"), ("ответ", "ответ")],
)
def test_clean_repairs_what_storage_refuses(dirty: str, expected: str) -> None:
    assert clean(dirty) == expected


@given(pieces)
def test_pieces_are_cleaned_as_the_whole_is(parts: list[str]) -> None:
    cleaner = Cleaner()
    assert "".join(map(cleaner.feed, parts)) + cleaner.finish() == clean("".join(parts))


@given(any_text)
def test_clean_text_can_be_stored(text: str) -> None:
    assert "\0" not in clean(text)
    clean(text).encode()


def test_cleaned_reaches_into_json() -> None:
    assert cleaned({"a\0": ["\ud83d", 1, None, ("x\0",)]}) == {"a": ["\ufffd", 1, None, ["x"]]}


def test_a_model_path_is_shown_by_its_file_name() -> None:
    assert short_model("/home/me/models/qwen.gguf") == "qwen.gguf"
    assert short_model("C:\\models\\qwen.GGUF") == "qwen.GGUF"
    assert short_model("openai/gpt-oss-20b") == "openai/gpt-oss-20b"


def _split(parts: list[str]) -> tuple[str, str]:
    splitter = ThinkSplitter()
    found = [part for piece in parts for part in splitter.feed(piece)] + splitter.finish()
    assert all(text for _, text in found)
    said = {kind: "".join(text for k, text in found if k == kind) for kind in ("reasoning", "content")}
    return said["reasoning"], said["content"]


@pytest.mark.parametrize(
    ("text", "reasoning", "content"),
    [
        ("<think>why</think>\n\nbecause", "why", "because"),
        ("\n <think>why</think>because", "why", "because"),
        ("<think>never ends", "never ends", ""),
        ("<think>why</thi", "why</thi", ""),
        ("<think></think>", "", ""),
        ("plain", "", "plain"),
        ("  plain", "", "  plain"),
        ("the tag <think>x</think> in prose", "", "the tag <think>x</think> in prose"),
        ("<thin", "", "<thin"),
        ("<think>a</think>b <think>c</think>", "a", "b <think>c</think>"),
    ],
)
def test_a_leading_think_block_is_reasoning(text: str, reasoning: str, content: str) -> None:
    assert _split([text]) == (reasoning, content)
    assert _split(list(text)) == (reasoning, content)


@given(tagged, st.data())
def test_the_split_does_not_depend_on_the_pieces(parts: list[str], data: st.DataObject) -> None:
    whole = "".join(parts)
    cut = data.draw(st.integers(0, len(whole)))
    assert _split(parts) == _split([whole]) == _split([whole[:cut], whole[cut:]])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("thoughts\n</think>\n\nanswer", ("thoughts", "answer")),
        ("write `</think>` at the end", ("", "write `</think>` at the end")),
        ("<think>a\n</think>\nb", ("", "<think>a\n</think>\nb")),
        ("answer", ("", "answer")),
    ],
)
def test_a_lone_closing_tag_ends_reasoning_only_on_its_own_line(text: str, expected: tuple[str, str]) -> None:
    assert split_unopened(text) == expected
