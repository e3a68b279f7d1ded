"""Socket.IO connections: who is let in, on which transport, into which room."""

import json

import pytest
import socketio
import steps

TRANSPORTS = [["polling"], ["websocket"], ["polling", "websocket"]]


@pytest.mark.parametrize("transports", TRANSPORTS, ids="-then-".join)
def events_come_on_every_transport(user, room, listen, transports):
    listening = listen(user, room, transports=transports)
    assert listening.transport == transports[-1]
    provider = user.provider(room)
    listening.expect("providers_invalidate")
    listening.serve(provider)
    user.read(provider, {"path": "/"}, wait=0)
    assert listening.expect("provider_request")["params"] == '{"path":"/"}'


@pytest.mark.parametrize("transports", TRANSPORTS, ids="-then-".join)
def the_real_client_serves_on_every_transport(user, room, connect, transports):
    provider = connect(user, transports=transports).serve(lambda path: path, room=room)
    assert user.read(provider, {"path": "/x"}, wait=30).json() == "/x"


@pytest.mark.parametrize("transports", TRANSPORTS, ids="-then-".join)
def a_connection_with_a_bad_token_is_refused(guarded_url, transports):
    _is_refused(guarded_url, {"token": "junk"}, transports)


@pytest.mark.parametrize("auth", [{}, {"token": None}, {"token": ""}, None], ids=["empty", "null", "blank", "none"])
def a_connection_without_a_token_is_refused(guarded_url, auth):
    _is_refused(guarded_url, auth)


def a_guest_may_connect(alice, room, listen):
    listening = listen(alice, room)
    alice.job(room)
    listening.expect("jobs_invalidate")


def the_handshake_is_that_of_engine_io_4(user):
    answer = user.http.get(f"{user.base_url}/socket.io/", params={"transport": "polling", "EIO": "4"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/plain; charset=UTF-8"
    kind, handshake = answer.text[0], json.loads(answer.text[1:])
    assert kind == "0"
    assert sorted(handshake) == ["maxPayload", "pingInterval", "pingTimeout", "sid", "upgrades"]
    assert handshake["upgrades"] == ["websocket"]
    assert (handshake["pingInterval"], handshake["pingTimeout"]) == (25000, 20000)


def an_unknown_session_is_refused(user):
    query = {"transport": "polling", "EIO": "4", "sid": "nobody"}
    assert user.http.get(f"{user.base_url}/socket.io/", params=query).status_code == 400


def joining_a_room_is_acknowledged(user, room, listen):
    joined = listen(user).enter(room)
    assert joined.pop("session_id")
    assert joined == {
        "room_id": room,
        "step": 0,
        "frame_count": 0,
        "locked": False,
        "camera_key": None,
        "default_camera": None,
        "progress_trackers": {},
    }


def a_connection_gets_the_events_of_all_its_rooms(user, listen):
    rooms = [steps.unique("room") for _ in range(3)]
    listening = listen(user, *rooms)
    for count, room in enumerate(rooms, 1):
        user.job(room)
        listening.expect("jobs_invalidate", count)


def events_that_are_no_join_are_ignored(user, room, listen):
    """And the event after it arrives."""
    listening = listen(user, room)
    for event in ("join_provider_room", "join_job_room", "leave_job_room", "nonsense"):
        for payload in (None, 3, "x", {}, {"provider_name": 3}):
            listening.say(event, payload)
    listening.enter(steps.unique("room"))
    user.job(room)
    listening.expect("jobs_invalidate")


def a_long_event_arrives_whole(user, room, listen):
    """Beyond the first frame of a websocket and the first read of a socket."""
    for transport in ("websocket", "polling"):
        listening, provider = listen(user, transports=[transport]), user.provider(room, transport)
        listening.serve(provider)
        # A URL has 8 KiB at most.
        text = "x" * 7_000
        user.read(provider, {"path": text}, wait=0)
        assert json.loads(listening.expect("provider_request")["params"]) == {"path": text}


def _is_refused(url, auth, transports=None):
    refused = []
    client = socketio.Client(handle_sigint=False, reconnection=False)
    client.on("connect_error", refused.append)
    with pytest.raises(socketio.exceptions.ConnectionError):
        client.connect(url, auth=auth, transports=transports, wait_timeout=steps.PATIENCE)
    assert [_message(reason) for reason in refused] == ["Connection refused by server"]


def _message(reason):
    return reason["message"] if isinstance(reason, dict) else reason
