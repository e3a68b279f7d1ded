"""Popping: leases, batches, partitions, long polls, names."""

import asyncio

import pytest

import steps


async def a_popped_message_is_leased_to_one_consumer(queen, other, queue):
    await steps.push(queen, queue, 1, 2)
    message = await steps.pop_one(queen, queue)
    assert message["data"] == 1
    assert await steps.pop_now(other, queue) == []
    await queen.ack(message)
    assert steps.data(await steps.pop_waiting(other, queue)) == [2]


async def a_batch_has_at_most_the_requested_number_of_messages(queen, queue):
    await steps.push(queen, queue, *range(5))
    messages = await steps.pop_waiting(queen, queue, batch=3)
    assert steps.data(messages) == [0, 1, 2]
    assert len({message["leaseId"] for message in messages}) == 1
    await queen.ack(messages)
    assert steps.data(await steps.pop_waiting(queen, queue, batch=3)) == [3, 4]


@pytest.mark.client("0.15")
async def a_pop_without_a_batch_size_gets_one_message(queen, queue):
    await steps.push(queen, queue, 1, 2)
    messages = await steps.within(queen.queue(queue).pop())
    assert steps.data(messages) == [1]


@pytest.mark.client("2.")
async def a_pop_without_a_batch_size_gets_the_servers_batch(queen, queue):
    await steps.push(queen, queue, *range(20))
    messages = await steps.within(queen.queue(queue).pop())
    assert steps.data(messages) == list(range(len(messages)))
    assert len(messages) > 1


# 1.3.0 may choose fewer by its own measure.
@pytest.mark.wakeline_only
@pytest.mark.client("2.")
async def a_pop_without_a_batch_size_gets_two_hundred_messages(queen, queue):
    await steps.push(queen, queue, *range(250))
    messages = await steps.within(queen.queue(queue).partitions(1).pop())
    assert steps.data(messages) == list(range(200))


# 1.3.0 conflates.
@pytest.mark.wakeline_only
@pytest.mark.client("2.")
async def a_conflating_pop_is_refused_and_leases_nothing(queen, queue, group):
    await steps.push(queen, queue, 1, 2)
    with pytest.raises(Exception, match="conflation: .*nothing was taken"):
        await steps.within(queen.queue(queue).group(group).conflation().pop())
    assert steps.data(await steps.pop_waiting(queen, queue, batch=10, group=group)) == [1, 2]


# 1.3.0 conflates.
@pytest.mark.wakeline_only
@pytest.mark.client("2.")
async def a_conflating_consumer_ends_with_the_refusal(queen, queue, group):
    await steps.push(queen, queue, 1, 2)

    async def handler(message):
        raise AssertionError(f"it was given {message}")

    with pytest.raises(Exception, match="conflation: .*nothing was taken"):
        await steps.within(queen.queue(queue).group(group).conflation().consume(handler))
    assert steps.data(await steps.pop_waiting(queen, queue, batch=10, group=group)) == [1, 2]


async def an_unknown_queue_is_empty(queen, queue):
    assert await steps.pop_now(queen, queue) == []
    assert await steps.pop_now(queen, queue, partition="p") == []


async def a_partition_can_be_named(queen, queue):
    await steps.push(queen, queue, "a", partition="pa")
    await steps.push(queen, queue, "b", partition="pb")
    message = await steps.pop_one(queen, queue, partition="pb")
    assert (message["data"], message["partition"]) == ("b", "pb")
    assert await steps.pop_now(queen, queue, partition="pb") == []
    assert steps.data(await steps.pop_waiting(queen, queue, partition="pa")) == ["a"]


async def a_leased_partition_holds_up_no_other(queen, queue):
    await steps.push(queen, queue, 1, 2, partition="a")
    await steps.push(queen, queue, 3, 4, partition="b")
    first = await steps.pop_waiting(queen, queue, batch=10)
    second = await steps.pop_waiting(queen, queue, batch=10)
    assert first[0]["partition"] != second[0]["partition"]
    assert sorted(steps.data(first + second)) == [1, 2, 3, 4]


