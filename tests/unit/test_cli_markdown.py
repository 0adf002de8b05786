"""Colours for Markdown as it comes: nothing lost, and the same however it is cut."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from api.cli.markdown import MarkdownPainter, Segment

texts = st.text(st.sampled_from("a b\n*`# -é")) | st.text()


def painted(*pieces: str) -> list[Segment]:
    painter = MarkdownPainter()
    segments = [s for piece in pieces for s in painter.feed(piece)] + painter.finish()
    merged: list[Segment] = []
    for text, style in segments:
        if merged and merged[-1][1] == style:
            merged[-1] = (merged[-1][0] + text, style)
        else:
            merged.append((text, style))
    return merged


@given(texts)
def test_every_character_is_shown_as_it_came(text: str) -> None:
    assert "".join(shown for shown, _ in painted(text)) == text


@given(texts, st.lists(st.integers(0, 200), max_size=6))
def test_it_does_not_matter_where_the_text_is_cut(text: str, cuts: list[int]) -> None:
    edges = sorted({0, len(text), *(min(c, len(text)) for c in cuts)})
    pieces = [text[a:b] for a, b in itertools.pairwise(edges)]
    assert painted(*pieces) == painted(text)


def test_bold_code_headings_and_fences_are_told_apart() -> None:
    assert painted("# Title\n") == [("# Title\n", "bold")]
    assert painted("a **b** c") == [("a ", ""), ("**", "dim"), ("b", "bold"), ("**", "dim"), (" c", "")]
    assert painted("run `ls -la`\n")[2] == ("ls -la", "cyan")
    assert painted("```py\nx = 1 ** 2\n```\nend") == [
        ("```py\n", "dim"), ("x = 1 ** 2\n", "cyan"), ("```\n", "dim"), ("end", ""),
    ]  # fmt: skip


def test_what_only_looks_like_markup_stays_plain() -> None:
    for text in ("2 ** 3 is 8\n", "#hashtag\n", "* item\n", "a*b\n"):
        assert painted(text) == [(text, "")]


def test_text_is_held_back_only_until_it_is_clear() -> None:
    painter = MarkdownPainter()
    assert painter.feed("#") == []
    assert painter.feed("# x") == [("## x", "bold")]
    assert painter.feed(" y") == [(" y", "bold")]
