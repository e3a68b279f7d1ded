"""The streaming SDK of the package: operators, windows, state, gates."""

import contextlib

import pytest
from queen.streams import Stream
from queen.streams.runtime.register import StreamsConfigHashMismatch

import steps


@contextlib.asynccontextmanager
async def _running(stream, url, query, **options):
    errors = []
    options = {"max_wait_millis": 300, "subscription_mode": "all", **options}
    runner = await stream.run(
        query_id=query, url=url, on_error=lambda error, context: errors.append((context, error)), **options
    )
    try:
        yield runner
    finally:
        await runner.stop()
    assert errors == []


def _query():
    return steps.unique("query")


async def values_are_filtered_and_flattened_into_a_sink(queen, queue, url):
    sink = f"{queue}-out"
    await steps.push(queen, queue, *range(5))
    stream = (
        Stream.from_(queen.queue(queue))
        .filter(lambda message: message["data"] >= 2)
        .flat_map(lambda message: [{"n": message["data"]}, {"n": -message["data"]}])
        .to(queen.queue(sink))
    )
    async with _running(stream, url, _query()):
        arrived = steps.data(await steps.drain(queen, sink, 6))
    assert [value["n"] for value in arrived] == [2, -2, 3, -3, 4, -4]


async def values_are_mapped_into_a_sink(queen, queue, url):
    sink = f"{queue}-out"
    await steps.push(queen, queue, 1, 2)
    stream = Stream.from_(queen.queue(queue)).map(lambda message: {"n": message["data"] * 10})
    async with _running(stream.to(queen.queue(sink)), url, _query()):
        arrived = steps.data(await steps.drain(queen, sink, 2))
    assert arrived == [{"n": 10}, {"n": 20}]


async def the_sink_keeps_the_partition(queen, queue, url):
    sink = f"{queue}-out"
    for n in range(3):
        await steps.push(queen, queue, {"n": n}, partition=f"p{n}")
    stream = Stream.from_(queen.queue(queue)).to(queen.queue(sink))
    async with _running(stream, url, _query()):
        arrived = await steps.drain(queen, sink, 3)
    assert {(m["partition"], m["data"]["n"]) for m in arrived} == {(f"p{n}", n) for n in range(3)}


async def the_sink_may_choose_the_partition(queen, queue, url):
    sink = f"{queue}-out"
    await steps.push(queen, queue, {"to": "x"}, {"to": "y"})
    stream = Stream.from_(queen.queue(queue)).to(queen.queue(sink), partition=lambda value: value["to"])
    async with _running(stream, url, _query()):
        arrived = await steps.drain(queen, sink, 2)
    assert {m["partition"] for m in arrived} == {"x", "y"}


async def effects_run_for_each_value(queen, queue, url):
    await steps.push(queen, queue, 1, 2, 3)
    seen = []
    stream = Stream.from_(queen.queue(queue)).foreach(lambda value, context: seen.append(value))
    query = _query()
    async with _running(stream, url, query):
        await steps.until("all of it", _caught_up(queen, queue, f"streams.{query}"))
    assert seen == [1, 2, 3]


async def a_stream_that_starts_again_continues_where_it_stopped(queen, queue, url):
    query, sink = _query(), f"{queue}-out"
    stream = Stream.from_(queen.queue(queue)).to(queen.queue(sink))
    for n in range(2):
        await steps.push(queen, queue, {"n": n})
        async with _running(stream, url, query):
            (arrived,) = await steps.drain(queen, sink, 1)
        assert arrived["data"] == {"n": n}
    assert await steps.pop_now(queen, sink) == []


def _sums(queen, queue, sink):
    """Sums per ten seconds of the messages' own time, which the last message ends."""
    return (
        Stream.from_(queen.queue(queue))
        .window_tumbling(seconds=10, event_time=lambda message: message["data"]["at"], idle_flush_ms=0)
        .reduce(lambda total, value: total + value["n"], 0)
        .map(lambda total: {"total": total})
        .to(queen.queue(sink))
    )


async def a_tumbling_window_is_summed_up_when_it_is_over(queen, queue, url):
    sink = f"{queue}-out"
    events = [(1_000, 1), (2_000, 2), (9_999, 3), (11_000, 10), (25_000, 0)]
    await steps.push(queen, queue, *({"at": at, "n": n} for at, n in events))
    async with _running(_sums(queen, queue, sink), url, _query()):
        arrived = steps.data(await steps.drain(queen, sink, 2))
    assert [value["total"] for value in arrived] == [6, 10]


async def the_state_of_a_window_outlives_its_runner(queen, queue, url):
    query, sink = _query(), f"{queue}-out"
    group = f"streams.{query}"
    await steps.push(queen, queue, {"at": 1_000, "n": 1})
    async with _running(_sums(queen, queue, sink), url, query):
        await steps.until("the first cycle", _caught_up(queen, queue, group))
    await steps.push(queen, queue, {"at": 2_000, "n": 2}, {"at": 30_000, "n": 0})
    async with _running(_sums(queen, queue, sink), url, query):
        arrived = steps.data(await steps.drain(queen, sink, 1))
    assert [value["total"] for value in arrived] == [3]


