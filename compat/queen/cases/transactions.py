"""Acks and pushes that happen together or not at all."""

import asyncio

import pytest

import steps


async def an_ack_and_a_push_happen_together(queen, queue):
    source, sink = queue, f"{queue}-out"
    await steps.push(queen, source, 1, 2)
    message = await steps.pop_one(queen, source)
    result = await queen.transaction().ack(message).queue(sink).push({"data": "made of 1"}).commit()
    assert result["success"] is True
    assert [item["type"] for item in result["results"]] == ["ack", "push"]
    assert all(item["success"] for item in result["results"])
    assert steps.data(await steps.pop_waiting(queen, sink)) == ["made of 1"]
    assert steps.data(await steps.pop_waiting(queen, source)) == [2]


async def a_push_alone_is_a_transaction_too(queen, queue):
    result = await queen.transaction().queue(queue).push([{"data": 1}, {"data": 2}]).commit()
    assert len(result["results"]) == 2
    assert {item["queueName"] for item in result["results"]} == {queue}
    assert steps.data(await steps.drain(queen, queue, 2)) == [1, 2]


async def pushes_to_several_queues_and_partitions_happen_together(queen, queue):
    transaction = queen.transaction()
    for n in range(3):
        transaction.queue(f"{queue}-{n}").partition(f"p{n}").push({"data": n})
    await transaction.commit()
    for n in range(3):
        message = await steps.pop_one(queen, f"{queue}-{n}")
        assert (message["data"], message["partition"]) == (n, f"p{n}")


async def several_acks_happen_together(queen, queue):
    one, two = f"{queue}-1", f"{queue}-2"
    await steps.push(queen, one, 1)
    await steps.push(queen, two, 2)
    messages = [await steps.pop_one(queen, one), await steps.pop_one(queen, two)]
    await queen.transaction().ack(messages).commit()
    for name in (one, two):
        await steps.push(queen, name, "next")
        assert steps.data(await steps.pop_waiting(queen, name, batch=10)) == ["next"]


async def a_batch_is_acked_in_a_transaction(queen, queue):
    await steps.push(queen, queue, *range(4))
    messages = await steps.pop_waiting(queen, queue, batch=3)
    await queen.transaction().ack(messages).commit()
    assert steps.data(await steps.pop_waiting(queen, queue, batch=10)) == [3]


async def a_transaction_acks_for_a_group(queen, queue, group):
    await steps.push(queen, queue, 1, 2)
    message = await steps.pop_one(queen, queue, group=group)
    await queen.transaction().ack(message, "completed", {"consumer_group": group}).commit()
    assert steps.data(await steps.pop_waiting(queen, queue, group=group)) == [2]
    assert steps.data(await steps.pop_waiting(queen, queue, batch=10)) == [1, 2]


async def nothing_is_pushed_when_an_ack_is_refused(queen, queue):
    sink = f"{queue}-out"
    await steps.push(queen, queue, 1)
    message = await steps.pop_one(queen, queue)
    transaction = queen.transaction().queue(sink).push({"data": "never"})
    transaction.ack({**message, "transactionId": "never pushed"})
    with pytest.raises(Exception):
        await transaction.commit()
    await steps.push(queen, sink, "first")
    assert steps.data(await steps.pop_waiting(queen, sink, batch=10)) == ["first"]
    assert (await queen.ack(message))["success"]


async def nothing_is_acked_when_another_ack_is_refused(queen, queue):
    one, two = f"{queue}-1", f"{queue}-2"
    await steps.push(queen, one, 1)
    await steps.push(queen, two, 2)
    good = await steps.pop_one(queen, one)
    bad = await steps.pop_one(queen, two)
    transaction = queen.transaction().ack(good).ack({**bad, "transactionId": "never pushed"})
    with pytest.raises(Exception):
        await transaction.commit()
    assert (await queen.ack(good))["success"]


@pytest.mark.client("2.")
async def a_transaction_after_the_lease_was_lost_is_refused_whole(queen, other, queue):
    await _refused_after_the_lease_was_lost(queen, other, queue)


# This release names its leases beside the operations, where 1.3.0 does not look.
@pytest.mark.wakeline_only
@pytest.mark.client("0.15")
async def a_transaction_that_requires_a_lost_lease_is_refused_whole(queen, other, queue):
    await _refused_after_the_lease_was_lost(queen, other, queue)


