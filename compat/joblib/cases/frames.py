"""Rooms with frames, in the bytes of real msgpack-numpy, stored or served by the real client.

ZnDraw's own class is in zndraw.py.
"""

import base64
import threading

import msgpack
import msgpack_numpy
import numpy
import pytest
import steps
from client import Frames
from user import done

# The host of zndraw-joblib has no frames: they are ZnDraw's.
pytestmark = pytest.mark.wakeline_only

MSGPACK = "application/x-msgpack"


def _frame(number):
    """As ZnDraw keeps one: a map of binaries, each an array as msgpack-numpy writes it."""
    arrays = {
        "arrays.colors": numpy.full((2, 3), number, dtype=numpy.float32),
        "arrays.radii": numpy.array([0.5, number]),
        "arrays.positions": numpy.arange(6.0).reshape(2, 3) + number,
        "info.step": number,
    }
    return {key.encode(): msgpack.packb(value, default=msgpack_numpy.encode) for key, value in arrays.items()}


def _unpacked(answer):
    assert (answer.status_code, answer.headers["content-type"]) == (200, MSGPACK), answer.text
    return [{key: _value(value) for key, value in frame.items()} for frame in msgpack.unpackb(answer.content)]


def _value(binary):
    return msgpack.unpackb(binary, object_hook=msgpack_numpy.decode)


def _steps(answer):
    return [frame[b"info.step"] for frame in _unpacked(answer)]


def _in_json(frame):
    coded = {key: base64.b64encode(value).decode() for key, value in frame.items()}
    return {f"b64:{base64.b64encode(key).decode()}": value for key, value in coded.items()}


def _room(user, room):
    done(user.ask("POST", "/v1/rooms", json={"room_id": room}), 201)
    return f"/v1/rooms/{room}/frames"


def _mounted(user, room, client, handler, count):
    frames = _room(user, room)
    client.serve(handler, cls=Frames, room=room, name="mount-0123456789ab")
    done(user.ask("PATCH", f"/v1/rooms/{room}", json={"frame_count": count}), 200)
    return frames


def arrays_are_read_unchanged(user, room, listen):
    frames = _room(user, room)
    watching = listen(user, room)
    done(user.ask("POST", frames, json={"frames": [_in_json(_frame(number)) for number in range(3)]}), 201)
    told = watching.expect("frames_invalidate")
    assert (told["room_id"], told["action"], told["count"]) == (room, "add", 3)
    assert _steps(user.ask("GET", f"{frames}?indices=2,0")) == [2, 0]
    [frame] = _unpacked(user.ask("GET", f"{frames}/1?keys=arrays.positions"))
    assert list(frame) == [b"arrays.positions"]
    positions = frame[b"arrays.positions"]
    assert positions.dtype == numpy.float64
    assert numpy.array_equal(positions, numpy.arange(6.0).reshape(2, 3) + 1)
    kinds = done(user.ask("GET", f"{frames}/1/metadata"), 200)["metadata"]
    assert kinds["arrays.colors"] == {"dtype": "<f4", "shape": [2, 3], "type": "array"}


def the_real_client_serves_a_mounted_room(user, room, connect):
    asked = []

    def handler(index):
        asked.append(index)
        return msgpack.packb(_frame(index))

    frames = _mounted(user, room, connect(user), handler, 50)
    answer = user.ask("GET", f"{frames}?start=10&stop=14", headers={"Prefer": "wait=30"})
    assert _steps(answer) == [10, 11, 12, 13]
    assert answer.headers["preference-applied"] == "wait=30"
    assert answer.headers["server-timing"].startswith("hold;dur=")
    # What was asked for is kept, and nobody waits for it.
    again = user.ask("GET", f"{frames}/12", headers={"Prefer": "wait=30"})
    assert _steps(again) == [12]
    assert "server-timing" not in again.headers
    assert sorted(asked) == [10, 11, 12, 13]


def a_late_batch_is_a_timeout_and_is_read_later(user, room, connect):
    may_answer = threading.Event()
    asked = []

    def handler(index):
        asked.append(index)
        may_answer.wait(steps.PATIENCE)
        return msgpack.packb(_frame(index))

    frames = _mounted(user, room, connect(user), handler, 5)
    late = user.ask("GET", frames, headers={"Prefer": "wait=1"})
    assert steps.is_problem(late, 504, "provider-timeout", "Gateway Timeout")
    assert late.headers["retry-after"] == "2"
    may_answer.set()
    assert _steps(user.ask("GET", frames, headers={"Prefer": "wait=30"})) == [0, 1, 2, 3, 4]
    # What the provider was working on was not asked of it again.
    assert sorted(asked) == [0, 1, 2, 3, 4]


