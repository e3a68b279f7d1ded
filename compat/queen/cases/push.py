"""Pushing: what is answered, what arrives, what counts as the same message."""

import uuid

import pytest

import steps

PAYLOADS = {
    "object": {"n": 1, "deep": {"list": [1, [2, {"three": 3}]]}},
    "empty object": {},
    "array": [1, "two", None, True],
    "empty array": [],
    "text": "plain",
    "empty text": "",
    "unicode": "žluťoučký kůň 🐎 \u2028 \" \\ / \t",
    "number": 42,
    "negative": -1.5e-7,
    "big number": 12345678901234567890,
    "true": True,
    "false": False,
    "null": None,
    "object with odd keys": {"": 1, "a.b": 2, "ключ": 3},
}


async def a_push_is_answered_item_by_item(queen, queue):
    answer = await steps.push(queen, queue, 1, 2)
    assert [item["index"] for item in answer] == [0, 1]
    assert [item["status"] for item in answer] == ["queued", "queued"]
    assert [item["transaction_id"] for item in answer] == ["t-1", "t-2"]
    assert {item["queueName"] for item in answer} == {queue}
    assert len({uuid.UUID(item["message_id"]) for item in answer}) == 2


async def a_message_arrives_with_all_its_fields(queen, queue):
    (answer,) = await steps.push(queen, queue, {"n": 1}, partition="p1")
    message = await steps.pop_one(queen, queue)
    assert message["id"] == answer["message_id"]
    assert message["transactionId"] == "t-{'n': 1}"
    assert message["data"] == {"n": 1}
    assert message["partition"] == "p1"
    assert uuid.UUID(message["partitionId"])
    assert message["leaseId"]
    assert message["consumerGroup"] == "__QUEUE_MODE__"
    assert message["traceId"] is None
    assert message["producerSub"] is None
    # A minute allows for a machine that stands still.
    assert -1 < steps.age(message) < 60


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS.keys())
async def any_json_payload_is_delivered_unchanged(queen, queue, payload):
    await queen.queue(queue).push({"data": payload})
    message = await steps.pop_one(queen, queue)
    assert message["data"] == payload
    assert type(message["data"]) is type(payload)


async def the_payload_may_be_under_data_or_payload_or_be_the_item(queen, queue):
    await queen.queue(queue).push([{"data": 1}, {"payload": 2}, {"n": 3}])
    assert steps.data(await steps.drain(queen, queue, 3)) == [1, 2, {"n": 3}]


async def a_large_payload_arrives_whole(queen, queue):
    text = "0123456789abcdef" * 65536
    await queen.queue(queue).push({"data": text})
    message = await steps.pop_one(queen, queue)
    assert message["data"] == text


async def the_client_creates_omitted_transaction_ids(queen, queue):
    (answer,) = await queen.queue(queue).push({"data": 1})
    message = await steps.pop_one(queen, queue)
    assert uuid.UUID(message["transactionId"])
    assert message["transactionId"] == answer["transaction_id"]


async def a_thousand_messages_of_one_push_arrive_in_order(queen, queue):
    await steps.push(queen, queue, *range(1000))
    messages = await steps.drain(queen, queue, 1000, batch=300)
    assert steps.data(messages) == list(range(1000))


async def pushes_one_after_another_arrive_in_order(queen, queue):
    for n in range(20):
        await steps.push(queen, queue, n)
    assert steps.data(await steps.drain(queen, queue, 20, batch=7)) == list(range(20))


async def a_repeated_transaction_id_is_a_duplicate_of_the_first(queen, queue):
    (first,) = await steps.push(queen, queue, 1)
    (second,) = await steps.push(queen, queue, 1)
    assert second["status"] == "duplicate"
    assert second["message_id"] == first["message_id"]
    await steps.push(queen, queue, 2)
    assert steps.data(await steps.drain(queen, queue, 2)) == [1, 2]


