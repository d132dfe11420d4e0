import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ra.core.errors import BadStream
from ra.providers.transports import sse
from ra.providers.transports.sse import EventReader


def read(*chunks: bytes) -> list[str]:
    reader = EventReader()
    return [data for chunk in chunks for data in reader.feed(chunk)] + list(reader.finish())


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_every_line_ending_ends_a_line(end: str) -> None:
    assert read(f"data: one{end}{end}event: x{end}data: two{end}{end}".encode()) == ["one", "two"]


def test_data_lines_of_one_event_are_joined() -> None:
    assert read(b"data: one\ndata:two\ndata\n\n") == ["one\ntwo\n"]


def test_comments_ids_and_names_are_no_data() -> None:
    assert read(b": keep-alive\n\nid: 7\nretry: 10\nevent: ping\n\n:\ndata: x\n\n") == ["x"]


def test_a_byte_order_mark_is_skipped_at_the_start_only() -> None:
    assert read(b"\xef\xbb\xbfdata: x\n\ndata: \xef\xbb\xbfy\n\n") == ["x", "\ufeffy"]


def test_the_last_event_counts_without_its_empty_line() -> None:
    assert read(b"data: one\n\ndata: two") == ["one", "two"]


def test_an_event_is_told_as_soon_as_its_empty_line_is_there() -> None:
    reader = EventReader()
    assert list(reader.feed(b"data: x\r\n\r")) == ["x"]
    assert list(reader.feed(b"\ndata: y\n\n")) == ["y"]


def test_invalid_utf8_is_replaced() -> None:
    assert read(b"data: a\xffb\n\n") == ["a\ufffdb"]


def test_an_event_without_end_is_refused_before_it_fills_the_memory() -> None:
    reader = EventReader(max_bytes=1000)
    for _ in range(9):
        assert list(reader.feed(b"data: " + b"x" * 100)) == []
    with pytest.raises(BadStream, match="one event of more than"):
        list(reader.feed(b"data: " + b"x" * 100))


texts = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1, max_size=12)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(texts, st.sampled_from(["\n", "\r", "\r\n"])), max_size=6), st.data())
def test_events_are_the_same_however_the_bytes_are_cut(events: list[tuple[str, str]], data: st.DataObject) -> None:
    stream = "".join(f"event: e{end}data: {text}{end}: c{end}{end}" for text, end in events).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert read(*pieces) == [text for text, _ in events]


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_fail(noise: bytes) -> None:
    whole = read(noise)
    assert whole == read(*(noise[i : i + 1] for i in range(len(noise))))


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (r'{"a": "\ud800"}', {"a": "?"}),
        ('{"a": "x\x01"}', {"a": "x\x01"}),
        (r'{"a": "\ud83d\ude00"}', {"a": "😀"}),
    ],
)
def test_odd_json_is_read_and_can_be_written_again(raw: str, value: object) -> None:
    assert sse.event(raw) == value
    json.dumps(sse.event(raw), ensure_ascii=False).encode()


@pytest.mark.parametrize("raw", ["{", "<html>", "[1]", "7", "null", "[" * 100_000, '{"a":' * 100_000])
def test_what_is_no_object_is_a_bad_stream(raw: str) -> None:
    with pytest.raises(BadStream):
        sse.event(raw)