def a_failed_frame_answers_the_waiting_reader(user, room, connect):
    def handler(index):
        raise ValueError("the trajectory is gone")

    frames = _mounted(user, room, connect(user), handler, 5)
    failed = user.ask("GET", f"{frames}/3", headers={"Prefer": "wait=30"})
    assert failed.status_code == 400, failed.text
    assert failed.json()["type"] == "/v1/problems/provider-execution-failed"
    assert "the trajectory is gone" in failed.json()["detail"]


def a_mounted_room_is_read_only(user, room, connect):
    frames = _mounted(user, room, connect(user), lambda index: msgpack.packb(_frame(index)), 5)
    refused = user.ask("POST", frames, json={"frames": [_in_json(_frame(0))]})
    assert refused.status_code == 409
    assert refused.json()["type"] == "/v1/problems/room-read-only"


def events_come_in_the_order_of_the_changes(user, room, aside, listen):
    frames, hearing = _room(user, room), listen(user, room)
    body = {"frames": [_in_json(_frame(0))]}
    for together in range(10):
        appends = [aside(user.ask, "POST", frames, json=body) for _ in range(8)]
        for append in appends:
            done(append.result(steps.PATIENCE), 201)
        hearing.expect("frames_invalidate", count=8 * (together + 1))
    assert [event["count"] for event in hearing.all("frames_invalidate")] == list(range(1, 81))


def a_locked_room_refuses_the_changes_of_others(alice, bob, admin, room, listen):
    frames, hearing = _room(alice, room), listen(bob, room)
    body = {"frames": [_in_json(_frame(0))]}
    done(alice.ask("PATCH", f"/v1/rooms/{room}", json={"locked": True}), 200)
    assert hearing.expect("room_update")["locked"] is True
    assert listen(bob).enter(room)["locked"] is True
    assert steps.is_problem(bob.ask("POST", frames, json=body), 423, "room-locked", "Locked")
    done(alice.ask("POST", frames, json=body), 201)
    done(admin.ask("POST", frames, json=body), 201)
    assert bob.ask("PATCH", f"/v1/rooms/{room}", json={"locked": False}).status_code == 423
    done(admin.ask("PATCH", f"/v1/rooms/{room}", json={"locked": False}), 200)
    done(bob.ask("POST", frames, json=body), 201)


def progress_is_shown_to_the_room(user, room, listen):
    _room(user, room)
    hearing, progress = listen(user, room), f"/v1/rooms/{room}/progress"
    start = {"progress_id": "p", "description": "Uploading", "unit": "frames"}
    shown = done(user.ask("POST", progress, json=start), 201)
    assert shown == {**start, "n": 0, "total": None, "elapsed": 0.0}
    assert hearing.expect("progress_start") == start
    update = {"n": 3, "total": 7, "elapsed": 1.5}
    shown = done(user.ask("PATCH", f"{progress}/p", json=update), 200)
    assert shown == {**start, **update}
    expected = {"progress_id": "p", "description": None, "unit": None, **update}
    assert hearing.expect("progress_update") == expected
    assert listen(user).enter(room)["progress_trackers"] == {"p": shown}
    assert user.ask("DELETE", f"{progress}/p").status_code == 204
    assert hearing.expect("progress_complete") == {"progress_id": "p"}
    again = user.ask("DELETE", f"{progress}/p")
    assert steps.is_problem(again, 404, "progress-not-found", "Not Found")


def messages_of_the_chat_are_listed(user, room, listen):
    _room(user, room)
    hearing, chat = listen(user, room), f"/v1/rooms/{room}/chat/messages"
    said = [done(user.ask("POST", chat, json={"content": text}), 201) for text in ("one", "two", "three")]
    assert hearing.expect("message_new", count=3) == said[2]
    page = done(user.ask("GET", chat, params={"limit": 2}), 200)
    assert page["items"] == [said[2], said[1]]
    assert (page["metadata"]["has_more"], page["metadata"]["total_count"]) == (True, 3)
    rest = done(user.ask("GET", chat, params={"before": page["metadata"]["oldest_timestamp"]}), 200)
    assert (rest["items"], rest["metadata"]["has_more"]) == ([said[0]], False)
