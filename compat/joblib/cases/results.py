"""Results: uploaded by the provider, kept for a while, served as they are."""

import os

import pytest
import steps
import user as people
from zndraw_joblib import request_hash


def a_result_may_be_uploaded_before_any_read(user, room):
    provider = user.provider(room)
    assert steps.is_empty(user.upload(provider, {"path": "/"}, b'{"a": [1, 2]}'))
    answer = user.read(provider, {"path": "/"}, wait=0)
    assert (answer.status_code, answer.content) == (200, b'{"a": [1, 2]}')


def bytes_are_served_unchanged(user, room):
    provider = user.provider(room, content_type="application/x-msgpack")
    content = bytes(range(256)) * 3
    user.upload(provider, {}, content)
    answer = user.read(provider, wait=0)
    assert answer.content == content
    assert answer.headers["content-type"] == "application/x-msgpack"
    assert answer.headers["content-length"] == "768"


def megabytes_are_served_unchanged(user, room):
    provider = user.provider(room, content_type="application/octet-stream")
    content = os.urandom(5 << 20)
    assert steps.is_empty(user.upload(provider, {}, content))
    assert user.read(provider, wait=0).content == content


def an_empty_body_is_a_result(user, room):
    provider = user.provider(room, content_type="text/plain")
    user.upload(provider, {}, b"")
    answer = user.read(provider, wait=0)
    assert (answer.status_code, answer.content) == (200, b"")


def a_text_type_is_served_with_its_charset(user, room):
    provider = user.provider(room, content_type="text/plain")
    user.upload(provider, {}, "ä".encode())
    answer = user.read(provider, wait=0)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text == "ä"


def the_type_of_the_upload_does_not_matter(user, room):
    provider = user.provider(room)
    user.upload(provider, {}, b"[1]", headers={"Content-Type": "image/png"})
    assert user.read(provider, wait=0).headers["content-type"] == "application/json"


def a_result_that_is_no_json_is_served_unchanged(user, room):
    provider = user.provider(room)
    user.upload(provider, {}, b"{no json")
    assert user.read(provider, wait=0).content == b"{no json"


def a_newer_result_replaces_the_older(user, room):
    provider = user.provider(room)
    for content in (b"1", b"2"):
        user.upload(provider, {}, content)
        assert user.read(provider, wait=0).content == content


def any_text_may_stand_for_the_hash(user, room, listen):
    provider, watching = user.provider(room), listen(user, room)
    assert steps.is_empty(user.upload(provider, "not a hash", b"1"))
    assert watching.expect("provider_result_ready")["request_hash"] == "not a hash"


def the_hash_is_needed(user, room):
    provider = user.provider(room)
    answer = user.post(f"/providers/{provider['id']}/results", content=b"[1]")
    assert answer.json()["detail"] == [
        {"type": "missing", "loc": ["header", "x-request-hash"], "msg": "Field required", "input": None}
    ]
    assert answer.status_code == 422


def a_result_of_an_unknown_provider_is_refused(user):
    answer = user.upload({"id": steps.NOBODY}, {}, b"x")
    detail = f"Provider '{steps.NOBODY}' not found"
    assert steps.is_problem(answer, 404, "provider-not-found", "Not Found", detail)
    assert steps.is_refused_field(user.upload({"id": "x"}, {}, b"x"), "path", "provider_id", kind="uuid_parsing")


def an_upload_to_any_hash_of_one_provider_leaves_others_alone(user, room):
    one, two = user.provider(room, "one"), user.provider(room, "two")
    user.upload(one, {}, b"1")
    assert user.read(two, wait=0).status_code == 504


@pytest.mark.alone
def a_result_is_requested_again_after_its_time(deployment, room, listen):
    user = people.guest(deployment.node(result_ttl=1).url)
    provider, serving = user.provider(room), listen(user)
    serving.serve(provider)
    user.upload(provider, {}, b"1")
    # The upload is not there any more, or the read would be answered.
    steps.until("the end of the result", lambda: user.read(provider, wait=0).status_code == 504)
    assert serving.expect("provider_request")["request_id"] == request_hash({})


@pytest.mark.alone
def an_unanswered_request_is_sent_again_after_its_time(deployment, room, listen):
    user = people.guest(deployment.node(inflight_ttl=1).url)
    provider, serving = user.provider(room), listen(user)
    serving.serve(provider)

    def asked_twice():
        assert user.read(provider, wait=0).status_code == 504
        return len(serving.all("provider_request")) >= 2

    steps.until("the question again", asked_twice)
