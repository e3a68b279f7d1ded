"""What becomes visible later: delays and window buffers."""

import asyncio

import pytest

import steps

# A server may round its moments to milliseconds, and no clock is read twice at once.
ROUNDING = 0.05


async def a_delayed_message_is_delivered_when_it_is_due(queen, queue):
    await steps.create(queen, queue, delayed_processing=1)
    await steps.push(queen, queue, 1)
    message = await steps.pop_one(queen, queue)
    assert message["data"] == 1
    assert steps.age(message) >= 1 - ROUNDING


async def a_delayed_message_of_a_named_partition_is_delivered_when_it_is_due(queen, queue):
    await steps.create(queen, queue, delayed_processing=1)
    await steps.push(queen, queue, 1, partition="mine")
    message = await steps.pop_one(queen, queue, partition="mine")
    assert steps.age(message) >= 1 - ROUNDING


async def a_pop_that_waits_is_woken_when_a_delayed_message_is_due(queen, other, queue):
    await steps.create(queen, queue, delayed_processing=1)
    waiting = asyncio.create_task(steps.pop_waiting(queen, queue))
    await asyncio.sleep(0.1)
    await steps.push(other, queue, 1)
    (message,) = await steps.within(waiting)
    assert steps.age(message) >= 1 - ROUNDING


async def delayed_messages_keep_their_order(queen, queue):
    await steps.create(queen, queue, delayed_processing=1)
    for n in range(5):
        await steps.push(queen, queue, n)
    assert steps.data(await steps.drain(queen, queue, 5)) == list(range(5))


async def a_delay_applies_to_every_group(queen, queue, group):
    await steps.create(queen, queue, delayed_processing=1)
    await steps.push(queen, queue, 1)
    message = await steps.pop_one(queen, queue, group=group)
    assert steps.age(message) >= 1 - ROUNDING


async def the_loop_waits_for_delayed_messages(queen, queue):
    await steps.create(queen, queue, delayed_processing=1)
    await steps.push(queen, queue, 1, 2)
    seen = []

    async def handler(message):
        seen.append(message["data"])

    await steps.within(queen.queue(queue).batch(1).limit(2).consume(handler))
    assert seen == [1, 2]


# 1.3.0 often hands out a window that is still open.
@pytest.mark.wakeline_only
async def a_window_collects_messages_until_the_pushes_pause(queen, queue):
    await steps.create(queen, queue, window_buffer=1)
    await steps.push(queen, queue, 1, 2)
    await steps.push(queen, queue, 3)
    messages = await steps.pop_waiting(queen, queue, batch=10)
    assert steps.data(messages) == [1, 2, 3]
    assert steps.age(messages[-1]) >= 1 - ROUNDING


# Likewise.
@pytest.mark.wakeline_only
async def a_pop_that_waits_is_woken_when_the_window_closes(queen, other, queue):
    await steps.create(queen, queue, window_buffer=1)
    waiting = asyncio.create_task(steps.pop_waiting(queen, queue, batch=10))
    await asyncio.sleep(0.1)
    await steps.push(other, queue, 1, 2)
    messages = await steps.within(waiting)
    assert steps.data(messages) == [1, 2]
    assert steps.age(messages[-1]) >= 1 - ROUNDING


async def each_partition_has_its_own_window(queen, queue):
    await steps.create(queen, queue, window_buffer=2)
    await steps.push(queen, queue, "quiet", partition="quiet")
    done = asyncio.Event()

    async def keep_busy():
        n = 0
        while not done.is_set():
            await steps.push(queen, queue, n, partition="busy")
            n += 1
            await asyncio.sleep(0.2)

    busy = asyncio.create_task(keep_busy())
    try:
        assert steps.data(await steps.pop_waiting(queen, queue, partition="quiet")) == ["quiet"]
    finally:
        done.set()
        await busy
