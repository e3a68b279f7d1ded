"""Acknowledging: what is done, what is refused, and that it stays done."""

import httpx
import pytest

import steps


async def an_acked_message_is_not_delivered_again(queen, queue):
    await steps.push(queen, queue, 1, 2)
    message = await steps.pop_one(queen, queue)
    answer = await queen.ack(message)
    assert answer["success"] is True
    assert answer["transactionId"] == message["transactionId"]
    assert (answer["dlq"], answer["leaseReleased"]) == (False, True)
    assert steps.data(await steps.pop_waiting(queen, queue, batch=10)) == [2]


async def a_batch_is_acked_by_one_call(queen, queue):
    await steps.push(queen, queue, *range(10))
    messages = await steps.pop_waiting(queen, queue, batch=10)
    answer = await queen.ack(messages)
    assert answer["success"] is True
    assert [item["index"] for item in answer["results"]] == list(range(10))
    assert all(item["success"] for item in answer["results"])
    assert await steps.pop_now(queen, queue) == []


async def an_ack_of_no_messages_sends_no_request(queen):
    assert await queen.ack([]) == {"processed": 0, "results": []}


async def an_ack_completes_the_messages_before_it(queen, queue):
    await steps.push(queen, queue, *range(4))
    messages = await steps.pop_waiting(queen, queue, batch=3)
    assert (await queen.ack(messages[2]))["success"]
    assert steps.data(await steps.pop_waiting(queen, queue, batch=10)) == [3]


async def a_partly_acked_batch_keeps_its_lease_and_continues(queen, other, queue):
    await steps.push(queen, queue, *range(3))
    messages = await steps.pop_waiting(queen, queue, batch=3)
    assert (await queen.ack(messages[0]))["success"]
    assert await steps.pop_now(other, queue) == []
    assert (await queen.ack(messages[1]))["success"]
    assert (await queen.ack(messages[2]))["success"]
    await steps.push(queen, queue, 3)
    assert steps.data(await steps.pop_waiting(other, queue, batch=10)) == [3]


async def acks_out_of_order_redeliver_nothing(queen, queue):
    await steps.push(queen, queue, *range(3))
    messages = await steps.pop_waiting(queen, queue, batch=3)
    for n in (2, 0, 1):
        await queen.ack(messages[n])
    await steps.push(queen, queue, 3)
    assert steps.data(await steps.pop_waiting(queen, queue, batch=10)) == [3]


async def a_batch_acked_in_any_order_is_completed(queen, queue):
    await steps.push(queen, queue, *range(5))
    messages = await steps.pop_waiting(queen, queue, batch=5)
    answer = await queen.ack([messages[n] for n in (3, 0, 4, 1, 2)])
    assert all(item["success"] for item in answer["results"])
    await steps.push(queen, queue, 5)
    assert steps.data(await steps.pop_waiting(queen, queue, batch=10)) == [5]


async def an_ack_with_a_foreign_lease_changes_nothing(queen, queue):
    await steps.push(queen, queue, 1)
    message = await steps.pop_one(queen, queue)
    foreign = {**message, "leaseId": "00000000-0000-7000-8000-000000000000"}
    answer = await queen.ack(foreign)
    assert answer["success"] is False
    assert "lease" in answer["error"]
    assert (await queen.ack(message))["success"]


async def an_ack_after_the_lease_was_lost_changes_nothing(queen, other, queue):
    await steps.create(queen, queue, lease_time=1)
    await steps.push(queen, queue, 1)
    late = await steps.pop_one(queen, queue)
    current = await steps.pop_one(other, queue)
    assert current["id"] == late["id"]
    answer = await queen.ack(late)
    assert answer["success"] is False
    assert "lease" in answer["error"]


async def a_batch_with_a_lost_lease_is_refused_item_by_item(queen, other, queue):
    await steps.create(queen, queue, lease_time=1)
    await steps.push(queen, queue, 1, 2)
    late = await steps.pop_waiting(queen, queue, batch=2)
    await steps.pop_waiting(other, queue, batch=2)
    answer = await queen.ack(late)
    assert [item["success"] for item in answer["results"]] == [False, False]


async def an_ack_without_a_lease_moves_the_cursor(queen, queue):
    await steps.push(queen, queue, 1, 2, 3)
    messages = await steps.pop_waiting(queen, queue, batch=2)
    bare = {key: messages[1][key] for key in ("transactionId", "partitionId")}
    assert (await queen.ack(bare))["success"]
    assert steps.data(await steps.pop_waiting(queen, queue, batch=10)) == [3]


