"""Failures: redeliveries, retries and dead letters."""

import time

import pytest

import steps


async def a_failed_message_is_redelivered(queen, queue):
    await steps.create(queen, queue)
    await steps.push(queen, queue, 1, 2)
    message = await steps.pop_one(queen, queue)
    answer = await steps.nack(queen, message)
    assert (answer["success"], answer["dlq"], answer["leaseReleased"]) == (True, False, True)
    again = await steps.pop_one(queen, queue)
    assert again["id"] == message["id"]
    assert again["leaseId"] != message["leaseId"]


@pytest.mark.parametrize("limit", [0, 1, 2])
async def a_message_becomes_a_dead_letter_at_the_failure_after_its_last_retry(queen, queue, limit):
    await steps.create(queen, queue, retry_limit=limit)
    await steps.push(queen, queue, "bad", "good")
    for attempt in range(limit + 1):
        message = await steps.pop_one(queen, queue)
        assert message["data"] == "bad"
        answer = await steps.nack(queen, message, f"boom {attempt}")
        assert answer["dlq"] is (attempt == limit)
    assert steps.data(await steps.pop_waiting(queen, queue, batch=10)) == ["good"]
    (letter,) = (await steps.dead(queen, queue))["messages"]
    assert letter["data"] == "bad"
    assert letter["errorMessage"] == f"boom {limit}"


async def each_message_counts_its_own_retries(queen, queue):
    await steps.create(queen, queue, retry_limit=1)
    await steps.push(queen, queue, "a", "b")
    dead = []
    for expected in ("a", "a", "b", "b"):
        message = await steps.pop_one(queen, queue)
        assert message["data"] == expected
        dead.append((await steps.nack(queen, message))["dlq"])
    assert dead == [False, True, False, True]


async def an_ack_as_retry_is_not_counted_as_a_failure(queen, queue):
    await steps.create(queen, queue, retry_limit=0)
    await steps.push(queen, queue, 1)
    for _ in range(4):
        message = await steps.pop_one(queen, queue)
        answer = await queen.ack(message, "retry")
        assert (answer["success"], answer["dlq"]) == (True, False)
    assert steps.data(await steps.pop_waiting(queen, queue)) == [1]
    assert (await queen.queue(queue).dlq().get())["messages"] == []


async def a_message_can_be_moved_to_the_dead_letters_at_once(queen, queue):
    await steps.create(queen, queue, retry_limit=5)
    await steps.push(queen, queue, "bad", "good")
    message = await steps.pop_one(queen, queue)
    answer = await queen.ack(message, "dlq", {"error": "hopeless"})
    assert (answer["success"], answer["dlq"]) == (True, True)
    assert steps.data(await steps.pop_waiting(queen, queue)) == ["good"]
    (letter,) = (await steps.dead(queen, queue))["messages"]
    assert (letter["data"], letter["errorMessage"]) == ("bad", "hopeless")


async def a_mixed_batch_redelivers_the_failed_message_and_those_after_it(queen, queue):
    await steps.create(queen, queue)
    await steps.push(queen, queue, 0, 1, 2)
    messages = await steps.pop_waiting(queen, queue, batch=3)
    for message, status in zip(messages, (True, False, True)):
        message["_status"] = status
    answer = await queen.ack(messages)
    assert answer["results"][0]["success"] is True
    assert answer["results"][1]["success"] is True
    assert steps.data(await steps.pop_waiting(queen, queue, batch=10)) == [1, 2]
    assert (await queen.queue(queue).dlq().get())["messages"] == []


async def the_order_in_a_mixed_batch_does_not_matter(queen, queue):
    await steps.create(queen, queue)
    await steps.push(queen, queue, 0, 1, 2)
    messages = await steps.pop_waiting(queen, queue, batch=3)
    for message, status in zip(messages, (True, False, True)):
        message["_status"] = status
    await queen.ack([messages[2], messages[1], messages[0]])
    assert steps.data(await steps.pop_waiting(queen, queue, batch=10)) == [1, 2]


async def a_mixed_batch_continues_after_its_dead_letter(queen, queue):
    await steps.create(queen, queue)
    await steps.push(queen, queue, 0, 1, 2)
    messages = await steps.pop_waiting(queen, queue, batch=3)
    for message, status in zip(messages, (True, "dlq", True)):
        message["_status"] = status
    answer = await queen.ack(messages)
    assert answer["results"][1]["dlq"] is True
    await steps.push(queen, queue, 3)
    rest = steps.data(await steps.pop_waiting(queen, queue, batch=10))
    assert rest in ([3], [2, 3])
    (letter,) = (await steps.dead(queen, queue))["messages"]
    assert letter["data"] == 1