async def several_partitions_are_popped_under_one_lease(queen, queue):
    for n in range(4):
        await steps.push(queen, queue, n, partition=f"p{n}")

    messages = []
    while len(messages) < 4:
        some = await steps.within(queen.queue(queue).batch(100).partitions(10).pop())
        assert len({message["leaseId"] for message in some}) == 1
        messages += some
    assert sorted(steps.data(messages)) == [0, 1, 2, 3]
    acked = await queen.ack(messages)
    assert all(item["success"] for item in acked["results"])
    assert await steps.pop_now(queen, queue) == []


async def the_batch_is_shared_by_the_partitions(queen, queue):
    for n in range(4):
        await steps.push(queen, queue, f"{n}a", f"{n}b", partition=f"p{n}")
    messages = await steps.within(queen.queue(queue).batch(3).partitions(10).pop())
    assert 1 <= len(messages) <= 3


async def a_waiting_pop_gets_a_message_pushed_later(queen, other, queue):
    waiting = asyncio.create_task(steps.pop_waiting(queen, queue))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    await steps.push(other, queue, 1)
    assert steps.data(await steps.within(waiting)) == [1]


async def a_waiting_pop_on_a_partition_gets_a_message_pushed_there(queen, other, queue):
    waiting = asyncio.create_task(steps.pop_waiting(queen, queue, partition="mine"))
    await steps.push(other, queue, "theirs", partition="other")
    await steps.push(other, queue, "mine", partition="mine")
    assert steps.data(await steps.within(waiting)) == ["mine"]


async def a_waiting_pop_is_answered_when_its_time_is_over(queen, queue):
    builder = steps.pop_builder(queen, queue).wait(True).timeout_millis(400)
    assert await steps.within(builder.pop()) == []


async def many_waiting_pops_share_the_pushed_messages(queen, other, queue):
    waiting = [asyncio.create_task(steps.pop_waiting(queen, queue)) for _ in range(20)]
    for n in range(20):
        await steps.push(other, queue, n, partition=f"p{n}")
    got = [steps.data(messages) for messages in await steps.within(asyncio.gather(*waiting))]
    assert sorted(got) == [[n] for n in range(20)]


