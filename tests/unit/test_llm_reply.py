"""From chunks to a reply."""

import json
from typing import Any

import pytest

from adapters.llm.reply import SLACK, ReplyBuilder
from domain.errors import ContextOverflow, ModelProtocolError, ModelRejected, ModelUnavailable
from domain.messages import Message, ToolCall
from domain.model import Delta, ModelReply, ModelRequest, Timings, Transport, Usage


class Stream:
    """Feeds a builder and keeps what it told."""

    def __init__(self, max_output_tokens: int = 100, transport: Transport = "text") -> None:
        self.deltas: list[Delta] = []
        request = ModelRequest(
            "action", "t", "call-1", (Message("user", "hi"),), transport, max_output_tokens=max_output_tokens
        )
        self.builder = ReplyBuilder(request, self.deltas.append, "http://m")

    def say(self, *deltas: dict[str, Any], finish: str | None = None, **more: Any) -> "Stream":
        for delta in deltas or ({},):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            self.builder.take(json.dumps({"choices": [choice], "model": "m", **more}))
        return self

    def done(self, **more: Any) -> ModelReply:
        self.say(finish="stop", **more)
        self.builder.take("[DONE]")
        return self.builder.reply(needs_done=True)

    def told(self, kind: str) -> str:
        return "".join(d.text for d in self.deltas if d.kind == kind)


def test_reasoning_content_and_progress_come_apart() -> None:
    s = Stream()
    s.say(
        {"role": "assistant", "content": None}, prompt_progress={"total": 9, "cache": 4, "processed": 6, "time_ms": 1}
    )
    assert s.deltas == [Delta("progress", total=9, cached=4, processed=6)]
    assert not s.builder.begun
    s.say({"reasoning_content": "why "}, {"reasoning": "not"}, {"content": "be"}, {"content": "cause"})
    reply = s.done()
    assert (reply.reasoning, reply.content, reply.finish_reason, reply.model) == ("why not", "because", "stop", "m")
    assert (s.told("reasoning"), s.told("content")) == ("why not", "because")
    assert 0 < reply.first_token_ms <= reply.latency_ms


def test_think_tags_in_content_are_reasoning_across_chunks() -> None:
    s = Stream().say({"content": "<thi"}, {"content": "nk>hm</th"}, {"content": "ink>\nyes"})
    reply = s.done()
    assert (reply.reasoning, reply.content) == ("hm", "yes")
    assert (s.told("reasoning"), s.told("content")) == ("hm", "yes")


def test_everything_in_reasoning_stays_there() -> None:
    reply = Stream().say({"reasoning_content": "all of it"}).done()
    assert (reply.content, reply.reasoning) == ("", "all of it")


def _call(index: int | None, call_id: str = "", name: str = "", arguments: Any = None) -> dict[str, Any]:
    piece: dict[str, Any] = {"function": {"name": name, "arguments": arguments}}
    if index is not None:
        piece["index"] = index
    if call_id:
        piece["id"] = call_id
    return {"tool_calls": [piece]}


def test_tool_calls_are_put_together_by_index() -> None:
    s = Stream().say(
        _call(0, "a", "one", "{"), _call(1, "b", "two", '{"x"'), _call(0, arguments="}"), _call(1, arguments=":1}")
    )
    reply = s.done()
    assert reply.tool_calls == (ToolCall("a", "one", "{}"), ToolCall("b", "two", '{"x":1}'))
    assert reply.finish_reason == "tool_calls"
    assert s.told("tool_call") == 'one{two{"x"}:1}'


@pytest.mark.parametrize(
    "pieces",
    [
        [_call(None, "a", "one", "{"), _call(None, "", "", "}"), _call(None, "b", "two", "{}")],
        [_call(0, "a", "one", "{}"), _call(0, "b", "two", "{}")],
        [_call(None, "a", "one", {}), _call(None, "b", "two", {})],
    ],
    ids=["no index", "always index 0", "objects instead of text"],
)
def test_tool_calls_of_careless_servers(pieces: list[dict[str, Any]]) -> None:
    assert Stream().say(*pieces).done().tool_calls == (ToolCall("a", "one", "{}"), ToolCall("b", "two", "{}"))


def test_calls_without_ids_get_distinct_steady_ones() -> None:
    first, second = (Stream().say(_call(0, "", "one", "{}"), _call(1, "", "two", "{}")).done().tool_calls for _ in "ab")
    assert first == second
    assert first[0].id != first[1].id
    assert first[0].id


def test_surrogates_and_nuls_are_cleaned_across_chunks() -> None:
    s = Stream()
    for text in ("\\ud83d", "\\ude00 a\\u0000b", " \\ud83d"):
        s.builder.take('{"choices":[{"index":0,"delta":{"content":"' + text + '"}}]}')
    reply = s.done()
    assert reply.content == "😀 ab \ufffd"
    assert s.told("content") == reply.content


