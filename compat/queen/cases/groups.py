"""Consumer groups: each with a cursor of its own, and where it begins."""

import asyncio
from datetime import datetime, timezone

import httpx
import pytest

import steps


async def every_group_gets_all_messages(queen, queue):
    await steps.push(queen, queue, *range(5))
    for _ in range(3):
        group = steps.unique("group")
        messages = await steps.drain(queen, queue, 5, group=group)
        assert steps.data(messages) == list(range(5))
        assert {message["consumerGroup"] for message in messages} == {group}


async def a_group_is_separate_from_consumers_without_a_group(queen, queue, group):
    await steps.push(queen, queue, 1, 2)
    assert steps.data(await steps.drain(queen, queue, 2)) == [1, 2]
    assert steps.data(await steps.drain(queen, queue, 2, group=group)) == [1, 2]


async def a_lease_of_one_group_does_not_block_another(queen, queue, group):
    await steps.push(queen, queue, 1)
    another = steps.unique("group")
    first = await steps.pop_one(queen, queue, group=group)
    second = await steps.pop_one(queen, queue, group=another)
    assert first["id"] == second["id"]
    assert first["leaseId"] != second["leaseId"]


async def members_of_a_group_share_its_messages(queen, other, queue, group):
    await steps.push(queen, queue, 1, 2)
    message = await steps.pop_one(queen, queue, group=group)
    assert await steps.pop_now(other, queue, group=group) == []
    await queen.ack(message, True, {"group": group})
    assert steps.data(await steps.pop_waiting(other, queue, group=group)) == [2]


async def an_ack_for_another_group_is_refused(queen, queue, group):
    await steps.push(queen, queue, 1)
    message = await steps.pop_one(queen, queue, group=group)
    answer = await queen.ack(message, True, {"group": steps.unique("group")})
    assert answer["success"] is False
    assert (await queen.ack(message, True, {"group": group}))["success"]


# 1.3.0 begins at the end unless told otherwise.
@pytest.mark.wakeline_only
async def a_new_group_begins_at_the_start(queen, queue, group):
    await steps.push(queen, queue, 1, 2)
    messages = await steps.within(queen.queue(queue).group(group).batch(10).partitions(1).pop())
    assert steps.data(messages) == [1, 2]


@pytest.mark.parametrize("mode", ["new", "new-only"])
async def a_group_may_begin_at_the_end(queen, queue, group, mode):
    await steps.push(queen, queue, "old")
    assert await steps.pop_now(queen, queue, group=group, mode=mode) == []
    await steps.push(queen, queue, "new")
    assert steps.data(await steps.pop_waiting(queen, queue, group=group, mode=mode, batch=10)) == ["new"]


# The word that ordinary consumers send, and one that says nothing.
@pytest.mark.parametrize("mode", ["all", "from_beginning"])
async def a_group_may_begin_at_the_start(queen, queue, group, mode):
    await steps.push(queen, queue, 1, 2)
    assert steps.data(await steps.pop_waiting(queen, queue, group=group, mode=mode, batch=10)) == [1, 2]


# 1.3.0 takes any other word for all. The client shows a refused pop as an empty one.
@pytest.mark.wakeline_only
async def an_unknown_word_for_the_start_is_refused_with_the_nearest_one(queen, url, queue, group):
    await steps.push(queen, queue, 1)
    assert await steps.pop_now(queen, queue, group=group, mode="new_only") == []
    async with httpx.AsyncClient(base_url=url) as http:
        wrong = {"consumerGroup": group, "subscriptionMode": "new_only"}
        # Also beside a time, which is the more exact of the two.
        for parameters in (wrong, {**wrong, "subscriptionFrom": "now"}):
            refused = await http.get(f"/api/v1/pop/queue/{queue}", params=parameters)
            assert refused.status_code == 400
            assert refused.json()["field"] == "subscriptionMode"
            assert "did you mean `new-only`" in refused.json()["error"]
    assert steps.data(await steps.pop_waiting(queen, queue, group=group)) == [1]


async def a_group_may_begin_now(queen, queue, group):
    await steps.push(queen, queue, "old")
    assert await steps.pop_now(queen, queue, group=group, origin="now") == []
    await steps.push(queen, queue, "new")
    assert steps.data(await steps.pop_waiting(queen, queue, group=group, origin="now", batch=10)) == ["new"]


async def a_group_may_begin_long_ago(queen, queue, group):
    await steps.push(queen, queue, 1, 2)
    messages = await steps.pop_waiting(queen, queue, group=group, origin="2020-01-01T00:00:00Z", batch=10)
    assert steps.data(messages) == [1, 2]