async def a_pop_that_hung_up_takes_no_message(queen, other, queue):
    for _ in range(3):
        waiting = asyncio.create_task(steps.pop_waiting(queen, queue))
        await asyncio.sleep(0.1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    await steps.push(other, queue, 1)
    assert steps.data(await steps.pop_waiting(other, queue)) == [1]


async def a_pop_right_after_the_push_gets_the_message(queen, queue):
    for n in range(10):
        await steps.push(queen, queue, n, partition=f"p{n}")
        message = (await steps.pop_now(queen, queue))[0]
        assert message["data"] == n
        await queen.ack(message)


@pytest.mark.client("2.")
async def an_auto_acked_message_needs_no_ack(queen, queue):
    await steps.push(queen, queue, 1, 2)
    builder = steps.pop_builder(queen, queue, batch=1).commit_on_delivery()
    (message,) = await steps.within(builder.pop())
    assert (message["data"], message["leaseId"]) == (1, "")
    assert steps.data(await steps.pop_waiting(queen, queue)) == [2]


async def a_namespace_is_popped_across_its_queues(queen, queue):
    namespace = steps.unique("ns")
    for n in range(3):
        await queen.queue(f"{queue}-{n}").namespace(namespace).create()
        await steps.push(queen, f"{queue}-{n}", n)
    await steps.push(queen, queue, "elsewhere")
    got = []
    for _ in range(3):
        (message,) = await steps.within(queen.queue().namespace(namespace).batch(1).partitions(1).pop())
        assert (await queen.ack(message))["success"]
        got.append(message["data"])
    assert sorted(got) == [0, 1, 2]


async def a_task_is_popped_across_namespaces(queen, queue):
    task = steps.unique("task")
    for n in range(2):
        await queen.queue(f"{queue}-{n}").namespace(steps.unique("ns")).task(task).create()
        await steps.push(queen, f"{queue}-{n}", n)
    got = []
    for _ in range(2):
        (message,) = await steps.within(queen.queue().task(task).batch(1).partitions(1).pop())
        assert (await queen.ack(message))["success"]
        got.append(message["data"])
    assert sorted(got) == [0, 1]


async def namespace_and_task_narrow_each_other(queen, queue):
    namespace, task = steps.unique("ns"), steps.unique("task")
    await queen.queue(f"{queue}-1").namespace(namespace).task("other").create()
    await queen.queue(f"{queue}-2").namespace(namespace).task(task).create()
    await steps.push(queen, f"{queue}-1", "no")
    await steps.push(queen, f"{queue}-2", "yes")
    builder = queen.queue().namespace(namespace).task(task).batch(10).partitions(10)
    assert steps.data(await steps.within(builder.pop())) == ["yes"]


async def the_name_of_a_queue_decides_alone(queen, queue):
    for n, partition in ((1, None), (2, "p")):
        await steps.push(queen, queue, n, partition=partition)
        builder = queen.queue(queue).namespace("another").task("another").batch(1).partitions(1)
        builder = builder.partition(partition) if partition else builder
        (message,) = await steps.within(builder.pop())
        assert message["data"] == n
        assert (await queen.ack(message))["success"]


async def a_dot_in_the_name_makes_namespace_and_task(queen):
    namespace, task = steps.unique("ns"), steps.unique("task")
    await steps.push(queen, f"{namespace}.{task}", 1)
    builder = queen.queue().namespace(namespace).task(task).batch(1).partitions(1)
    assert steps.data(await steps.within(builder.pop())) == [1]


async def a_waiting_pop_by_namespace_gets_a_message_pushed_later(queen, other, queue):
    namespace = steps.unique("ns")
    await queen.queue(queue).namespace(namespace).create()
    builder = queen.queue().namespace(namespace).batch(1).partitions(1)
    waiting = asyncio.create_task(builder.pop())
    await asyncio.sleep(0.2)
    await steps.push(other, queue, 1)
    assert steps.data(await steps.within(waiting)) == [1]


# 1.3.0 takes the option and ignores it.
@pytest.mark.wakeline_only
async def the_queue_of_higher_priority_is_popped_first(queen, queue):
    namespace = steps.unique("ns")
    for name, priority in (("low", 1), ("high", 9), ("middle", 5)):
        builder = queen.queue(f"{queue}-{name}").namespace(namespace)
        await builder.config({"priority": priority}).create()
        await steps.push(queen, f"{queue}-{name}", name)
    got = []
    for _ in range(3):
        (message,) = await steps.within(queen.queue().namespace(namespace).batch(1).partitions(1).pop())
        got.append(message["data"])
    assert got == ["high", "middle", "low"]


NAMES = ["with space", "ünïcödé", "日本", "dotted.name", "a+b", "a:b@c", "100%", "quote'\"", "~tilde", "a=b&c"]


@pytest.mark.parametrize("name", NAMES)
async def any_name_of_a_queue_can_be_pushed_and_popped(queen, name):
    queue = steps.unique(name)
    await steps.push(queen, queue, 1)
    message = await steps.pop_one(queen, queue)
    assert (await queen.ack(message))["success"]


@pytest.mark.parametrize("name", NAMES)
async def any_name_of_a_partition_can_be_pushed_and_popped(queen, queue, name):
    await steps.push(queen, queue, 1, partition=name)
    message = await steps.pop_one(queen, queue, partition=name)
    assert message["partition"] == name
    assert (await queen.ack(message))["success"]


@pytest.mark.parametrize("name", NAMES)
async def any_name_of_a_group_can_be_popped(queen, queue, name):
    group = steps.unique(name)
    await steps.push(queen, queue, 1)
    message = await steps.pop_one(queen, queue, group=group)
    assert message["consumerGroup"] == group
    assert (await queen.ack(message, True, {"group": group}))["success"]
    assert await steps.pop_now(queen, queue, group=group) == []
