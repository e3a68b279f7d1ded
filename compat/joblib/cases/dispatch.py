"""Who is asked, and when again: what upstream loses for as long as it holds its mark."""

import pytest
import steps
from zndraw_joblib import request_hash

pytestmark = pytest.mark.wakeline_only


def a_provider_that_joins_gets_the_requests_in_flight(user, room, listen, aside):
    """Upstream sends a request once, to the workers that are connected: a read right after a registration may reach none."""
    provider = user.provider(room)
    reading = aside(user.read, provider, {"path": "/x"}, wait=30)
    # Once this has been answered with nothing, the other is held too.
    assert user.read(provider, {"path": "/x"}, wait=1).status_code == 504
    serving = listen(user)
    serving.serve(provider)
    assert serving.expect("provider_request")["request_id"] == request_hash({"path": "/x"})
    user.upload(provider, {"path": "/x"}, b"[1]")
    assert reading.result(steps.PATIENCE).json() == [1]


def when_a_provider_leaves_the_next_one_gets_its_requests(user, room, listen, aside):
    provider, first = user.provider(room), listen(user)
    first.serve(provider)
    reading = aside(user.read, provider, {"path": "/x"}, wait=30)
    first.expect("provider_request")
    first.close()
    second = listen(user)
    second.serve(provider)
    second.expect("provider_request")
    user.upload(provider, {"path": "/x"}, b"[1]")
    assert reading.result(steps.PATIENCE).json() == [1]


def a_provider_that_registers_again_gets_the_open_requests_again(user, room, listen):
    """Upstream serves what the one before it had uploaded, for five minutes."""
    provider = user.provider(room)
    user.upload(provider, {}, b'"old"')
    assert user.read(provider, wait=0).json() == "old"
    user.delete(f"/providers/{provider['id']}")
    again, serving = user.provider(room), listen(user)
    serving.serve(again)
    assert user.read(again, wait=0).status_code == 504
    serving.expect("provider_request")


def a_provider_that_another_worker_took_over_gets_the_open_requests_again(user, room):
    provider = user.provider(room)
    user.upload(provider, {}, b'"old"')
    again = user.provider(room)
    assert again["id"] == provider["id"]
    assert again["worker_id"] != provider["worker_id"]
    assert user.read(again, wait=0).status_code == 504
