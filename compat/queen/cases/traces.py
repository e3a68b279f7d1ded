"""Traces: left by handlers, found by name and by message."""

import steps


async def _trace(queen, queue, *configs, group=None):
    """Handles one message, leaves these traces on it, and returns it."""
    await steps.push(queen, queue, 1)
    handled = []

    async def handler(message):
        for config in configs:
            answer = await message["trace"](config)
            assert answer["success"] is True
            assert answer["traceId"]
        handled.append(message)

    builder = queen.queue(queue).batch(1).limit(1)
    if group:
        builder = builder.group(group).subscription_mode("all")
    await steps.within(builder.consume(handler))
    return handled[0]


async def a_trace_is_found_by_its_message(queen, queue, group):
    message = await _trace(queen, queue, {"data": {"text": "hi"}, "eventType": "step"}, group=group)
    found = await queen.admin.get_traces_for_message(message["partitionId"], message["transactionId"])
    (trace,) = found["traces"]
    assert trace["data"] == {"text": "hi"}
    assert trace["event_type"] == "step"
    assert trace["consumer_group"] == group
    assert trace["created_at"]


async def a_trace_is_found_by_its_name(queen, queue):
    name = steps.unique("trace")
    message = await _trace(queen, queue, {"traceName": name, "data": {"n": 1}})
    found = await queen.admin.get_traces_by_name(name)
    (trace,) = found["traces"]
    assert found["total"] == 1
    assert trace["data"] == {"n": 1}
    assert trace["trace_names"] == [name]
    assert trace["event_type"] == "info"
    assert trace["queue_name"] == queue
    assert trace["partition_name"] == "Default"
    assert trace["partition_id"] == message["partitionId"]
    assert trace["transaction_id"] == message["transactionId"]
    assert trace["consumer_group"] == "__QUEUE_MODE__"


async def a_trace_may_have_several_names(queen, queue):
    names = [steps.unique("trace"), steps.unique("trace")]
    await _trace(queen, queue, {"traceName": names, "data": {}})
    for name in names:
        found = await queen.admin.get_traces_by_name(name)
        assert sorted(found["traces"][0]["trace_names"]) == sorted(names)


async def one_name_may_have_traces_of_several_queues(queen, queue):
    name = steps.unique("trace")
    for n in range(3):
        await _trace(queen, f"{queue}-{n}", {"traceName": name, "data": {"n": n}})
    found = await queen.admin.get_traces_by_name(name)
    assert found["total"] == 3
    assert {trace["queue_name"] for trace in found["traces"]} == {f"{queue}-{n}" for n in range(3)}


async def traces_of_a_name_are_paged(queen, queue):
    name = steps.unique("trace")
    await _trace(queen, queue, *({"traceName": name, "data": {"n": n}} for n in range(3)))
    pages = [await queen.admin.get_traces_by_name(name, limit=2, offset=offset) for offset in (0, 2)]
    assert [len(page["traces"]) for page in pages] == [2, 1]
    assert [page["total"] for page in pages] == [3, 3]
    assert pages[0]["pagination"] == {"limit": 2, "offset": 0}
    assert sorted(t["data"]["n"] for page in pages for t in page["traces"]) == [0, 1, 2]


async def the_names_of_traces_are_listed(queen, queue):
    name = steps.unique("trace")
    await _trace(queen, queue, {"traceName": name, "data": {"n": 1}}, {"traceName": name, "data": {"n": 2}})

    async def listed():
        found = await queen.admin.get_trace_names(limit=1000)
        return [entry for entry in found["trace_names"] if entry["trace_name"] == name]

    (entry,) = await steps.until("the name of the trace", listed)
    assert entry["trace_count"] == 2
    assert entry["message_count"] == 1
    assert entry["last_seen"]


async def a_message_without_traces_has_none(queen, queue):
    await steps.push(queen, queue, 1)
    message = await steps.pop_one(queen, queue)
    found = await queen.admin.get_traces_for_message(message["partitionId"], message["transactionId"])
    assert found["traces"] == []


async def an_unknown_trace_name_has_no_traces(queen):
    found = await queen.admin.get_traces_by_name(steps.unique("trace"))
    assert (found["traces"], found["total"]) == ([], 0)
