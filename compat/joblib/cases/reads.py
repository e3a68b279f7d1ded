"""Reads: held until the provider has answered. The first eight are those of the design."""

import threading

import httpx
import pytest
import steps
import user as people
from zndraw_joblib import request_hash


def cache_hit(user, room, listen):
    """What is there is answered at once, nobody is asked, and no wait was applied."""
    provider, serving = _served(user, room, listen)
    steps.is_empty(user.upload(provider, {"path": "/"}, b"[1]"))
    answer = user.read(provider, {"path": "/"}, wait=30)
    assert (answer.status_code, answer.content) == (200, b"[1]")
    assert answer.headers["content-type"] == "application/json"
    assert "preference-applied" not in answer.headers
    _read_another(user, provider, serving)
    assert [request["params"] for request in serving.all("provider_request")] == ["{}"]


def cache_miss_and_a_fast_provider(user, room, connect):
    provider = connect(user).serve(lambda path: {"path": path}, room=room)
    answer = user.read(provider, {"path": "/data"}, wait=30)
    assert (answer.status_code, answer.json()) == (200, {"path": "/data"})
    assert answer.headers["preference-applied"] == "wait=30"


def cache_miss_and_a_slow_provider(user, room, connect, aside):
    answers, asked = threading.Event(), threading.Event()

    def slow(path):
        asked.set()
        answers.wait(steps.PATIENCE)
        return path

    provider = connect(user).serve(slow, room=room)
    reading = aside(user.read, provider, {"path": "/slow"}, wait=30)
    assert asked.wait(steps.PATIENCE)
    assert not reading.done()
    answers.set()
    assert reading.result(steps.PATIENCE).json() == "/slow"


def timeout(user, room):
    """504 in upstream and by default here; the design's 404 is a setting."""
    provider = user.provider(room)
    answer = user.read(provider, {"path": "/"}, wait=1)
    detail = f"Provider '{provider['full_name']}' did not respond within 1s"
    assert steps.is_problem(answer, 504, "provider-timeout", "Gateway Timeout", detail)
    assert answer.headers["retry-after"] == "2"
    assert "preference-applied" not in answer.headers


def race_condition(user, room, connect, aside):
    """However fast the answer is, it is not missed between the question and the wait for it."""
    provider = connect(user).serve(lambda path: path, room=room)
    reads = [aside(user.read, provider, {"path": f"/{number}"}, wait=30) for number in range(50)]
    answers = [read.result(2 * steps.PATIENCE) for read in reads]
    assert [answer.status_code for answer in answers] == [200] * 50
    assert [answer.json() for answer in answers] == [f"/{number}" for number in range(50)]


def abort(user, room, listen, aside):
    """A reader that hangs up keeps nobody from the answer; see `waiters.py` for what it leaves."""
    provider, serving = _served(user, room, listen)
    staying = aside(user.read, provider, {"path": "/"}, wait=30)
    serving.expect("provider_request")
    with pytest.raises(httpx.TimeoutException):
        user.http.get(
            f"{user.base_url}/v1/joblib/rooms/{room}/providers/{provider['full_name']}",
            params={"path": "/"},
            headers={**user.get_headers(), "Prefer": "wait=30"},
            timeout=0.5,
        )
    steps.is_empty(user.upload(provider, {"path": "/"}, b"[1]"))
    assert staying.result(steps.PATIENCE).json() == [1]


def inflight_dedup(user, room, listen, aside):
    provider, serving = _served(user, room, listen)
    reads = [aside(user.read, provider, {"path": "/"}, wait=30) for _ in range(2)]
    serving.expect("provider_request")
    _read_another(user, provider, serving)
    user.upload(provider, {"path": "/"}, b"[1]")
    assert [read.result(steps.PATIENCE).content for read in reads] == [b"[1]"] * 2
    assert len(serving.all("provider_request", request_id=request_hash({"path": "/"}))) == 1


def prefer_wait_n(user, room, listen, aside):
    """The wait that was asked for is applied, and at most 30 seconds."""
    provider, serving = _served(user, room, listen)
    for number, (asked, applied) in enumerate([("wait=7", "wait=7"), ("respond-async; wait=60", "wait=30")], 1):
        reading = aside(user.read, provider, {"n": number}, headers={"Prefer": asked})
        request = serving.expect("provider_request", number)
        user.upload(provider, request["request_id"], b"1")
        assert reading.result(steps.PATIENCE).headers["preference-applied"] == applied