def test_usage_and_timings() -> None:
    timings = {"cache_n": 7, "prompt_n": 3, "prompt_ms": 1.5, "predicted_n": 2, "predicted_ms": 4}
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 7}}
    reply = Stream().say({"content": "x"}).done(usage=usage, timings=timings)
    assert reply.usage == Usage(10, 2, 7)
    assert reply.timings == Timings(7, 3, 1.5, 2, 4.0)


def test_zero_usage_is_filled_from_timings() -> None:
    timings = {"cache_n": 7, "prompt_n": 3, "predicted_n": 2}
    assert Stream().say({"content": "x"}).done(usage={"prompt_tokens": 0}, timings=timings).usage == Usage(10, 2, 7)


@pytest.mark.parametrize("junk", [None, "many", [1], {"prompt_tokens": "x", "cache_n": None}, {"prompt_tokens": -5}])
def test_unusable_figures_count_as_none(junk: Any) -> None:
    reply = Stream().say({"content": "x"}).done(usage=junk, timings=junk)
    assert (reply.usage, reply.timings) == (Usage(), Timings())


def test_not_a_number_and_huge_figures_are_taken() -> None:
    s = Stream()
    s.builder.take('{"choices":[],"usage":{"prompt_tokens":NaN,"completion_tokens":%s}}' % ("9" * 400))
    assert s.done().usage == Usage()


def test_an_early_end_is_no_answer() -> None:
    s = Stream().say({"content": "half"})
    with pytest.raises(ModelProtocolError, match="before the answer was complete"):
        s.builder.reply(needs_done=False)
    s.say(finish="stop")
    with pytest.raises(ModelProtocolError):
        s.builder.reply(needs_done=True)
    assert s.builder.reply(needs_done=False).content == "half"


@pytest.mark.parametrize("data", ["one two", "{", "[]", '"text"', "[" * 100_000])
def test_a_broken_chunk_is_a_protocol_error(data: str) -> None:
    with pytest.raises(ModelProtocolError):
        Stream().builder.take(data)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 500, "message": "boom", "type": "server_error"}, ModelUnavailable),
        ({"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 9, "n_ctx": 4}, ContextOverflow),
        ({"code": "server_error", "message": "boom"}, ModelUnavailable),
        ("just text", ModelUnavailable),
    ],
)
def test_errors_in_the_stream_are_told_apart(error: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        Stream().builder.take(json.dumps({"error": error}))


@pytest.mark.parametrize(
    ("said", "expected"), [("length", "length"), ("max_tokens", "length"), ("stop", "stop"), ("eos_token", "stop")]
)
def test_finish_reasons_are_three(said: str, expected: str) -> None:
    s = Stream().say({"content": "x"}, finish=said)
    assert s.builder.reply(needs_done=False).finish_reason == expected


def test_a_content_filter_is_a_refusal() -> None:
    with pytest.raises(ModelRejected, match="filter"):
        Stream().say({"content": "x"}, finish="content_filter").builder.reply(needs_done=False)


@pytest.mark.parametrize(
    "delta", [{"content": "word "}, {"content": ""}, {"reasoning": "\0"}, _call(0, "a", "one", "x")]
)
def test_endless_tokens_are_cut(delta: dict[str, Any]) -> None:
    s = Stream(max_output_tokens=10)
    for _ in range(16 * 10 + SLACK + 1):
        if s.builder.full:
            break
        s.say(delta)
    assert s.builder.full
    reply = s.builder.reply(needs_done=True)
    assert reply.finish_reason == "length"
    assert len(reply.content) <= 16 * 10 + SLACK + 5


def test_a_model_lost_in_the_white_space_of_json_is_stopped() -> None:
    constrained, free = Stream(1000, "json_schema"), Stream(1000, "text")
    for stream in (constrained, free):
        stream.say({"content": '{"a": 1,\n'})
        for _ in range(300):
            if not stream.builder.full:
                stream.say({"content": " \t"})
    assert constrained.builder.full
    assert constrained.builder.reply(needs_done=True).finish_reason == "length"
    assert not free.builder.full


def test_white_space_between_words_adds_up_to_nothing() -> None:
    s = Stream(1000, "json_schema")
    for _ in range(300):
        s.say({"content": " word"}, {"content": "\n\t"})
    assert not s.builder.full


def test_other_choices_and_content_parts() -> None:
    s = Stream()
    s.builder.take(
        '{"choices":[{"index":1,"delta":{"content":"no"}},null,{"delta":{"content":[{"type":"text","text":"yes"}]}}]}'
    )
    assert s.done().content == "yes"