async def _refused_after_the_lease_was_lost(queen, other, queue):
    sink = f"{queue}-out"
    await steps.create(queen, queue, lease_time=1)
    await steps.push(queen, queue, 1)
    late = await steps.pop_one(queen, queue)
    await steps.pop_one(other, queue)
    with pytest.raises(Exception, match="lease"):
        await queen.transaction().ack(late).queue(sink).push({"data": "never"}).commit()
    await steps.push(queen, sink, "first")
    assert steps.data(await steps.pop_waiting(queen, sink, batch=10)) == ["first"]


async def a_failure_can_be_part_of_a_transaction(queen, queue):
    await steps.create(queen, queue, retry_limit=0)
    await steps.push(queen, queue, "bad", "good")
    message = await steps.pop_one(queen, queue)
    result = await queen.transaction().ack(message, "failed").commit()
    assert result["results"][0]["dlq"] is True
    (letter,) = (await steps.dead(queen, queue))["messages"]
    assert letter["data"] == "bad"
    assert steps.data(await steps.pop_waiting(queen, queue)) == ["good"]


async def a_transaction_without_operations_is_refused(queen):
    with pytest.raises(Exception, match="no operations"):
        await queen.transaction().commit()


# 1.3.0 undoes the whole transaction.
@pytest.mark.wakeline_only
@pytest.mark.client("2.")
async def a_duplicate_in_a_transaction_is_reported_and_the_rest_is_done(queen, queue):
    await steps.push(queen, queue, "first")
    items = [{"data": "again", "transactionId": "t-first"}, {"data": "new", "transactionId": "t-new"}]
    result = await queen.transaction().queue(queue).push(items).commit()
    assert result["success"] is True
    assert [item.get("duplicate", False) for item in result["results"]] == [True, False]
    assert steps.data(await steps.drain(queen, queue, 2)) == ["first", "new"]


# 1.3.0 has the gate.
@pytest.mark.wakeline_only
@pytest.mark.client("2.")
async def a_transaction_with_a_gate_is_refused_whole(queen, queue):
    def gated(transaction):
        return transaction.kv.put_if_absent("gates", queue, True, forever=True, required=True)

    await _refused_for_an_unsupported_operation(queen, queue, gated, "kv")


# 1.3.0 has timers.
@pytest.mark.wakeline_only
@pytest.mark.client("2.")
async def a_transaction_with_a_timer_is_refused_whole(queen, queue):
    def timed(transaction):
        return transaction.timer(queue).key("later").payload({"data": "never"}).after_ms(1).schedule()

    await _refused_for_an_unsupported_operation(queen, queue, timed, "timers")


async def _refused_for_an_unsupported_operation(queen, queue, adding, field):
    sink = f"{queue}-out"
    await steps.push(queen, queue, 1)
    message = await steps.pop_one(queen, queue)
    transaction = queen.transaction().ack(message).queue(sink).push({"data": "never"})
    with pytest.raises(Exception, match=f"{field}: .*nothing was done"):
        await adding(transaction).commit()
    with pytest.raises(Exception, match=f"{field}: .*nothing was done"):
        await adding(queen.transaction()).commit()
    await steps.push(queen, sink, "first")
    assert steps.data(await steps.pop_waiting(queen, sink, batch=10)) == ["first"]
    assert (await queen.ack(message))["success"]


async def a_transaction_wakes_a_waiting_pop(queen, other, queue):
    waiting = asyncio.create_task(steps.pop_waiting(queen, queue))
    await asyncio.sleep(0.2)
    await other.transaction().queue(queue).push({"data": 1}).commit()
    assert steps.data(await steps.within(waiting)) == [1]


async def a_pipeline_of_transactions_passes_every_message_on_once(queen, queue):
    sink = f"{queue}-out"
    for n in range(5):
        await steps.push(queen, queue, *(n * 10 + m for m in range(4)), partition=f"p{n}")
    passed, stop = [], asyncio.Event()

    async def handler(message):
        transaction = queen.transaction().ack(message)
        await transaction.queue(sink).partition(message["partition"]).push({"data": message["data"]}).commit()
        passed.append(message["data"])
        if len(passed) == 20:
            stop.set()

    builder = queen.queue(queue).batch(1).concurrency(3).auto_ack(False).timeout_millis(300)
    await steps.within(builder.consume(handler, signal=stop))
    arrived = steps.data(await steps.drain(queen, sink, 20))
    assert sorted(arrived) == sorted(n * 10 + m for n in range(5) for m in range(4))
    assert await steps.pop_now(queen, sink) == []
