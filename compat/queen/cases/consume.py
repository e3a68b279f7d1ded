"""The client's own loop: long polls, handlers, acks and nacks on its own."""

import asyncio

import pytest

import steps


async def messages_are_handled_and_acked_until_the_limit(queen, queue):
    await steps.push(queen, queue, *range(5))
    seen = []

    async def handler(message):
        seen.append(message["data"])

    await steps.within(queen.queue(queue).batch(1).limit(5).consume(handler))
    assert seen == [0, 1, 2, 3, 4]
    await steps.push(queen, queue, "next")
    assert steps.data(await steps.pop_waiting(queen, queue, batch=10)) == ["next"]


async def a_batch_is_handled_as_a_list(queen, queue):
    await steps.push(queen, queue, *range(6))
    batches = []

    async def handler(messages):
        batches.append(steps.data(messages))

    await steps.within(queen.queue(queue).batch(3).limit(6).consume(handler))
    assert batches == [[0, 1, 2], [3, 4, 5]]
    assert await steps.pop_now(queen, queue) == []


async def each_handles_a_batch_one_by_one(queen, queue):
    await steps.push(queen, queue, *range(6))
    seen = []

    async def handler(message):
        seen.append(message["data"])

    await steps.within(queen.queue(queue).batch(3).each().limit(6).consume(handler))
    assert seen == list(range(6))
    assert await steps.pop_now(queen, queue) == []


async def the_loop_polls_until_a_message_comes(queen, other, queue):
    got = asyncio.Event()

    async def handler(message):
        got.set()

    # Shorter than the wait below, so that at least one poll has ended empty.
    builder = queen.queue(queue).batch(1).limit(1).timeout_millis(200)
    consuming = asyncio.create_task(steps.within(builder.consume(handler)))
    await asyncio.sleep(0.7)
    assert not got.is_set()
    await steps.push(other, queue, 1)
    await consuming
    assert got.is_set()


async def messages_pushed_during_the_loop_come_in_order(queen, other, queue):
    seen = []

    async def handler(message):
        seen.append(message["data"])

    builder = queen.queue(queue).batch(1).limit(10)
    consuming = asyncio.create_task(steps.within(builder.consume(handler)))
    for n in range(10):
        await steps.push(other, queue, n)
    await consuming
    assert seen == list(range(10))


async def an_idle_loop_ends(queen, queue):
    await steps.push(queen, queue, 1)
    seen = []

    async def handler(message):
        seen.append(message["data"])

    builder = queen.queue(queue).batch(1).idle_millis(2000).timeout_millis(500)
    await steps.within(builder.consume(handler))
    assert seen == [1]


async def a_signal_ends_the_loop(queen, queue):
    stop = asyncio.Event()
    await steps.push(queen, queue, 1)

    async def handler(message):
        stop.set()

    builder = queen.queue(queue).batch(1).timeout_millis(300)
    await steps.within(builder.consume(handler, signal=stop))
    assert stop.is_set()


async def workers_share_the_partitions(queen, queue):
    for n in range(8):
        await steps.push(queen, queue, *(f"{n}-{m}" for m in range(5)), partition=f"p{n}")
    seen, stop = [], asyncio.Event()

    async def handler(messages):
        for message in messages if isinstance(messages, list) else [messages]:
            seen.append(message["data"])
        if len(seen) >= 40:
            stop.set()

    builder = queen.queue(queue).concurrency(4).batch(5).timeout_millis(300)
    await steps.within(builder.consume(handler, signal=stop))
    assert sorted(seen) == sorted(f"{n}-{m}" for n in range(8) for m in range(5))
    for n in range(8):
        assert [s for s in seen if s.startswith(f"{n}-")] == [f"{n}-{m}" for m in range(5)]


async def a_message_whose_handler_fails_is_redelivered(queen, queue):
    await steps.create(queen, queue)
    await steps.push(queen, queue, "flaky", "fine")
    seen, stop = [], asyncio.Event()

    async def handler(message):
        seen.append(message["data"])
        if len(seen) == 1:
            raise RuntimeError("the first time")
        if message["data"] == "fine":
            stop.set()

    builder = queen.queue(queue).batch(1).timeout_millis(500)
    await steps.within(builder.consume(handler, signal=stop))
    assert seen == ["flaky", "flaky", "fine"]


async def a_message_whose_handler_always_fails_becomes_a_dead_letter(queen, queue):
    await steps.create(queen, queue, retry_limit=2)
    await steps.push(queen, queue, "bad", "good")
    seen, stop = [], asyncio.Event()

    async def handler(message):
        seen.append(message["data"])
        if message["data"] == "bad":
            raise RuntimeError("never")
        stop.set()

    builder = queen.queue(queue).batch(1).timeout_millis(500)
    await steps.within(builder.consume(handler, signal=stop))
    assert seen == ["bad", "bad", "bad", "good"]
    (letter,) = (await steps.dead(queen, queue))["messages"]
    assert letter["data"] == "bad"