def _caught_up(queen, queue, group):
    async def check():
        detail = await queen.admin.get_consumer_group(group)
        partitions = detail.get(queue, {}).get("partitions", [])
        return partitions and all(p["offsetLag"] == 0 and not p["leaseActive"] for p in partitions)

    return check


async def a_window_is_kept_per_key(queen, queue, url):
    sink = f"{queue}-out"
    events = [("a", 1_000, 1), ("b", 2_000, 5), ("a", 3_000, 2), ("a", 20_000, 0), ("b", 20_000, 0)]
    await steps.push(queen, queue, *({"key": key, "at": at, "n": n} for key, at, n in events))
    stream = (
        Stream.from_(queen.queue(queue))
        .key_by(lambda message: message["data"]["key"])
        .window_tumbling(seconds=10, event_time=lambda message: message["data"]["at"], idle_flush_ms=0)
        .aggregate({"count": lambda value: 1, "sum": lambda value: value["n"]})
        .to(queen.queue(sink))
    )
    async with _running(stream, url, _query()):
        arrived = steps.data(await steps.drain(queen, sink, 2))
    assert sorted((value["count"], value["sum"]) for value in arrived) == [(1, 5), (2, 3)]


async def a_sliding_window_counts_an_event_more_than_once(queen, queue, url):
    sink = f"{queue}-out"
    await steps.push(queen, queue, {"at": 12_000, "n": 1}, {"at": 60_000, "n": 0})
    stream = (
        Stream.from_(queen.queue(queue))
        .window_sliding(size=10, slide=5, event_time=lambda message: message["data"]["at"], idle_flush_ms=0)
        .reduce(lambda total, value: total + value["n"], 0)
        .to(queen.queue(sink))
    )
    async with _running(stream, url, _query()):
        arrived = steps.data(await steps.drain(queen, sink, 2))
    assert [value["value"] for value in arrived] == [1, 1]


async def a_session_ends_with_a_gap(queen, queue, url):
    sink = f"{queue}-out"
    events = [(1_000, 1), (3_000, 2), (30_000, 4), (90_000, 0)]
    await steps.push(queen, queue, *({"at": at, "n": n} for at, n in events))
    stream = (
        Stream.from_(queen.queue(queue))
        .window_session(gap=5, event_time=lambda message: message["data"]["at"], idle_flush_ms=0)
        .reduce(lambda total, value: total + value["n"], 0)
        .to(queen.queue(sink))
    )
    async with _running(stream, url, _query()):
        arrived = steps.data(await steps.drain(queen, sink, 2))
    assert [value["value"] for value in arrived] == [3, 4]


async def an_idle_window_is_flushed_by_the_clock(queen, queue, url):
    sink = f"{queue}-out"
    await steps.push(queen, queue, {"n": 1}, {"n": 2})
    stream = (
        Stream.from_(queen.queue(queue))
        .window_tumbling(seconds=1, idle_flush_ms=200)
        .reduce(lambda total, value: total + value["n"], 0)
        .to(queen.queue(sink))
    )
    total = 0
    async with _running(stream, url, _query()):
        # The two may lie on either side of a full second.
        while total < 3:
            (value,) = steps.data(await steps.drain(queen, sink, 1, batch=1))
            total += value["value"]
    assert total == 3


async def a_gate_lets_through_what_its_state_allows(queen, queue, url):
    query, sink = _query(), f"{queue}-out"
    await steps.create(queen, queue, lease_time=4)
    await steps.push(queen, queue, *range(5))

    def three(value, context):
        passed = context.state.get("passed", 0)
        context.state["passed"] = passed + 1
        return passed < 3

    stream = Stream.from_(queen.queue(queue)).gate(three).to(queen.queue(sink))
    async with _running(stream, url, query):
        arrived = steps.data(await steps.drain(queen, sink, 3))
    assert [value["value"] for value in arrived] == [0, 1, 2]
    left = await steps.pop_waiting(queen, queue, batch=10, group=f"streams.{query}")
    assert steps.data(left) == [3, 4]


async def a_changed_stream_is_refused_under_its_old_name(queen, queue, url):
    query = _query()
    async with _running(Stream.from_(queen.queue(queue)).map(lambda n: n), url, query):
        pass
    changed = Stream.from_(queen.queue(queue)).map(lambda n: n).filter(lambda n: True)
    with pytest.raises(StreamsConfigHashMismatch, match="mismatch"):
        await changed.run(query_id=query, url=url)


async def a_changed_stream_may_begin_anew(queen, queue, url):
    query, sink = _query(), f"{queue}-out"
    async with _running(Stream.from_(queen.queue(queue)).map(lambda n: n), url, query):
        pass
    await steps.push(queen, queue, {"n": 1})
    changed = Stream.from_(queen.queue(queue)).filter(lambda value: True).to(queen.queue(sink))
    async with _running(changed, url, query, reset=True):
        assert steps.data(await steps.drain(queen, sink, 1)) == [{"n": 1}]