# 1.3.0 counts the first failed of a batch only.
@pytest.mark.wakeline_only
async def each_failed_message_of_a_batch_is_counted(queen, queue):
    await steps.create(queen, queue, retry_limit=1)
    await steps.push(queen, queue, 0, 1)
    for last in (False, True):
        messages = await steps.pop_waiting(queen, queue, batch=2)
        assert steps.data(messages) == [0, 1]
        answer = await queen.ack(messages, False)
        assert [item["dlq"] for item in answer["results"]] == [last, last]
    assert len((await steps.dead(queen, queue, 2))["messages"]) == 2
    await steps.push(queen, queue, 2)
    assert steps.data(await steps.pop_waiting(queen, queue, batch=10)) == [2]


async def a_nack_ends_the_lease_of_the_whole_batch(queen, other, queue):
    await steps.create(queen, queue)
    await steps.push(queen, queue, 0, 1, 2)
    messages = await steps.pop_waiting(queen, queue, batch=3)
    await steps.nack(queen, messages[1])
    assert 1 in steps.data(await steps.pop_waiting(other, queue, batch=10))
    assert (await queen.ack(messages[2]))["success"] is False


# 1.3.0 only says that the lease is gone.
@pytest.mark.wakeline_only
@pytest.mark.parametrize("status", [False, "retry", "dlq"])
async def acks_of_a_released_batch_answer_that_it_is_redelivered(queen, queue, status):
    await steps.create(queen, queue)
    await steps.push(queen, queue, 0, 1, 2)
    messages = await steps.pop_waiting(queen, queue, batch=3)
    assert (await queen.ack(messages[0]))["success"]
    assert (await queen.ack(messages[1], status))["success"]
    late = await queen.ack(messages[2])
    assert late["success"] is False
    assert "released the whole batch; this message is redelivered" in late["error"]
    assert steps.data(await steps.pop_waiting(queen, queue, batch=10))[-1] == 2


# 1.3.0 lets anybody fail what is in another's hands.
@pytest.mark.wakeline_only
async def a_nack_without_a_lease_is_refused_while_another_consumer_has_the_lease(queen, queue):
    await steps.create(queen, queue)
    await steps.push(queen, queue, 1)
    message = await steps.pop_one(queen, queue)
    bare = {key: message[key] for key in ("transactionId", "partitionId")}
    assert (await queen.ack(bare, False))["success"] is False
    assert (await queen.ack(message))["success"] is True


# 1.3.0 takes the option and ignores it.
@pytest.mark.wakeline_only
async def a_failed_message_is_redelivered_after_the_delay(queen, queue):
    await steps.create(queen, queue, retry_delay=1500)
    await steps.push(queen, queue, 1)
    message = await steps.pop_one(queen, queue)
    failed = time.monotonic()
    await steps.nack(queen, message)
    again = await steps.pop_one(queen, queue)
    assert again["id"] == message["id"]
    assert time.monotonic() - failed >= 1.5


async def an_expired_lease_redelivers_its_message_and_counts_no_failure(queen, queue):
    await steps.create(queen, queue, lease_time=1, retry_limit=0)
    await steps.push(queen, queue, 1)
    first = await steps.pop_one(queen, queue)
    second = await steps.pop_one(queen, queue)
    third = await steps.pop_one(queen, queue)
    assert first["id"] == second["id"] == third["id"]
    assert (await queen.queue(queue).dlq().get())["messages"] == []


async def a_failure_in_one_group_is_not_counted_in_another(queen, queue, group):
    await steps.create(queen, queue, retry_limit=0)
    await steps.push(queen, queue, 1)
    message = await steps.pop_one(queen, queue, group=group)
    assert (await steps.nack(queen, message, group=group))["dlq"] is True
    another = steps.unique("group")
    assert steps.data(await steps.pop_waiting(queen, queue, group=another)) == [1]


# Queen has had it since 1.4.
@pytest.mark.wakeline_only
async def a_message_tells_which_delivery_it_is(queen, queue):
    await steps.create(queen, queue, lease_time=1)
    await steps.push(queen, queue, "a", "b")
    first = await steps.pop_waiting(queen, queue, batch=2)
    assert [message["deliveryAttempt"] for message in first] == [1, 1]
    await steps.nack(queen, first[0])
    second = await steps.pop_one(queen, queue)
    assert (second["data"], second["deliveryAttempt"]) == ("a", 2)
    # Its lease ends without an acknowledgement.
    third = await steps.pop_one(queen, queue)
    assert (third["data"], third["deliveryAttempt"]) == ("a", 3)
    assert (await queen.ack(third))["success"]
    last = await steps.pop_one(queen, queue)
    assert (last["data"], last["deliveryAttempt"]) == ("b", 2)