@pytest.mark.client("2.")
async def the_error_of_the_handler_is_on_the_dead_letter(queen, queue):
    await steps.create(queen, queue, retry_limit=0)
    await steps.push(queen, queue, "bad", "good")
    stop = asyncio.Event()

    async def handler(message):
        if message["data"] == "bad":
            raise RuntimeError("the reason why")
        stop.set()

    builder = queen.queue(queue).batch(1).timeout_millis(500)
    await steps.within(builder.consume(handler, signal=stop))
    (letter,) = (await steps.dead(queen, queue))["messages"]
    assert letter["errorMessage"] == "the reason why"


async def a_failed_batch_is_redelivered_whole(queen, queue):
    await steps.create(queen, queue)
    await steps.push(queen, queue, *range(3))
    batches, stop = [], asyncio.Event()

    async def handler(messages):
        batches.append(steps.data(messages))
        if len(batches) == 1:
            raise RuntimeError("the first time")
        stop.set()

    builder = queen.queue(queue).batch(3).timeout_millis(500)
    await steps.within(builder.consume(handler, signal=stop))
    assert batches == [[0, 1, 2], [0, 1, 2]]


@pytest.mark.client("2.")
async def each_leaves_the_rest_of_a_batch_after_a_failure(queen, queue):
    await steps.create(queen, queue)
    await steps.push(queen, queue, *range(3))
    seen, stop = [], asyncio.Event()

    async def handler(message):
        seen.append(message["data"])
        if seen == [0, 1]:
            raise RuntimeError("the first time")
        if message["data"] == 2:
            stop.set()

    builder = queen.queue(queue).batch(3).each().timeout_millis(500)
    await steps.within(builder.consume(handler, signal=stop))
    assert seen == [0, 1, 1, 2]


async def callbacks_may_ack_themselves(queen, queue):
    await steps.create(queen, queue, retry_limit=0)
    await steps.push(queen, queue, "good", "bad")
    succeeded, failed, stop = [], [], asyncio.Event()

    async def handler(message):
        if message["data"] == "bad":
            raise RuntimeError("boom")
        return "result"

    async def on_success(message, result):
        succeeded.append((message["data"], result))
        await queen.ack(message, True)

    async def on_error(message, error):
        failed.append((message["data"], str(error)))
        await queen.ack(message, False, {"error": str(error)})
        stop.set()

    builder = queen.queue(queue).batch(1).timeout_millis(500)
    consuming = builder.consume(handler, signal=stop).on_success(on_success).on_error(on_error)
    await steps.within(consuming)
    assert succeeded == [("good", "result")]
    assert failed == [("bad", "boom")]
    (letter,) = (await steps.dead(queen, queue))["messages"]
    assert letter["errorMessage"] == "boom"


async def a_message_without_an_ack_is_redelivered(queen, queue):
    await steps.create(queen, queue, lease_time=1)
    await steps.push(queen, queue, 1)
    seen = []

    async def handler(message):
        seen.append(message["data"])

    builder = queen.queue(queue).batch(1).auto_ack(False).limit(2).timeout_millis(30_000)
    await steps.within(builder.consume(handler))
    assert seen == [1, 1]


async def a_named_partition_is_consumed_alone(queen, queue):
    await steps.push(queen, queue, "no", partition="other")
    await steps.push(queen, queue, "yes", "yes too", partition="mine")
    seen = []

    async def handler(message):
        seen.append(message["data"])

    builder = queen.queue(queue).partition("mine").batch(1).limit(2)
    await steps.within(builder.consume(handler))
    assert seen == ["yes", "yes too"]


async def a_namespace_is_consumed_across_its_queues(queen, queue):
    namespace = steps.unique("ns")
    for n in range(2):
        await queen.queue(f"{queue}-{n}").namespace(namespace).create()
        await steps.push(queen, f"{queue}-{n}", n)
    seen = []

    async def handler(message):
        seen.append(message["data"])

    builder = queen.queue().namespace(namespace).batch(1).limit(2)
    await steps.within(builder.consume(handler))
    assert sorted(seen) == [0, 1]


async def two_consumers_of_a_queue_share_its_messages(queen, other, queue):
    for n in range(6):
        await steps.push(queen, queue, n, partition=f"p{n}")
    seen, stop = [], asyncio.Event()

    async def handler(message):
        seen.append(message["data"])
        if len(seen) == 6:
            stop.set()

    both = [
        client.queue(queue).batch(1).timeout_millis(300).consume(handler, signal=stop)
        for client in (queen, other)
    ]
    await steps.within(asyncio.gather(*both))
    assert sorted(seen) == list(range(6))


async def many_messages_through_many_workers_arrive_once_and_in_order(queen, other, queue):
    partitions, each = 10, 30
    seen, stop = {}, asyncio.Event()

    async def handler(messages):
        for message in messages if isinstance(messages, list) else [messages]:
            seen.setdefault(message["partition"], []).append(message["data"])
        if sum(map(len, seen.values())) >= partitions * each:
            stop.set()

    builder = queen.queue(queue).concurrency(5).batch(10).timeout_millis(500)
    consuming = asyncio.create_task(steps.within(builder.consume(handler, signal=stop)))

    async def produce(partition):
        for n in range(each):
            await steps.push(other, queue, n, partition=partition)

    await asyncio.gather(*(produce(f"p{n}") for n in range(partitions)))
    await consuming
    assert seen == {f"p{n}": list(range(each)) for n in range(partitions)}
