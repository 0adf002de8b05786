"""Live deltas: the feed in one process, and the bridge between several."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.runtime.bridge import LiveBridge, Parcel, _merged, packed, unpacked
from adapters.runtime.live import LiveDelta, LiveFeed


def text_of(feed: LiveFeed, task_id: str = "t") -> dict[str, str]:
    return {d.kind: d.text for d in feed.snapshot(task_id)}


async def test_a_feed_keeps_the_text_so_far_and_forgets_it_at_the_end() -> None:
    feed, seen = LiveFeed(), []
    with feed.subscribe("t", seen.append):
        feed.begin("t", "c", "thinker")
        feed.text("c", "content_delta", "при")
        feed.text("c", "content_delta", "вет")
        feed.text("other", "content_delta", "nobody began this")
        assert text_of(feed) == {"content_delta": "привет"}
        feed.end("c")
    assert [(d.offset, d.text) for d in seen] == [(0, "при"), (3, "вет")]
    assert feed.snapshot("t") == []
    assert feed._listeners == {}


async def test_deltas_reach_the_feed_of_another_process(database_url: str) -> None:
    here, there, late = LiveFeed(), LiveFeed(), LiveFeed()
    bridges = [LiveBridge(database_url, feed, name) for feed, name in ((here, "a"), (there, "b"), (late, "c"))]
    for bridge in bridges[:2]:
        bridge.start()
    await asyncio.sleep(0.3)
    here.begin("t", "c", "thinker")
    here.text("c", "reasoning_delta", "hm ")
    for n in range(300):
        here.text("c", "content_delta", f"слово {n} ")
    big = "🦆" * 20_000
    here.text("c", "content_delta", big)
    expected = "".join(f"слово {n} " for n in range(300)) + big
    async with asyncio.timeout(20):
        while text_of(there) != {"reasoning_delta": "hm ", "content_delta": expected}:
            await asyncio.sleep(0.02)
        here.end("c")
        while there.snapshot("t"):
            await asyncio.sleep(0.02)
    for bridge in bridges[:2]:
        await bridge.stop()


async def test_the_bridge_comes_back_after_its_connection_is_lost(database_url: str) -> None:
    import psycopg

    here, there = LiveFeed(), LiveFeed()
    bridges = [LiveBridge(database_url, here, "a"), LiveBridge(database_url, there, "b")]
    for bridge in bridges:
        bridge.start()
    await asyncio.sleep(0.3)
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as conn:
        await conn.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid()"
        )
    async with asyncio.timeout(20):
        n = 0
        while not text_of(there):
            here.begin("t", f"c{n}", "thinker")
            here.text(f"c{n}", "content_delta", "again")
            await asyncio.sleep(0.1)
            n += 1
    for bridge in bridges:
        await bridge.stop()


@given(st.lists(st.text(max_size=9000), max_size=12))
@settings(max_examples=40, deadline=None)
def test_whatever_is_sent_fits_and_arrives_whole(texts: list[str]) -> None:
    bridge = LiveBridge("", LiveFeed(), "a")
    offset = 0
    for text in texts:
        clean = text.encode("utf-8", "replace").decode()
        bridge._gather(LiveDelta("t", "c", "content_delta", "thinker", offset, clean))
        offset += len(clean)
    payloads = list(bridge._payloads(_merged(bridge._deltas), ["c"]))
    assert all(len(p) < 8000 for p in payloads)
    feed = LiveFeed()
    for payload in payloads:
        for delta in unpacked(payload).deltas:
            feed.take_in(delta)
    assert text_of(feed).get("content_delta", "") == "".join(t.encode("utf-8", "replace").decode() for t in texts)
    assert unpacked(packed(Parcel("x", []))).sender == "x"
