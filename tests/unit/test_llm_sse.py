"""Server-sent events, cut anywhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.sse import MAX_EVENT_BYTES, SseDecoder
from domain.errors import ModelProtocolError


def _events(chunks: list[bytes]) -> list[str]:
    decoder = SseDecoder()
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.finish()


@given(st.lists(st.text(st.characters(exclude_characters="\n\r", codec="utf-8"), min_size=1)), st.data())
def test_events_survive_any_cut(texts: list[str], data: st.DataObject) -> None:
    newline = data.draw(st.sampled_from(["\n", "\r\n"]))
    raw = "".join(f": ping{newline}{newline}data: {text}{newline}{newline}" for text in texts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    chunks = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert _events(chunks) == texts


def test_a_line_separator_in_the_text_is_no_line_end() -> None:
    assert _events(["data: a\u2028b\x85c\n\n".encode()]) == ["a\u2028b\x85c"]


def test_several_data_lines_are_one_event_and_other_fields_are_skipped() -> None:
    assert _events([b"event: x\nid: 7\ndata: a\ndata:b\nretry: 1\n\n"]) == ["a\nb"]


def test_a_last_event_without_a_blank_line_counts() -> None:
    assert _events([b"data: a\n\ndata: [DONE]"]) == ["a", "[DONE]"]
    assert _events([b"data: a\n\ndata: [DONE]\n"]) == ["a", "[DONE]"]


def test_broken_utf8_is_replaced() -> None:
    assert _events([b"data: \xff\n\n"]) == ["\ufffd"]


def test_an_event_that_never_ends_is_refused() -> None:
    decoder = SseDecoder()
    decoder.feed(b"x" * MAX_EVENT_BYTES)
    with pytest.raises(ModelProtocolError, match="one event"):
        decoder.feed(b"x")
    many_lines = SseDecoder()
    many_lines.feed((b"data:" + b"x" * 65531 + b"\n") * (MAX_EVENT_BYTES // 65536))
    with pytest.raises(ModelProtocolError, match="one event"):
        many_lines.feed(b"data:" + b"x" * 65531 + b"\n")
