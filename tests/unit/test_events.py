"""Events are read for ever: golden files, upcasters, and what cannot be read."""

import json
from pathlib import Path

import msgspec
import pytest

import domain.conversation
import domain.grants
import domain.server
import domain.task.events
from domain.events import REGISTRY, Unreadable, decode_body, encode_body

GOLDEN = Path(__file__).parent.parent / "golden" / "events"


@pytest.mark.parametrize("tag", sorted(REGISTRY))
def test_every_event_version_has_a_golden_file_that_still_loads(tag: str) -> None:
    path = GOLDEN / f"{tag}.json"
    assert path.exists(), f"write {path.name}: an example of {tag} as it is stored"
    envelope = decode_body(tag, path.read_bytes(), "stream", 1)
    assert not isinstance(envelope.data, Unreadable), envelope.data
    assert json.loads(encode_body(envelope)) == json.loads(path.read_bytes())


def test_golden_files_of_tags_no_longer_written_load_through_upcasters() -> None:
    for path in GOLDEN.glob("*.json"):
        assert not isinstance(decode_body(path.stem, path.read_bytes(), "s", 1).data, Unreadable), path.name


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"not json", b'{"id":"1","time":"2026-01-01T00:00:00Z","actor":"runtime","corr":"","caus":"","data":{"x":1}}',
     b'{"id":1}', b"\xff\xfe", b"null"],
)  # fmt: skip
def test_a_body_that_cannot_be_read_is_kept_raw(body: bytes) -> None:
    for tag in ("task.created.v1", "task.unheard_of.v7"):
        envelope = decode_body(tag, body, "s", 3, 9)
        assert isinstance(envelope.data, Unreadable)
        assert (envelope.type, envelope.version, envelope.position) == (tag, 3, 9)
        msgspec.json.encode(envelope)


def test_an_upcaster_turns_an_old_event_into_the_new_one() -> None:
    from domain.events import _UPCASTERS, upcaster

    @upcaster("task.cancelled.v0", "task.cancelled.v1")
    def step(raw: dict[str, object]) -> dict[str, object]:
        return {"reason": raw["why"]}

    try:
        body = b'{"id":"1","time":"2026-01-01T00:00:00Z","actor":"person","corr":"t","caus":"","data":{"why":"old"}}'
        assert decode_body("task.cancelled.v0", body, "s", 1).data == domain.task.events.TaskCancelled("old")
    finally:
        del _UPCASTERS["task.cancelled.v0"]
