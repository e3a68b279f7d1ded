"""Reading and steering from outside: what the admin client and the dashboard ask for."""

import asyncio
from datetime import datetime, timezone

import pytest

import steps


async def the_overview_counts_queues_and_messages(queen, queue):
    await steps.push(queen, queue, 1)
    await queen.admin.refresh_consumer_stats()
    overview = await queen.admin.get_overview()
    assert overview["queues"] >= 1
    assert overview["partitions"] >= 0
    assert {"total", "pending", "processing", "completed", "failed", "deadLetter"} <= set(overview["messages"])
    assert {"namespaces", "tasks", "timestamp", "throughput", "lag"} <= set(overview)


async def namespaces_and_tasks_are_listed(queen, queue):
    namespace, task = steps.unique("ns"), steps.unique("task")
    await queen.queue(queue).namespace(namespace).task(task).create()
    await steps.push(queen, queue, 1)

    async def listed():
        await queen.admin.refresh_consumer_stats()
        namespaces = (await queen.admin.get_namespaces())["namespaces"]
        tasks = (await queen.admin.get_tasks())["tasks"]
        mine = [n for n in namespaces if n["namespace"] == namespace]
        theirs = [t for t in tasks if t["task"] == task]
        return (mine[0], theirs[0]) if mine and theirs else None

    for entry in await steps.until("the namespace and the task", listed):
        assert entry["queues"] == 1
        assert {"partitions", "messages"} <= set(entry)
        assert {"total", "pending"} <= set(entry["messages"])


async def _listed(ask, key, name):
    """Page by page, for others make queues meanwhile."""
    offset = 0
    while True:
        page = (await ask(limit=100, offset=offset))["queues"]
        for entry in page:
            if entry[key] == name:
                return entry
        if len(page) < 100:
            return None
        offset += len(page)


async def a_queue_is_listed(queen, queue):
    await queen.queue(queue).namespace("shop").task("mail").create()
    await steps.push(queen, queue, 1, partition="a")
    await steps.push(queen, queue, 2, partition="b")
    entry = await _listed(queen.admin.list_queues, "name", queue)
    assert (entry["namespace"], entry["task"]) == ("shop", "mail")
    assert entry["id"] and entry["createdAt"]
    assert entry["partitions"] == 2
    assert {"pending", "processing", "total"} <= set(entry["messages"])


async def a_queue_is_described(queen, queue):
    await steps.push(queen, queue, 1, partition="a")
    found = await queen.admin.get_queue(queue)
    assert found["name"] == queue
    assert [partition["name"] for partition in found["partitions"]] == ["a"]
    assert {"total", "pending", "processing", "completed", "deadLetter"} <= set(found["totals"])


async def an_unknown_queue_is_not_found(queen, queue):
    with pytest.raises(Exception, match="not found"):
        await queen.admin.get_queue(queue)


async def the_status_of_a_queue_has_its_configuration(queen, queue):
    await queen.queue(queue).config({"lease_time": 17, "retry_limit": 4, "priority": 3}).create()
    await steps.push(queen, queue, 1)
    detail = await queen.admin.get_queue_detail(queue)
    assert detail["queue"]["name"] == queue
    assert detail["queue"]["priority"] == 3
    assert detail["queue"]["config"]["leaseTime"] == 17
    assert detail["queue"]["config"]["retryLimit"] == 4
    assert {"total", "pending", "processing", "completed"} <= set(detail["totals"]["messages"])
    assert len(detail["partitions"]) == 1


async def the_counts_of_a_queue_are_current(queen, queue):
    await steps.push(queen, queue, 1, 2, 3)
    (message,) = await steps.pop_waiting(queen, queue)
    await queen.ack(message)
    await steps.pop_waiting(queen, queue)
    totals = (await queen.admin.get_queue_detail(queue))["totals"]["messages"]
    assert totals["total"] == 3
    assert totals["completed"] == 1
    assert totals["processing"] == 1


async def the_statistics_of_queues_are_listed(queen, queue):
    await steps.push(queen, queue, 1)
    entry = await _listed(queen.admin.get_queue_stats, "name", queue)
    assert {"total", "pending", "completed", "deadLetter", "processing"} <= set(entry["messages"])
    assert {"id", "namespace", "task", "partitions", "createdAt"} <= set(entry)


