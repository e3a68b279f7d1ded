"""Leases: renewed by hand, renewed by the loop, lost."""

import asyncio

import httpx
import pytest

import steps


async def a_renewed_lease_ends_later(queen, other, queue):
    await steps.create(queen, queue, lease_time=4)
    await steps.push(queen, queue, 1)
    message = await steps.pop_one(queen, queue)
    renewed = await queen.renew(message)
    assert renewed["success"] is True
    assert renewed["leaseId"] == message["leaseId"]
    assert renewed["newExpiresAt"]
    # Past the end that the lease first had.
    await asyncio.sleep(4.5)
    assert await steps.pop_now(other, queue) == []
    assert (await queen.ack(message))["success"]


async def a_lease_is_renewed_by_its_id(queen, queue):
    await steps.push(queen, queue, 1)
    message = await steps.pop_one(queen, queue)
    renewed = await queen.renew(message["leaseId"])
    assert renewed["newExpiresAt"]


async def a_batch_is_renewed_by_one_call(queen, queue):
    await steps.push(queen, queue, 1, 2, 3)
    messages = await steps.pop_waiting(queen, queue, batch=3)
    renewed = await queen.renew(messages)
    assert [item["leaseId"] for item in renewed] == [messages[0]["leaseId"]]
    assert renewed[0]["newExpiresAt"]


async def several_partitions_are_renewed_together(queen, other, queue):
    await steps.create(queen, queue, lease_time=4)
    for n in range(3):
        await steps.push(queen, queue, n, partition=f"p{n}")

    async def all_three():
        messages = await queen.queue(queue).batch(10).partitions(10).wait(True).timeout_millis(1000).pop()
        return messages if len(messages) == 3 else None

    messages = await steps.until("three partitions in one pop", all_three)
    await queen.renew(messages)
    await asyncio.sleep(4.5)
    assert await steps.pop_now(other, queue) == []
    assert all(item["success"] for item in (await queen.ack(messages))["results"])


@pytest.mark.client("2.")
async def a_released_lease_cannot_be_renewed(queen, queue):
    await steps.push(queen, queue, 1)
    message = await steps.pop_one(queen, queue)
    await queen.ack(message)
    renewed = await queen.renew(message)
    assert renewed["success"] is False
    assert renewed["newExpiresAt"] is None


# This release of the client believes every answer; the time alone tells.
@pytest.mark.client("0.15")
async def a_released_lease_gets_no_new_end(queen, queue):
    await steps.push(queen, queue, 1)
    message = await steps.pop_one(queen, queue)
    await queen.ack(message)
    assert (await queen.renew(message))["newExpiresAt"] is None


@pytest.mark.client("2.")
async def an_unknown_lease_cannot_be_renewed(queen):
    renewed = await queen.renew("00000000-0000-7000-8000-000000000000")
    assert renewed["success"] is False


@pytest.mark.client("2.")
async def a_lost_lease_cannot_be_renewed(queen, other, queue):
    await steps.create(queen, queue, lease_time=1)
    await steps.push(queen, queue, 1)
    late = await steps.pop_one(queen, queue)
    await steps.pop_one(other, queue)
    assert (await queen.renew(late))["success"] is False


async def the_loop_renews_while_the_handler_works(queen, other, queue):
    await steps.create(queen, queue, lease_time=4)
    await steps.push(queen, queue, 1)
    seen = []

    async def handler(message):
        seen.append(message["data"])
        # Past the end that the lease first had.
        await asyncio.sleep(4.5)
        assert await steps.pop_now(other, queue) == []

    builder = queen.queue(queue).batch(1).limit(1).renew_lease(True, 300)
    await steps.within(builder.consume(handler))
    assert seen == [1]
    await steps.push(queen, queue, 2)
    assert steps.data(await steps.pop_waiting(other, queue, batch=10)) == [2]


async def an_expired_lease_wakes_a_waiting_pop(queen, other, queue):
    await steps.create(queen, queue, lease_time=1)
    await steps.push(queen, queue, 1)
    first = await steps.pop_one(queen, queue)
    again = await steps.pop_one(other, queue)
    assert again["id"] == first["id"]
    assert again["leaseId"] != first["leaseId"]


async def a_nack_wakes_a_waiting_pop(queen, other, queue):
    await steps.create(queen, queue)
    await steps.push(queen, queue, 1)
    message = await steps.pop_one(queen, queue)
    waiting = asyncio.create_task(steps.pop_waiting(other, queue))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    await steps.nack(queen, message)
    assert steps.data(await steps.within(waiting)) == [1]


async def an_ack_wakes_a_pop_that_waits_for_the_next_message(queen, other, queue):
    await steps.push(queen, queue, 1, 2)
    message = await steps.pop_one(queen, queue)
    waiting = asyncio.create_task(steps.pop_waiting(other, queue))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    await queen.ack(message)
    assert steps.data(await steps.within(waiting)) == [2]


# Queen has had it since 2.0; its clients have no method for it.
@pytest.mark.wakeline_only
async def a_pop_may_name_the_time_of_its_lease(queen, url, queue):
    await steps.push(queen, queue, 1)
    async with httpx.AsyncClient(base_url=url) as http:
        pop = f"/api/v1/pop/queue/{queue}"
        popped = (await http.get(pop, params={"leaseSeconds": 1})).json()
        (message,) = popped["messages"]
        # Not after the five minutes of the queue.
        again = await steps.pop_one(queen, queue)
        assert again["id"] == message["id"]
        late = await queen.transaction().ack(again).commit()
        assert late["success"] is True
        refused = await http.get(pop, params={"leaseSeconds": 10**9})
        assert (refused.status_code, refused.json()["field"]) == (400, "leaseSeconds")
    with pytest.raises(Exception, match="rolled back"):
        await queen.transaction().ack(message).commit()