def a_hundred_identical_reads_share_one_request(user, room, listen, aside):
    provider, serving = _served(user, room, listen)
    reads = [aside(user.read, provider, {"path": "/"}, wait=30) for _ in range(100)]
    serving.expect("provider_request")
    _read_another(user, provider, serving)
    user.upload(provider, {"path": "/"}, b"[1]")
    answers = [read.result(2 * steps.PATIENCE) for read in reads]
    assert [(answer.status_code, answer.content) for answer in answers] == [(200, b"[1]")] * 100
    assert len(serving.all("provider_request", request_id=request_hash({"path": "/"}))) == 1


def a_read_that_does_not_wait_still_sends_its_request(user, room, listen):
    provider, serving = _served(user, room, listen)
    answer = user.read(provider, {"path": "/"}, wait=0)
    detail = f"Provider '{provider['full_name']}' did not respond within 0s"
    assert steps.is_problem(answer, 504, "provider-timeout", "Gateway Timeout", detail)
    request = serving.expect("provider_request")
    steps.is_empty(user.upload(provider, request["request_id"], b"[1]"))
    assert user.read(provider, {"path": "/"}, wait=0).content == b"[1]"


def without_a_preference_a_read_is_held_for_five_seconds(user, room, listen, aside):
    provider, serving = _served(user, room, listen)
    reading = aside(user.read, provider, {"n": 1})
    user.upload(provider, serving.expect("provider_request")["request_id"], b"1")
    answer = reading.result(steps.PATIENCE)
    assert answer.content == b"1"
    assert "preference-applied" not in answer.headers
    answer = user.read(provider, {"n": 2})
    detail = f"Provider '{provider['full_name']}' did not respond within 5s"
    assert steps.is_problem(answer, 504, "provider-timeout", "Gateway Timeout", detail)
    assert answer.headers["retry-after"] == "2"


@pytest.mark.alone
def how_long_a_read_is_held_is_a_setting(deployment, room, listen, aside):
    user = people.guest(deployment.node(read_hold=1, max_read_hold=2).url)
    provider, serving = _served(user, room, listen)
    assert "did not respond within 1s" in user.read(provider, {"n": 1}).json()["detail"]
    assert "did not respond within 2s" in user.read(provider, {"n": 2}, wait=30).json()["detail"]
    reading = aside(user.read, provider, {"n": 3}, wait=30)
    user.upload(provider, serving.expect("provider_request", 3)["request_id"], b"1")
    assert reading.result(steps.PATIENCE).headers["preference-applied"] == "wait=2"


def a_read_while_its_request_is_in_flight_sends_no_other(user, room, listen):
    provider, serving = _served(user, room, listen)
    for _ in range(3):
        assert user.read(provider, {"path": "/"}, wait=0).status_code == 504
    _read_another(user, provider, serving)
    assert len(serving.all("provider_request", request_id=request_hash({"path": "/"}))) == 1


def reads_with_other_parameters_are_other_reads(user, room, listen):
    provider, serving = _served(user, room, listen)
    for number in range(3):
        user.read(provider, {"n": number}, wait=0)
    serving.expect("provider_request", 3)
    user.upload(provider, {"n": "1"}, b'"one"')
    assert user.read(provider, {"n": 1}, wait=0).json() == "one"
    assert user.read(provider, {"n": 2}, wait=0).status_code == 504


def a_global_provider_is_read_from_any_room(user, room, connect):
    provider = connect(user).serve(lambda path: path, room="@global", name=steps.unique("provider"))
    assert user.read(provider, {"path": "/x"}, room=room, wait=30).json() == "/x"
    assert user.read(provider, {"path": "/x"}, room=steps.unique("room"), wait=0).json() == "/x"


def another_user_reads_the_uploaded_result(user, other, room):
    provider = user.provider(room)
    user.upload(provider, {}, b"[1]")
    assert other.read(provider, wait=0).content == b"[1]"


def _served(user, room, listen):
    """A provider whose questions come here, to be answered or not."""
    provider, serving = user.provider(room), listen(user)
    serving.serve(provider)
    return provider, serving


def _read_another(user, provider, serving):
    """Once its question is here, an earlier one would be here too."""
    user.read(provider, wait=0)
    serving.expect("provider_request", request_id=request_hash({}))
