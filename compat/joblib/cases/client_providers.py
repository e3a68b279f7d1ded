"""The real client serves reads: JSON and bytes, many at once, and some that fail."""

import os
import threading

import steps
from client import Frames, Listing, Rotate
from user import done


def a_provider_is_registered_with_its_schema(user, room, connect):
    client = connect(user)
    provider = client.serve(str, room=room)
    found = done(user.get(f"/rooms/{room}/providers/{provider['full_name']}/info"), 200)
    assert found["schema"] == Listing.model_json_schema()
    assert (found["id"], found["worker_id"]) == (provider["id"], str(client.jobs.worker_id))
    assert client.jobs.handlers == {provider["full_name"]: str}


def json_is_served(user, room, connect):
    entries = [{"name": "ä.xyz", "size": 3, "type": None, "parts": [1.5, True]}]
    provider = connect(user).serve(lambda path: entries, room=room)
    answer = user.read(provider, {"path": "/data"}, wait=30)
    assert (answer.status_code, answer.json()) == (200, entries)
    assert answer.headers["content-type"] == "application/json"


def bytes_are_served(user, room, connect):
    frame = os.urandom(300_000)
    provider = connect(user).serve(lambda index: frame + bytes([index]), cls=Frames, room=room)
    answer = user.read(provider, {"index": 7}, wait=30)
    assert answer.content == frame + b"\x07"
    assert answer.headers["content-type"] == "application/x-msgpack"


def a_default_is_used_where_no_parameter_is_given(user, room, connect):
    provider = connect(user).serve(lambda path: path, room=room)
    assert user.read(provider, wait=30).json() == "/"


def a_cached_answer_is_not_requested_again(user, room, connect):
    asked = []

    def handler(path):
        asked.append(path)
        return len(asked)

    provider = connect(user).serve(handler, room=room)
    assert [user.read(provider, {"path": "/x"}, wait=30).json() for _ in range(3)] == [1, 1, 1]
    assert asked == ["/x"]


def reads_are_served_concurrently(user, room, connect, aside):
    """The second answers while the first still works."""
    first_may_end, first_began = threading.Event(), threading.Event()

    def handler(path):
        if path == "/first":
            first_began.set()
            first_may_end.wait(steps.PATIENCE)
        return path

    provider = connect(user).serve(handler, room=room)
    first = aside(user.read, provider, {"path": "/first"}, wait=30)
    assert first_began.wait(steps.PATIENCE)
    assert user.read(provider, {"path": "/second"}, wait=30).json() == "/second"
    assert not first.done()
    first_may_end.set()
    assert first.result(steps.PATIENCE).json() == "/first"


def several_providers_of_one_client_are_kept_apart(user, room, connect):
    client = connect(user)
    one = client.serve(lambda path: f"one {path}", room=room, name="one")
    two = client.serve(lambda path: f"two {path}", room=room, name="two")
    assert user.read(two, {"path": "/x"}, wait=30).json() == "two /x"
    assert user.read(one, {"path": "/x"}, wait=30).json() == "one /x"


def a_job_uses_the_handler_of_a_provider(user, room, connect):
    seen = []
    client = connect(user, execute=lambda task: seen.append(client.jobs.handlers))
    provider = client.serve(str, room=room)
    client.jobs.register(Rotate, room=room)
    task = client.jobs.submit(Rotate(), room, job_room=room)
    assert done(user.task(task, wait=30), 200)["status"] == "completed"
    assert seen == [{provider["full_name"]: str}]


def an_unregistered_provider_is_not_found(user, room, connect):
    client = connect(user)
    provider = client.serve(lambda path: path, room=room)
    client.jobs.unregister_provider(provider["full_name"])
    assert user.read(provider, wait=0).status_code == 404
    assert client.jobs.handlers == {}
    again = client.serve(lambda path: f"again {path}", room=room)
    assert again["id"] != provider["id"]
    assert user.read(again, {"path": "/x"}, wait=30).json() == "again /x"


def a_read_that_fails_does_not_keep_others_from_their_answers(user, room, connect):
    def handler(path):
        if path == "/bad":
            raise RuntimeError("no such place")
        return path

    provider = connect(user).serve(handler, room=room)
    assert user.read(provider, {"path": "/bad"}, wait=1).status_code >= 400
    assert user.read(provider, {"path": "/good"}, wait=30).json() == "/good"


def the_client_takes_a_provider_over_from_another(user, room, connect):
    connect(user).serve(lambda path: "first", room=room)
    second = connect(user)
    provider = second.serve(lambda path: "second", room=room)
    found = done(user.get(f"/rooms/{room}/providers/{provider['full_name']}/info"), 200)
    assert found["worker_id"] == str(second.jobs.worker_id)


def a_failed_read_is_reported_in_the_rooms_chat(user, room):
    """The report itself; who reads meanwhile is in `read_errors.py`."""
    answer = user.ask("POST", f"/v1/rooms/{room}/chat/messages", json={"content": "anything"})
    assert answer.status_code == 201
