"""What a client of 2.6 can call and this server does not have: refused with a code, and nothing is done."""

import httpx
import pytest

import steps

# 1.3.0 and its successors have these.
pytestmark = [pytest.mark.wakeline_only, pytest.mark.client("2.")]


async def _is_refused(call, code, status=404):
    with pytest.raises(httpx.HTTPStatusError) as refused:
        await steps.within(call)
    response = refused.value.response
    assert response.status_code == status
    assert response.json()["code"] == code
    assert "this server" in response.json()["error"]
    return refused.value


async def the_key_value_store(queen):
    refused = await _is_refused(queen.kv.get("space", "key"), "kv_unsupported")
    # What a program branches on, and not the whole text.
    assert refused.code == "kv_unsupported"
    await _is_refused(queen.kv.put("space", "key", 1, forever=True), "kv_unsupported")
    await _is_refused(queen.kv.once("space", "key", forever=True), "kv_unsupported")


async def timers(queen, queue):
    timers = queen.timers
    refused = await _is_refused(timers.schedule(queue, "a/key", {"n": 1}, delay_ms=1), "timers_unsupported")
    assert refused.code == "timers_unsupported"
    await _is_refused(timers.peek(queue, "a/key"), "timers_unsupported")
    await _is_refused(timers.cancel(queue, "a/key"), "timers_unsupported")
    assert await steps.pop_now(queen, queue) == []


async def locks(queen):
    name = steps.unique("lock")
    refused = await _is_refused(queen.locks.acquire(name, ttl_seconds=30), "locks_unsupported")
    assert refused.code == "locks_unsupported"
    lock = queen.lock(name, ttl_seconds=30)
    await _is_refused(lock.acquire(), "locks_unsupported")
    assert not lock.held


async def reads_by_offset(queen, queue):
    await steps.push(queen, queue, 1)
    builder = queen.queue(queue)
    await _is_refused(builder.fetch("Default"), "fetch_unsupported")
    await _is_refused(builder.changed_since(), "changed_partitions_unsupported")
    assert steps.data(await steps.pop_waiting(queen, queue)) == [1]


async def ephemeral_queues(queen, queue):
    ephemeral = queen.ephemeral
    for call in (
        ephemeral.push(queue, [{"n": 1}]),
        ephemeral.pop(queue, wait=True, timeout=30_000),
        ephemeral.configure(queue, {"maxLength": 1}),
        ephemeral.depth(queue),
        ephemeral.queues(),
        ephemeral.delete(queue),
    ):
        with pytest.raises(httpx.HTTPStatusError) as refused:
            await steps.within(call)
        # Not `ephemeral_queue_not_found`: that would say that the server has the feature.
        assert refused.value.code == "ephemeral_unsupported"
        assert refused.value.response.json()["code"] == "ephemeral_unsupported"
    # No durable queue has appeared in its place.
    with pytest.raises(Exception, match="not found"):
        await queen.admin.get_queue(queue)


async def binary_pushes(url, queen, queue):
    binary = type(queen)(url, binary_push=True)
    try:
        await _is_refused(binary.queue(queue).push([{"data": 1}]), "binary_unsupported", 400)
    finally:
        await binary.close()
    assert await steps.pop_now(queen, queue) == []


async def framed_pops_are_answered_in_json(url, queen, queue):
    namespace = steps.unique("ns")
    await queen.queue(queue).namespace(namespace).create()
    framed = type(queen)(url, framed_pop=True)
    try:
        for n, builder in enumerate([
            framed.queue(queue),
            framed.queue(queue).partition("p"),
            framed.queue().namespace(namespace),
        ]):
            await steps.push(queen, queue, n, partition="p")
            (message,) = await steps.within(builder.batch(1).partitions(1).pop())
            assert message["data"] == n
            assert (await framed.ack(message))["success"]
    finally:
        await framed.close()


async def conflation(queen, queue, group):
    await steps.push(queen, queue, 1)
    builder = queen.queue(queue).group(group).conflation()
    await _is_refused(builder.pop(), "conflation_unsupported", 400)
