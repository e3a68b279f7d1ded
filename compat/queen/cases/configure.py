"""Queues: made, configured, deleted."""

import os
from pathlib import Path

import httpx
import pytest

import steps

# What the client calls it, what it is set to, what the server calls it.
OPTIONS = [
    ("lease_time", 17, "leaseTime"),
    ("retry_limit", 5, "retryLimit"),
    ("retry_delay", 250, "retryDelay"),
    ("priority", 9, "priority"),
    ("delayed_processing", 4, "delayedProcessing"),
    ("window_buffer", 6, "windowBuffer"),
    ("max_size", 1234, "maxSize"),
    ("ttl", 77, "ttl"),
    ("retention_seconds", 88, "retentionSeconds"),
    ("completed_retention_seconds", 99, "completedRetentionSeconds"),
    ("retention_enabled", True, "retentionEnabled"),
    ("max_wait_time_seconds", 55, "maxWaitTimeSeconds"),
    ("dead_letter_queue", False, "deadLetterQueue"),
    ("dlq_after_max_retries", False, "dlqAfterMaxRetries"),
]


async def creating_answers_with_the_queue(queen, queue):
    answer = await queen.queue(queue).create()
    assert answer["configured"] is True
    assert answer["queue"] == queue
    assert answer["queueId"]
    assert answer["options"]["leaseTime"] == 300
    assert answer["options"]["retryLimit"] == 3


@pytest.mark.parametrize(("name", "value", "key"), OPTIONS, ids=[o[2] for o in OPTIONS])
async def a_configured_option_is_stored(queen, queue, name, value, key):
    answer = await queen.queue(queue).config({name: value}).create()
    assert answer["options"][key] == value


# The client sends their defaults.
async def creating_again_resets_omitted_options(queen, queue):
    first = await queen.queue(queue).config({"lease_time": 5, "priority": 7}).create()
    second = await queen.queue(queue).config({"retry_limit": 1}).create()
    assert second["queueId"] == first["queueId"]
    assert second["options"]["leaseTime"] == 300
    assert second["options"]["priority"] == 0
    assert second["options"]["retryLimit"] == 1


async def namespace_and_task_are_stored(queen, queue):
    namespace, task = steps.unique("ns"), steps.unique("task")
    answer = await queen.queue(queue).namespace(namespace).task(task).create()
    assert (answer["namespace"], answer["task"]) == (namespace, task)
    found = await queen.admin.get_queue(queue)
    assert (found["namespace"], found["task"]) == (namespace, task)


async def a_queue_without_a_name_is_refused(queen):
    errors = []

    async def on_error(error):
        errors.append(str(error))

    answer = await queen.queue(None).create().on_error(on_error)
    assert answer["success"] is False
    assert "queue" in errors[0]


async def the_success_callback_is_called(queen, queue):
    answers = []

    async def on_success(answer):
        answers.append(answer)

    await queen.queue(queue).create().on_success(on_success)
    assert answers[0]["configured"] is True


async def configuring_leaves_the_messages_alone(queen, queue):
    await steps.push(queen, queue, 1, 2)
    await queen.queue(queue).config({"lease_time": 10}).create()
    assert steps.data(await steps.drain(queen, queue, 2)) == [1, 2]


async def deleting_answers_whether_the_queue_existed(queen, queue):
    await queen.queue(queue).create()
    answer = await queen.queue(queue).delete()
    assert (answer["deleted"], answer["existed"], answer["queue"]) == (True, True, queue)
    again = await queen.queue(queue).delete()
    assert again["existed"] is False


async def a_deleted_queue_takes_its_messages_with_it(queen, queue):
    await steps.push(queen, queue, "old")
    await queen.queue(queue).delete()
    await steps.push(queen, queue, "new")
    assert steps.data(await steps.pop_waiting(queen, queue, batch=10)) == ["new"]


async def a_deleted_queue_is_not_listed(queen, queue):
    await queen.queue(queue).create()
    await queen.queue(queue).delete()
    with pytest.raises(Exception, match="not found"):
        await queen.admin.get_queue(queue)


# 1.3.0 keeps what such a queue gets in the clear, with a line in its log.
@pytest.mark.wakeline_only
@pytest.mark.store("postgres")
async def encryption_without_a_key_is_refused(queen, queue):
    with pytest.raises(Exception, match="(?i)queue.encryption_key .*on all nodes"):
        await queen.queue(queue).config({"encryption_enabled": True}).create()


# As above.
@pytest.mark.wakeline_only
@pytest.mark.store("sqlite")
async def the_first_encrypted_queue_makes_a_key(queen, queue):
    answer = await queen.queue(queue).config({"encryption_enabled": True}).create()
    assert answer["options"]["encryptionEnabled"] is True
    data = Path(os.environ["QUEEN_DATA"])
    file = data / "encryption.key"
    assert file.stat().st_mode & 0o777 == 0o600
    if "notice" in answer:
        assert "encryption.key" in answer["notice"]
        assert file.read_text().strip() not in answer["notice"]
    again = await queen.queue(queue).config({"encryption_enabled": True}).create()
    assert "notice" not in again
    secret = steps.unique("secret")
    await steps.push(queen, queue, secret)
    on_disk = b"".join(path.read_bytes() for path in data.glob("wakeline.db*"))
    assert secret.encode() not in on_disk.replace(f"t-{secret}".encode(), b"")
    assert steps.data(await steps.pop_waiting(queen, queue)) == [secret]


# Queen merges since 1.6; 1.3.0 replaces.
@pytest.mark.wakeline_only
async def an_option_that_is_not_named_keeps_its_value(queen, url, queue):
    # The client always sends nine options, and these are not among them.
    await queen.queue(queue).config({"ttl": 77, "dead_letter_queue": False}).create()
    second = await queen.queue(queue).config({"priority": 2}).create()
    kept = second["options"]
    assert (kept["ttl"], kept["deadLetterQueue"], kept["priority"]) == (77, False, 2)
    async with httpx.AsyncClient(base_url=url) as http:

        async def configure(**body):
            answer = await http.post("/api/v1/configure", json={"queue": queue, **body})
            assert answer.status_code == 200, answer.text
            return answer.json()["options"]

        merged = await configure(options={"deadLetterQueue": None, "retryLimit": 9})
        assert (merged["ttl"], merged["deadLetterQueue"], merged["retryLimit"]) == (77, True, 9)
        replaced = await configure(options={"retryLimit": 1}, mode="replace")
        assert (replaced["ttl"], replaced["priority"], replaced["retryLimit"]) == (0, 0, 1)


# 1.3.0 fails in the database and says 500, which the client tries three times.
@pytest.mark.wakeline_only
async def an_option_of_the_wrong_kind_is_refused_with_its_name(queen, queue):
    with pytest.raises(Exception, match="leaseTime"):
        await queen.queue(queue).config({"lease_time": "soon"}).create()
