"""Who hangs up leaves nothing behind: no waiter, no mark that somebody asked."""

import re
import socket
from urllib.parse import urlsplit

import pytest
import steps
import user as people
from user import done

# Upstream has no list of waiters.
pytestmark = [pytest.mark.wakeline_only, pytest.mark.alone]


@pytest.fixture
def user(deployment):
    return people.guest(deployment.node().url)


def a_reader_that_hangs_up_leaves_no_waiter(user, room, listen):
    provider, serving = user.provider(room), listen(user)
    serving.serve(provider)
    before = _waits(user)
    _read_and_hang_up(user, 5, provider)
    steps.until("the end of the waits", lambda: _waits(user) == before)
    steps.until("the gauge to say so", lambda: _gauge(user) == before)


def a_reader_that_hangs_up_leaves_no_lock(user, room, listen):
    provider, serving = user.provider(room), listen(user)
    serving.serve(provider)
    before = _waits(user)
    _read_and_hang_up(user, 1, provider)
    steps.until("the end of the wait", lambda: _waits(user) == before)
    # None, if it hung up before the provider was asked.
    asked = len(serving.all("provider_request"))
    assert asked <= 1

    # The mark goes after the waiter.
    def asked_again():
        user.read(provider, {"path": "/x"}, wait=0)
        return len(serving.all("provider_request")) > asked

    steps.until("the question again", asked_again)


def a_waiting_reader_keeps_the_lock_of_readers_that_left(user, room, listen, aside):
    provider, serving = user.provider(room), listen(user)
    serving.serve(provider)
    before = _waits(user)
    staying = aside(user.read, provider, {"path": "/x"}, wait=30)
    steps.until("the reader that stays", lambda: _waits(user) == before + 1)
    _read_and_hang_up(user, 3, provider)
    steps.until("the end of the others", lambda: _waits(user) == before + 1)
    user.read(provider, {"path": "/x"}, wait=0)
    user.upload(provider, {"path": "/x"}, b"[1]")
    assert staying.result(steps.PATIENCE).json() == [1]
    assert len(serving.all("provider_request")) == 1


def a_task_wait_that_is_hung_up_leaves_no_waiter(user, room):
    task = user.submit(room, user.job(room)["full_name"])["id"]
    before = _waits(user)
    _cut(user, 3, f"/v1/joblib/tasks/{task}")
    steps.until("the end of the waits", lambda: _waits(user) == before)


def one_answer_answers_a_hundred_held_reads(user, room, listen, aside):
    provider, serving = user.provider(room), listen(user)
    serving.serve(provider)
    before = _waits(user)
    reads = [aside(user.read, provider, {"path": "/x"}, wait=30) for _ in range(100)]
    steps.until("a hundred waits", lambda: _waits(user) == before + 100)
    user.upload(provider, {"path": "/x"}, b"[1]")
    assert [read.result(steps.PATIENCE).content for read in reads] == [b"[1]"] * 100
    assert len(serving.all("provider_request")) == 1
    steps.until("the end of the waits", lambda: _waits(user) == before)


def _read_and_hang_up(user, count, provider):
    _cut(user, count, f"/v1/joblib/rooms/{provider['room_id']}/providers/{provider['full_name']}?path=/x")


def _cut(user, count, path):
    """So many ask, are held, and close their connections."""
    before, server = _waits(user), urlsplit(user.base_url)
    headers = [f"Host: {server.netloc}", "Prefer: wait=30", f"Authorization: Bearer {user.token}"]
    request = "\r\n".join([f"GET {path} HTTP/1.1", *headers, "", ""])
    lines = [socket.create_connection((server.hostname, server.port)) for _ in range(count)]
    for line in lines:
        line.sendall(request.encode())
    steps.until("the waits", lambda: _waits(user) == before + count)
    for line in lines:
        line.close()


def _waits(user):
    return done(user.ask("GET", "/v1/waits"), 200)["total"]


def _gauge(user):
    found = re.search(r'^wakeline_waiters\{door="jobs"\} (\d+)', user.ask("GET", "/metrics").text, re.MULTILINE)
    return int(found[1])