async def a_group_may_begin_at_a_time(queen, queue, group):
    await steps.push(queen, queue, "before")
    await asyncio.sleep(0.2)
    moment = datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")
    await asyncio.sleep(0.2)
    await steps.push(queen, queue, "after")
    messages = await steps.pop_waiting(queen, queue, group=group, origin=moment, batch=10)
    assert steps.data(messages) == ["after"]


async def the_start_of_a_group_is_set_once(queen, queue, group):
    await steps.push(queen, queue, 1)
    await steps.pop_now(queen, queue, group=group, mode="new")
    await steps.push(queen, queue, 2)
    assert steps.data(await steps.pop_waiting(queen, queue, group=group, mode="all", batch=10)) == [2]


async def a_group_that_begins_at_the_end_gets_new_partitions_whole(queen, queue, group):
    await steps.push(queen, queue, "old", partition="a")
    assert await steps.pop_now(queen, queue, group=group, mode="new") == []
    await steps.push(queen, queue, "new", partition="b")
    messages = await steps.pop_waiting(queen, queue, group=group, mode="new", batch=10)
    assert [(m["partition"], m["data"]) for m in messages] == [("b", "new")]


async def a_group_is_consumed_by_the_loop(queen, queue, group):
    await steps.push(queen, queue, 1, 2, 3)
    seen = []

    async def handler(message):
        seen.append(message["data"])

    builder = queen.queue(queue).group(group).subscription_mode("all").batch(1).limit(3)
    await steps.within(builder.consume(handler))
    assert seen == [1, 2, 3]
    assert await steps.pop_now(queen, queue, group=group) == []
    assert steps.data(await steps.pop_waiting(queen, queue, batch=10)) == [1, 2, 3]


async def two_groups_are_consumed_concurrently(queen, other, queue):
    for n in range(4):
        await steps.push(queen, queue, n, n + 10, partition=f"p{n}")
    expected = sorted([0, 1, 2, 3, 10, 11, 12, 13])

    async def consume(client):
        seen, stop = [], asyncio.Event()

        async def handler(message):
            seen.append(message["data"])
            if len(seen) == 8:
                stop.set()

        builder = client.queue(queue).group(steps.unique("group")).subscription_mode("all")
        await builder.batch(1).concurrency(2).timeout_millis(300).consume(handler, signal=stop)
        return sorted(seen)

    assert await steps.within(asyncio.gather(consume(queen), consume(other))) == [expected, expected]


async def waiters_of_several_groups_are_all_woken(queen, other, queue):
    groups = [steps.unique("group") for _ in range(5)]
    waiting = [asyncio.create_task(steps.pop_waiting(queen, queue, group=group)) for group in groups]
    await asyncio.sleep(0.2)
    await steps.push(other, queue, 1)
    for messages in await steps.within(asyncio.gather(*waiting)):
        assert steps.data(messages) == [1]


async def a_deleted_group_begins_again(queen, queue, group):
    await steps.push(queen, queue, 1, 2)
    await steps.drain(queen, queue, 2, group=group)
    answer = await queen.delete_consumer_group(group)
    assert (answer["success"], answer["consumerGroup"]) == (True, group)
    assert answer["deletedPartitions"] == 1
    assert answer["metadataDeleted"] is True
    assert steps.data(await steps.pop_waiting(queen, queue, group=group, batch=10)) == [1, 2]


async def a_group_is_deleted_for_one_queue_only(queen, queue, group):
    another = f"{queue}-2"
    for name in (queue, another):
        await steps.push(queen, name, 1)
        await steps.drain(queen, name, 1, group=group)
    answer = await queen.admin.delete_consumer_group_for_queue(group, queue)
    assert (answer["success"], answer["queueName"]) == (True, queue)
    assert steps.data(await steps.pop_waiting(queen, queue, group=group)) == [1]
    assert await steps.pop_now(queen, another, group=group) == []


async def deleting_an_unknown_group_is_no_error(queen, group):
    answer = await queen.delete_consumer_group(group)
    assert (answer["success"], answer["deletedPartitions"]) == (True, 0)


async def the_time_of_a_subscription_can_be_set(queen, queue, group):
    await steps.push(queen, queue, 1)
    await steps.pop_waiting(queen, queue, group=group)
    answer = await queen.update_consumer_group_timestamp(group, "2024-01-01T00:00:00Z")
    assert answer["success"] is True
    assert answer["consumerGroup"] == group
    assert answer["rowsUpdated"] == 1
