"""Text for stores, screens and the model; and the bounded capture of output."""

from hypothesis import given
from hypothesis import strategies as st

from adapters.tools.capture import Capture
from domain.text import clipped, for_model, shown, storable

ANY_TEXT = st.text(st.characters(), max_size=200) | st.text("\x1b[]0;m\r\n\x07\\ab\x9b\u202e\0", max_size=60)


def test_for_model() -> None:
    assert for_model("\x1b[1;31mred\x1b[0m \x1b]0;title\x07x\x1b]8;;http://e\x1b\\link\x1b]8;;\x1b\\") == "red xlink"
    assert for_model("10%\r50%\r100%\ndone\r\n") == "100%\ndone\n"
    assert for_model("a\x08b\x00c\td") == "ab␀c\td"
    assert for_model("safe\u202egpj.exe") == "safe\\u202egpj.exe"
    assert for_model("\x1b]0;never ended\nnext line") == "\nnext line"
    assert for_model("Привет 🦆") == "Привет 🦆"


@given(ANY_TEXT)
def test_for_model_leaves_nothing_that_steers_and_changes_no_more_the_second_time(text: str) -> None:
    clean = for_model(text)
    assert not any((ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 for c in clean)
    assert for_model(clean) == clean


@given(ANY_TEXT)
def test_storable_and_shown(text: str) -> None:
    assert "\0" not in storable(text)
    storable(text).encode("utf-8")
    assert shown(text).isprintable()


@given(ANY_TEXT.map(storable), st.integers(0, 50))
def test_clipped(text: str, limit: int) -> None:
    assert len(clipped(text, limit).encode()) <= limit
    assert text.startswith(clipped(text, limit))


@given(st.lists(st.binary(max_size=300), max_size=20), st.integers(200, 600))
def test_capture(pieces: list[bytes], limit: int) -> None:
    heard: list[str] = []
    capture = Capture(limit, heard.append)
    for piece in pieces:
        capture.feed(piece)
    capture.close()
    whole = b"".join(pieces).decode("utf-8", "replace").replace("\0", "␀")
    assert "".join(heard) == whole
    assert capture.size == sum(map(len, pieces))
    assert len(capture.text().encode()) <= limit
    if capture.truncated:
        head, _, tail = capture.text().partition("\n[… ")
        assert whole.startswith(head)
        assert whole.endswith(tail.partition(" …]\n")[2])
    else:
        assert capture.text() == whole
