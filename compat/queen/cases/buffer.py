"""The client's own buffer in front of push."""

from queen import Queen

import steps


async def a_full_buffer_is_sent(queen, queue):
    buffered = queen.queue(queue).buffer({"message_count": 5, "time_millis": 60_000})
    for n in range(5):
        answer = await buffered.push({"data": n})
        assert answer["buffered"] is True
    assert sorted(steps.data(await steps.drain(queen, queue, 5))) == list(range(5))


async def a_buffer_is_sent_when_its_time_is_over(queen, queue):
    await queen.queue(queue).buffer({"message_count": 100, "time_millis": 300}).push({"data": 1})
    assert steps.data(await steps.pop_waiting(queen, queue)) == [1]


async def a_buffer_is_sent_when_it_is_flushed(queen, queue):
    builder = queen.queue(queue)
    for n in range(7):
        await builder.buffer({"message_count": 100, "time_millis": 60_000}).push({"data": n})
    assert queen.get_buffer_stats()["totalBufferedMessages"] == 7
    await builder.flush_buffer()
    assert queen.get_buffer_stats()["totalBufferedMessages"] == 0
    assert steps.data(await steps.drain(queen, queue, 7)) == list(range(7))


async def all_buffers_are_flushed_together(queen, queue):
    queues = [f"{queue}-{n}" for n in range(3)]
    for name in queues:
        await queen.queue(name).buffer({"message_count": 100, "time_millis": 60_000}).push({"data": name})
    await queen.flush_all_buffers()
    for name in queues:
        assert steps.data(await steps.pop_waiting(queen, name)) == [name]


async def closing_the_client_sends_its_buffered_messages(queen, queue, url):
    client = Queen(url)
    await client.queue(queue).buffer({"message_count": 100, "time_millis": 60_000}).push({"data": 1})
    await client.close()
    assert steps.data(await steps.pop_waiting(queen, queue)) == [1]