async def messages_are_listed_with_their_state(queen, queue):
    await steps.push(queen, queue, "done", "in hand")
    await queen.ack(await steps.pop_one(queen, queue))
    await steps.pop_waiting(queen, queue)
    await steps.push(queen, queue, "pending", partition="another")
    listed = (await queen.admin.list_messages(queue=queue))["messages"]
    by_data = {message["data"]: message for message in listed}
    assert set(by_data) == {"done", "in hand", "pending"}
    assert by_data["done"]["status"] == "completed"
    assert by_data["in hand"]["status"] == "processing"
    assert by_data["pending"]["status"] == "pending"
    message = by_data["in hand"]
    assert message["queue"] == queue
    assert message["partition"] == "Default"
    assert message["queuePath"] == f"{queue}/Default"
    assert message["transactionId"] == "t-in hand"
    assert {"id", "partitionId", "createdAt", "leaseExpiresAt", "namespace", "task"} <= set(message)


async def listed_messages_can_be_filtered(queen, queue):
    await steps.push(queen, queue, "a", partition="pa")
    await steps.push(queen, queue, "b1", "b2", partition="pb")
    await queen.ack(await steps.pop_one(queen, queue, partition="pb"))
    listed = await queen.admin.list_messages(queue=queue, partition="pa")
    assert [message["data"] for message in listed["messages"]] == ["a"]
    listed = await queen.admin.list_messages(queue=queue, status="completed")
    assert [message["data"] for message in listed["messages"]] == ["b1"]
    listed = await queen.admin.list_messages(queue=queue, status="pending")
    assert sorted(message["data"] for message in listed["messages"]) == ["a", "b2"]


async def listed_messages_are_paged(queen, queue):
    await steps.push(queen, queue, *range(5))
    seen = []
    for offset in (0, 2, 4):
        page = await queen.admin.list_messages(queue=queue, limit=2, offset=offset)
        seen.append([message["data"] for message in page["messages"]])
    assert [len(page) for page in seen] == [2, 2, 1]
    assert sorted(sum(seen, [])) == list(range(5))


# 1.3.0 counts the page.
@pytest.mark.wakeline_only
async def the_total_of_listed_messages_counts_all_pages(queen, queue):
    await steps.push(queen, queue, *range(5))
    for offset in (0, 4, 10):
        page = await queen.admin.list_messages(queue=queue, limit=2, offset=offset)
        assert page["total"] == 5


async def a_message_is_described(queen, queue):
    await queen.queue(queue).config({"lease_time": 60}).create()
    await steps.push(queen, queue, {"n": 1})
    message = await steps.pop_one(queen, queue)
    found = await queen.admin.get_message(message["partitionId"], message["transactionId"])
    assert found["id"] == message["id"]
    assert found["data"] == found["payload"] == {"n": 1}
    assert found["status"] == "processing"
    assert found["queue"] == queue
    assert found["retryCount"] == 0
    assert found["queueConfig"]["leaseTime"] == 60
    (state,) = found["consumerGroups"]
    assert (state["name"], state["consumed"]) == ("__QUEUE_MODE__", False)
    await queen.ack(message)
    found = await queen.admin.get_message(message["partitionId"], message["transactionId"])
    assert found["status"] == "completed"
    assert found["consumerGroups"][0]["consumed"] is True


async def an_unknown_message_is_not_found(queen, queue):
    await steps.push(queen, queue, 1)
    message = await steps.pop_one(queen, queue)
    with pytest.raises(Exception, match="not found"):
        await queen.admin.get_message(message["partitionId"], "never pushed")


# 1.3.0 deletes dead letters only.
@pytest.mark.wakeline_only
async def a_pending_message_can_be_deleted_for_all(queen, queue, group):
    await steps.push(queen, queue, 1, 2, 3)
    await steps.pop_waiting(queen, queue, group=group)
    listed = (await queen.admin.list_messages(queue=queue))["messages"]
    (second,) = [message for message in listed if message["data"] == 2]
    answer = await queen.admin.delete_message(second["partitionId"], second["transactionId"])
    assert answer["success"] is True
    assert steps.data(await steps.drain(queen, queue, 2)) == [1, 3]
    another = steps.unique("group")
    assert steps.data(await steps.drain(queen, queue, 2, group=another)) == [1, 3]
    with pytest.raises(Exception, match="not found"):
        await queen.admin.get_message(second["partitionId"], second["transactionId"])


