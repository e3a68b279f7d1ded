"""The dead letters: listed, filtered, paged, replayed, deleted."""

from datetime import datetime, timedelta, timezone

import pytest

import steps


async def _move_to_dead_letters(queen, queue, *payloads, partition=None, group=None):
    await steps.push(queen, queue, *payloads, partition=partition)
    for payload in payloads:
        message = await steps.pop_one(queen, queue, partition=partition, group=group)
        context = {"error": f"error of {payload}"}
        if group:
            context["group"] = group
        assert (await queen.ack(message, "dlq", context))["dlq"] is True


async def a_dead_letter_has_its_error_and_attempts(queen, queue):
    await _move_to_dead_letters(queen, queue, "bad")
    found = await steps.dead(queen, queue)
    (letter,) = found["messages"]
    assert found["total"] == 1
    assert found["pagination"] == {"limit": 100, "offset": 0}
    assert letter["queue"] == queue
    assert letter["partition"] == "Default"
    assert letter["partitionId"]
    assert letter["transactionId"] == "t-bad"
    assert letter["consumerGroup"] == "__QUEUE_MODE__"
    assert letter["data"] == "bad"
    assert letter["errorMessage"] == "error of bad"
    assert letter["retryCount"] == 0
    assert letter["createdAt"] and letter["failedAt"]


async def a_queue_without_dead_letters_has_none(queen, queue):
    found = await queen.queue(queue).dlq().get()
    assert (found["messages"], found["total"]) == ([], 0)


async def dead_letters_are_paged_newest_first(queen, queue):
    await _move_to_dead_letters(queen, queue, *range(5))
    await steps.dead(queen, queue, 5)
    pages = []
    for offset in (0, 2, 4):
        page = await queen.queue(queue).dlq().limit(2).offset(offset).get()
        assert page["pagination"] == {"limit": 2, "offset": offset}
        pages.append(steps.data(page["messages"]))
    assert pages == [[4, 3], [2, 1], [0]]


# 1.3.0 counts the page.
@pytest.mark.wakeline_only
async def the_total_of_dead_letters_counts_all_pages(queen, queue):
    await _move_to_dead_letters(queen, queue, *range(3))
    for offset in (0, 2, 10):
        page = await queen.queue(queue).dlq().limit(2).offset(offset).get()
        assert page["total"] == 3


async def dead_letters_are_those_of_the_group(queen, queue, group):
    another = steps.unique("group")
    await _move_to_dead_letters(queen, queue, "one", group=group)
    found = await steps.dead(queen, queue, 1, group)
    assert [letter["consumerGroup"] for letter in found["messages"]] == [group]
    assert (await queen.queue(queue).dlq(another).get())["messages"] == []


# 1.3.0 ignores both ends.
@pytest.mark.wakeline_only
async def dead_letters_can_be_filtered_by_time(queen, queue):
    await _move_to_dead_letters(queen, queue, "bad")
    await steps.dead(queen, queue)
    now = datetime.now(timezone.utc)
    hour = timedelta(hours=1)
    inside = await queen.queue(queue).dlq().from_(_iso(now - hour)).to(_iso(now + hour)).get()
    assert len(inside["messages"]) == 1
    later = await queen.queue(queue).dlq().from_(_iso(now + hour)).get()
    assert later["messages"] == []
    earlier = await queen.queue(queue).dlq().to(_iso(now - hour)).get()
    assert earlier["messages"] == []


def _iso(moment):
    return moment.isoformat().replace("+00:00", "Z")


# The client names the partition `Default` whenever the caller names none.
async def dead_letters_of_all_partitions_are_listed(queen, queue):
    await _move_to_dead_letters(queen, queue, "a", partition="pa")
    await _move_to_dead_letters(queen, queue, "b", partition="pb")
    found = await steps.dead(queen, queue, 2)
    assert sorted((letter["partition"], letter["data"]) for letter in found["messages"]) == [
        ("pa", "a"),
        ("pb", "b"),
    ]


async def a_dead_letter_can_be_replayed(queen, queue):
    await _move_to_dead_letters(queen, queue, "bad")
    (letter,) = (await steps.dead(queen, queue))["messages"]
    answer = await queen.admin.retry_message(letter["partitionId"], letter["transactionId"])
    assert answer["success"] is True
    assert steps.data(await steps.pop_waiting(queen, queue)) == ["bad"]
    assert (await queen.queue(queue).dlq().get())["messages"] == []


async def a_dead_letter_can_be_deleted(queen, queue):
    await _move_to_dead_letters(queen, queue, "bad", "worse")
    await steps.dead(queen, queue, 2)
    (letter,) = [
        letter
        for letter in (await queen.queue(queue).dlq().get())["messages"]
        if letter["data"] == "bad"
    ]
    answer = await queen.admin.delete_message(letter["partitionId"], letter["transactionId"])
    assert answer["success"] is True
    left = await queen.queue(queue).dlq().get()
    assert steps.data(left["messages"]) == ["worse"]


async def a_message_that_is_no_dead_letter_cannot_be_replayed(queen, queue):
    await steps.push(queen, queue, 1)
    message = await steps.pop_one(queen, queue)
    with pytest.raises(Exception, match="not found"):
        await queen.admin.retry_message(message["partitionId"], message["transactionId"])


# 1.3.0 takes the option and ignores it.
@pytest.mark.wakeline_only
async def without_dead_letters_a_dead_message_is_dropped(queen, queue):
    await steps.create(queen, queue, retry_limit=0, dead_letter_queue=False)
    await steps.push(queen, queue, "bad", "good")
    message = await steps.pop_one(queen, queue)
    answer = await steps.nack(queen, message)
    assert (answer["success"], answer["dlq"]) == (True, False)
    assert steps.data(await steps.pop_waiting(queen, queue)) == ["good"]
    assert (await queen.queue(queue).dlq().get())["messages"] == []