async def an_ack_without_a_lease_never_moves_it_back(queen, queue):
    await steps.push(queen, queue, 1, 2, 3)
    messages = await steps.pop_waiting(queen, queue, batch=2)
    await queen.ack(messages)
    bare = {key: messages[0][key] for key in ("transactionId", "partitionId")}
    answer = await queen.ack(bare)
    assert (answer["success"], answer["noop"]) == (True, True)
    assert steps.data(await steps.pop_waiting(queen, queue, batch=10)) == [3]


async def a_nack_of_a_completed_message_is_refused(queen, queue):
    await steps.push(queen, queue, 1, 2, 3)
    messages = await steps.pop_waiting(queen, queue, batch=2)
    await queen.ack(messages)
    bare = {key: messages[0][key] for key in ("transactionId", "partitionId")}
    answer = await queen.ack(bare, False)
    assert answer["success"] is False
    assert steps.data(await steps.pop_waiting(queen, queue, batch=10)) == [3]


async def a_late_nack_of_a_completed_batch_is_told_that_it_is_committed(queen, queue):
    await steps.push(queen, queue, 1, 2, 3)
    messages = await steps.pop_waiting(queen, queue, batch=2)
    await queen.ack(messages)
    answer = await queen.ack(messages[0], False)
    assert answer["success"] is False
    assert "committed" in answer["error"]
    assert steps.data(await steps.pop_waiting(queen, queue, batch=10)) == [3]


# 1.3.0 says that the lease is invalid: the caller cannot know whether its work counted.
@pytest.mark.wakeline_only
async def an_ack_may_be_repeated_after_its_answer_was_lost(queen, other, queue):
    await steps.push(queen, queue, 1, 2, 3)
    messages = await steps.pop_waiting(queen, queue, batch=2)
    assert (await queen.ack(messages))["success"]
    again = await queen.ack(messages)
    assert [(item["success"], item["noop"]) for item in again["results"]] == [(True, True)] * 2
    # Also when the next consumer has the partition.
    current = await steps.pop_one(other, queue)
    again = await queen.ack(messages[1])
    assert (again["success"], again["noop"]) == (True, True)
    assert (await other.ack(current))["success"]


# The client passes the text on, and not the code.
@pytest.mark.wakeline_only
async def a_refused_ack_has_a_code(queen, url, queue):
    await steps.push(queen, queue, 1)
    message = await steps.pop_one(queen, queue)
    ack = {key: message[key] for key in ("transactionId", "partitionId", "leaseId")}
    async with httpx.AsyncClient(base_url=url) as http:

        async def code(**changes):
            (answer,) = (await http.post("/api/v1/ack", json={**ack, **changes})).json()
            return answer.get("code")

        assert await code(leaseId="00000000-0000-7000-8000-000000000000") == "lease_lost"
        assert await code(transactionId="never pushed") == "unresolvable"
        assert await code() is None
        assert await code(status="failed") == "committed"


async def a_message_nobody_pushed_cannot_be_acked(queen, queue):
    await steps.push(queen, queue, 1)
    message = await steps.pop_one(queen, queue)
    answer = await queen.ack({**message, "transactionId": "never pushed"})
    assert answer["success"] is False
    assert "unresolv" in answer["error"]
    assert (await queen.ack(message))["success"]


async def one_unknown_message_does_not_fail_its_batch(queen, queue):
    await steps.push(queen, queue, 1, 2)
    messages = await steps.pop_waiting(queen, queue, batch=2)
    answer = await queen.ack([messages[0], {**messages[0], "transactionId": "never pushed"}])
    assert [item["success"] for item in answer["results"]] == [True, False]
    assert "unresolv" in answer["results"][1]["error"]


# 1.3.0 answers "db error", which says nothing to the caller.
@pytest.mark.wakeline_only
async def an_invalid_partition_id_is_refused_with_a_reason(queen):
    answer = await queen.ack({"transactionId": "t", "partitionId": "not a uuid"})
    assert answer["success"] is False
    assert "partition" in answer["error"].lower()


# 1.3.0 takes any word for success.
@pytest.mark.wakeline_only
async def an_unknown_status_is_refused(queen, queue):
    await steps.push(queen, queue, 1)
    message = await steps.pop_one(queen, queue)
    answer = await queen.ack(message, "perhaps")
    assert answer["success"] is False
    assert "status" in answer["error"]


@pytest.mark.parametrize("status", ["completed", "success"])
async def both_statuses_for_success_are_accepted(queen, queue, status):
    await steps.push(queen, queue, 1, 2)
    message = await steps.pop_one(queen, queue)
    assert (await queen.ack(message, status))["success"]
    assert steps.data(await steps.pop_waiting(queen, queue)) == [2]