async def a_transaction_id_twice_in_one_push_is_stored_once(queen, queue):
    answer = await steps.push(queen, queue, 1, 1, 2)
    assert [item["status"] for item in answer] == ["queued", "duplicate", "queued"]
    assert steps.data(await steps.drain(queen, queue, 2)) == [1, 2]


async def a_transaction_id_belongs_to_its_partition(queen, queue):
    await steps.push(queen, queue, 1, partition="a")
    (answer,) = await steps.push(queen, queue, 1, partition="b")
    assert answer["status"] == "queued"


async def a_duplicate_of_a_consumed_message_is_recognised(queen, queue):
    await steps.push(queen, queue, 1)
    await steps.drain(queen, queue, 1)
    (answer,) = await steps.push(queen, queue, 1)
    assert answer["status"] == "duplicate"


async def the_callback_for_duplicates_is_called(queen, queue):
    await steps.push(queen, queue, 1)
    duplicates, stored = [], []

    async def on_duplicate(items, error):
        duplicates.extend(items)

    async def on_success(items):
        stored.extend(items)

    items = [{"data": n, "transactionId": f"t-{n}"} for n in (1, 2)]
    await queen.queue(queue).push(items).on_duplicate(on_duplicate).on_success(on_success)
    assert [item["transactionId"] for item in duplicates] == ["t-1"]
    assert [item["transactionId"] for item in stored] == ["t-2"]


# 1.3.0 takes a trace id and forgets it.
@pytest.mark.wakeline_only
async def a_trace_id_travels_with_the_message(queen, queue):
    trace = str(uuid.uuid4())
    await queen.queue(queue).push({"data": 1, "traceId": trace})
    message = await steps.pop_one(queen, queue)
    assert message["traceId"] == trace


async def a_nul_in_one_payload_fails_no_other_item(queen, queue):
    await queen.queue(queue).push([{"data": "a"}, {"data": "nul \x00 inside"}]).on_error(_ignore)
    await steps.push(queen, queue, "b")
    arrived = steps.data(await steps.drain(queen, queue, 2, batch=1))
    if "b" not in arrived:
        arrived += steps.data(await steps.drain(queen, queue, 1, batch=1))
    assert [text for text in arrived if "nul" not in text] == ["a", "b"]


async def _ignore(items, error):
    pass


# 1.3.0 stores an identifier of any length.
@pytest.mark.wakeline_only
async def a_bad_item_is_refused_by_itself_and_the_others_arrive(queen, queue):
    refused = []

    async def on_error(items, error):
        refused.extend(items)

    items = [
        {"data": "first", "transactionId": "fine-1"},
        {"data": "bad", "transactionId": "x" * 5000},
        {"data": "last", "transactionId": "fine-2"},
    ]
    answer = await queen.queue(queue).push(items).on_error(on_error)
    assert [item["status"] for item in answer] == ["queued", "failed", "queued"]
    assert answer[1]["error"]
    assert [item["payload"] for item in refused] == ["bad"]
    assert steps.data(await steps.drain(queen, queue, 2)) == ["first", "last"]


# 1.3.0 says "buffered" to the overlong one and never delivers it.
@pytest.mark.parametrize(
    "name",
    [pytest.param("q" * 5000, marks=pytest.mark.wakeline_only, id="overlong"), pytest.param("nul\x00", id="nul")],
)
async def a_push_to_an_impossible_name_is_refused(queen, name):
    with pytest.raises(Exception) as refusal:
        await queen.queue(name).push({"data": 1})
    assert 400 <= refusal.value.response.status_code < 500


# 1.3.0 takes the option and ignores it.
@pytest.mark.wakeline_only
async def a_full_queue_refuses_pushes(queen, queue):
    await queen.queue(queue).config({"max_size": 3}).create()
    await steps.push(queen, queue, 1, 2, 3)
    with pytest.raises(Exception, match="(?i)full|size|limit"):
        await steps.push(queen, queue, 4)
    assert steps.data(await steps.drain(queen, queue, 3)) == [1, 2, 3]