async def groups_are_listed_with_their_lag(queen, queue, group):
    await steps.push(queen, queue, 1, 2, 3)
    message = await steps.pop_one(queen, queue, group=group)
    await queen.ack(message, True, {"group": group})
    groups = await queen.admin.list_consumer_groups()
    (entry,) = [g for g in groups if g["name"] == group]
    assert entry["topics"] == [queue]
    assert entry["queueName"] == queue
    assert entry["totalLag"] == 2
    assert entry["partitionsWithLag"] == 1
    assert entry["subscriptionMode"] == "all"
    assert {"state", "members", "maxTimeLag"} <= set(entry)


async def a_group_is_described_partition_by_partition(queen, queue, group):
    await steps.push(queen, queue, 1, 2)
    message = await steps.pop_one(queen, queue, group=group)
    detail = await queen.admin.get_consumer_group(group)
    (partition,) = detail[queue]["partitions"]
    assert partition["partition"] == "Default"
    assert partition["leaseActive"] is True
    assert partition["offsetLag"] == 2
    await queen.ack(message, True, {"group": group})
    detail = await queen.admin.get_consumer_group(group)
    (partition,) = detail[queue]["partitions"]
    assert partition["leaseActive"] is False
    assert partition["offsetLag"] == 1
    assert partition["totalConsumed"] == 1


async def an_unknown_group_is_empty(queen, group):
    assert await queen.admin.get_consumer_group(group) == {}


async def a_lagging_group_is_found(queen, queue, group):
    await steps.push(queen, queue, 1, 2)
    message = await steps.pop_one(queen, queue, group=group)

    async def mine():
        lagging = await queen.admin.get_lagging_consumers(min_lag_seconds=0)
        return [entry for entry in lagging if entry["consumer_group"] == group]

    (entry,) = await steps.until("the group among the lagging", mine)
    assert entry["queue_name"] == queue
    assert entry["partition_name"] == "Default"
    assert entry["offset_lag"] == 2
    assert entry["time_lag_seconds"] >= 0
    assert entry["oldest_unconsumed_at"]
    assert entry["partition_id"] == message["partitionId"]
    far = await queen.admin.get_lagging_consumers(min_lag_seconds=86_400)
    assert [e for e in far if e["consumer_group"] == group] == []


async def a_group_can_be_moved_to_the_end(queen, queue, group):
    await steps.push(queen, queue, 1, 2)
    await steps.pop_waiting(queen, queue, group=group)
    answer = await queen.admin.seek_consumer_group(group, queue, {"toEnd": True})
    assert answer["success"] is True
    assert answer["seekToEnd"] is True
    assert answer["partitionsUpdated"] == 1
    assert (answer["consumerGroup"], answer["queueName"]) == (group, queue)
    await steps.push(queen, queue, 3)
    assert steps.data(await steps.pop_waiting(queen, queue, group=group, batch=10)) == [3]


async def a_group_can_be_moved_back_to_replay(queen, queue, group):
    await steps.push(queen, queue, 1, 2)
    await steps.drain(queen, queue, 2, group=group)
    answer = await queen.admin.seek_consumer_group(group, queue, {"timestamp": "2020-01-01T00:00:00Z"})
    assert answer["success"] is True
    assert answer["seekToEnd"] is False
    assert answer["targetTimestamp"].startswith("2020-01-01T00:00:00")
    assert steps.data(await steps.pop_waiting(queen, queue, group=group, batch=10)) == [1, 2]


async def a_group_can_be_moved_to_a_time(queen, queue, group):
    await steps.push(queen, queue, "before")
    await asyncio.sleep(0.2)
    moment = datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")
    await asyncio.sleep(0.2)
    await steps.push(queen, queue, "after")
    await steps.drain(queen, queue, 2, group=group)
    await queen.admin.seek_consumer_group(group, queue, {"timestamp": moment})
    assert steps.data(await steps.pop_waiting(queen, queue, group=group, batch=10)) == ["after"]


async def a_move_of_a_group_wakes_a_waiting_pop(queen, other, queue, group):
    await steps.push(queen, queue, 1)
    await steps.drain(queen, queue, 1, group=group)
    waiting = asyncio.create_task(steps.pop_waiting(other, queue, group=group))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    await queen.admin.seek_consumer_group(group, queue, {"timestamp": "2020-01-01T00:00:00Z"})
    assert steps.data(await steps.within(waiting)) == [1]


async def a_move_without_a_target_is_refused(queen, queue, group):
    await steps.push(queen, queue, 1)
    await steps.pop_waiting(queen, queue, group=group)
    with pytest.raises(Exception, match="toEnd"):
        await queen.admin.seek_consumer_group(group, queue, {"toEnd": False})
