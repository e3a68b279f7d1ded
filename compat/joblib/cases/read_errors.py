"""Reads that the provider cannot answer."""

import json

import pytest
import steps

# Upstream has nothing of this: a reader waits for the whole time.
pytestmark = pytest.mark.wakeline_only

FAILED = {
    "type": "/v1/problems/provider-execution-failed",
    "title": "Bad Request",
    "status": 400,
    "detail": "no such place",
}


def an_error_that_is_uploaded_answers_the_waiters(user, room, listen, aside):
    provider, serving = user.provider(room, content_type="application/x-msgpack"), listen(user)
    serving.serve(provider)
    reads = [aside(user.read, provider, {"path": "/bad"}, wait=30) for _ in range(3)]
    request = serving.expect("provider_request")
    content, headers = json.dumps(FAILED), {"X-Result-Status": "error"}
    assert steps.is_empty(user.upload(provider, request["request_id"], content, headers))
    for read in reads:
        answer = read.result(steps.PATIENCE)
        assert steps.is_problem(answer, 400, "provider-execution-failed", "Bad Request", "no such place")


def a_good_result_after_an_error_is_served(user, room):
    provider = user.provider(room)
    user.upload(provider, {}, json.dumps(FAILED), {"X-Result-Status": "error"})
    assert user.read(provider, wait=0).status_code == 400
    user.upload(provider, {}, b"[1]")
    answer = user.read(provider, wait=0)
    assert (answer.status_code, answer.content) == (200, b"[1]")


def the_real_clients_report_of_a_failed_read_answers_the_waiters(user, room, connect, aside):
    """It uploads nothing and writes into the room's chat, with the hash of what was asked."""

    def handler(path):
        raise RuntimeError("no such place")

    provider = connect(user).serve(handler, room=room)
    reads = [aside(user.read, provider, {"path": "/bad"}, wait=30) for _ in range(3)]
    for read in reads:
        answer = read.result(steps.PATIENCE)
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert problem["type"] == "/v1/problems/provider-execution-failed"
        assert problem["status"] == answer.status_code
        assert "no such place" in problem["detail"]


def another_users_report_answers_no_reader(alice, bob, room, listen, aside):
    provider, serving = alice.provider(room), listen(alice)
    serving.serve(provider)
    reading = aside(alice.read, provider, {"path": "/x"}, wait=30)
    request = serving.expect("provider_request")
    report = f"Provider `{provider['full_name']}` read failed for request `{request['request_id']}`:\n```\nfalse```"
    assert bob.ask("POST", f"/v1/rooms/{room}/chat/messages", json={"content": report}).status_code == 201
    assert steps.is_empty(alice.upload(provider, request["request_id"], b'"true"'))
    assert reading.result(steps.PATIENCE).json() == "true"


def after_a_report_the_provider_gets_the_request_again(user, room, connect):
    asked = []

    def handler(path):
        asked.append(path)
        if len(asked) == 1:
            raise RuntimeError("only once")
        return path

    provider = connect(user).serve(handler, room=room)
    assert user.read(provider, {"path": "/x"}, wait=30).status_code != 504
    steps.until("the good answer", lambda: user.read(provider, {"path": "/x"}, wait=5).status_code == 200)
    assert asked == ["/x", "/x"]
