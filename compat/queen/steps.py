"""Steps that the cases share: pushing, popping, and waiting with a bound."""

import asyncio
import uuid
from datetime import datetime, timezone

# How long a case waits for what must come, in seconds: two cores may be compiling beside it.
PATIENCE = 30
CHECK_EVERY = 0.1


def unique(kind):
    return f"{kind}-{uuid.uuid4().hex[:16]}"


async def within(awaitable, seconds=2 * PATIENCE):
    async with asyncio.timeout(seconds):
        return await awaitable


async def until(what, check):
    """Calls `check` until it returns a true value, and returns that."""
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                found = await check()
                if found:
                    return found
                await asyncio.sleep(CHECK_EVERY)
    except TimeoutError:
        raise AssertionError(f"waited in vain: {what}") from None


async def create(queen, queue, **options):
    """Nacked messages come again at once, unless the case is about the delay."""
    options = {"retry_delay": 0, **options}
    return await queen.queue(queue).config(options).create()


async def push(queen, queue, *payloads, partition=None):
    """Payload `p` has the transaction id `t-p`, so that a case can name it."""
    builder = queen.queue(queue)
    if partition is not None:
        builder = builder.partition(partition)
    return await builder.push([{"data": p, "transactionId": f"t-{p}"} for p in payloads])


def pop_builder(queen, queue, *, batch=1, group=None, partition=None, mode=None, origin=None):
    """One partition at a time: with fewer pins the newer client lets the server choose."""
    builder = queen.queue(queue).batch(batch).partitions(1)
    if partition is not None:
        builder = builder.partition(partition)
    if group is not None:
        builder = builder.group(group)
        if origin is not None:
            builder = builder.subscription_from(origin)
        else:
            builder = builder.subscription_mode(mode or "all")
    return builder


async def pop_waiting(queen, queue, **how):
    """The messages of a pop that waits; fails if none comes."""
    messages = await pop_builder(queen, queue, **how).wait(True).timeout_millis(PATIENCE * 1000).pop()
    assert messages, f"nothing came from {queue} {how}"
    return messages


async def pop_one(queen, queue, **how):
    messages = await pop_waiting(queen, queue, **how)
    assert len(messages) == 1
    return messages[0]


async def pop_now(queen, queue, **how):
    """The messages that are available now, perhaps none."""
    return await pop_builder(queen, queue, **how).wait(False).pop()


async def drain(queen, queue, count, *, group=None, batch=100, **how):
    """Pops and acknowledges until `count` messages have come."""
    context = {"group": group} if group else {}
    messages = []
    while len(messages) < count:
        some = await pop_waiting(queen, queue, batch=batch, group=group, **how)
        acked = await queen.ack(some, True, context)
        assert acked["success"], acked
        messages += some
    assert len(messages) == count
    return messages


def data(messages):
    return [message["data"] for message in messages]


def age(message):
    """How many seconds ago it was pushed; the clocks are one machine's."""
    created = datetime.fromisoformat(message["createdAt"].replace("Z", "+00:00"))
    return (datetime.now(timezone.utc) - created).total_seconds()


async def dead(queen, queue, count=1, group=None):
    """The dead letters of the queue, once there are `count`."""

    async def find():
        found = await queen.queue(queue).dlq(group).get()
        return found if len(found["messages"]) >= count else None

    return await until(f"{count} dead letters in {queue}", find)


async def nack(queen, message, error="boom", group=None):
    context = {"error": error}
    if group:
        context["group"] = group
    return await queen.ack(message, False, context)
