"""Server-sent events as the command line reads them."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from api.cli.sse import ServerEvent, SseReader

STREAM = (
    'event: event\r\nid: 41\r\ndata: {"a":\r\ndata: 1}\r\n\r\n'
    'event: content_delta\ndata: {"text":"eins\u2028zwei\u0085drei"}\n\n'
    ": a comment\n\n"
    "event: heartbeat\ndata: {}\n\n"
    "id: nonsense\ndata: not json\n\n"
).encode()
EVENTS = [
    ServerEvent("event", {"a": 1}, 41),
    ServerEvent("content_delta", {"text": "eins\u2028zwei\u0085drei"}),
    ServerEvent("heartbeat", {}),
    ServerEvent("message", "not json"),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_events_are_the_same_wherever_the_bytes_are_cut(cuts: list[int]) -> None:
    edges = sorted({0, len(STREAM), *cuts})
    reader = SseReader()
    assert [e for a, b in itertools.pairwise(edges) for e in reader.feed(STREAM[a:b])] == EVENTS


def test_an_event_that_was_cut_off_never_comes() -> None:
    assert SseReader().feed(b"event: done\ndata: {}\n") == []
