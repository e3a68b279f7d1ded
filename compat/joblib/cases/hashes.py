"""What a read asks the provider: its parameters in one form, and their hash."""

import json

import pytest
import steps
from zndraw_joblib import request_hash

EMPTY = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
QUERIES = [
    ("", EMPTY, "{}"),
    ("path=/x", "3dac3d9396c816b7e4926c7c4b8f17dd0e6c5a306b4362f05218096095062dd2", '{"path":"/x"}'),
    (
        "path=/%C3%A9&b=2",
        "f4b989626ef40752331c8dd29786000d71d0f3747501d6141e1ebd2cf508c7c1",
        r'{"b":"2","path":"/\u00e9"}',
    ),
    ("index=7", "b2388f49ccc90b19f0ee3361da728685bdd1822e997718d2d47d421aaa9657ae", '{"index":"7"}'),
    (
        "q=%F0%9F%98%80%20%7F%22%5C",
        "54a51ceff61b2ac2ca8535ad01ab5f06f5781edc5c4fd33caad9b26880f5c4a1",
        r'{"q":"\ud83d\ude00 \u007f\"\\"}',
    ),
]
FORMS = [
    # Duplicate keys: the last wins.
    ("b=1&a=3&b=2", '{"a":"3","b":"2"}'),
    ("b=1&b=", '{"b":""}'),
    ("q=a+b", '{"q":"a b"}'),
    ("q=a%2Bb", '{"q":"a+b"}'),
    ("q", '{"q":""}'),
    ("q=&r", '{"q":"","r":""}'),
    ("q=1;r=2", '{"q":"1;r=2"}'),
    ("q=a=b", '{"q":"a=b"}'),
    ("=x", '{"":"x"}'),
    ("q=%FF", r'{"q":"\ufffd"}'),
    ("q=%0A%0D%09%08%0C%01", r'{"q":"\n\r\t\b\f\u0001"}'),
    ("q=/%2F", '{"q":"//"}'),
    ("n=1&t=true&z=null", '{"n":"1","t":"true","z":"null"}'),
    ("%C3%A9=1&z=2&Z=3&%F0%9F%98%80=4&%EF%BF%BD=5", r'{"Z":"3","z":"2","\u00e9":"1","\ufffd":"5","\ud83d\ude00":"4"}'),
    ("q=%zz%4", '{"q":"%zz%4"}'),
    ("q=%00", r'{"q":"\u0000"}'),
]


@pytest.mark.parametrize(("query", "digest", "params"), QUERIES)
def the_hash_is_that_of_the_sorted_ascii_json(user, room, listen, query, digest, params):
    assert request_hash(json.loads(params)) == digest
    assert _next_request(user, room, listen, query) == {"request_id": digest, "params": params}


@pytest.mark.parametrize(("query", "params"), FORMS)
def parameters_are_texts_and_the_last_of_each_name_is_used(user, room, listen, query, params):
    asked = _next_request(user, room, listen, query)
    assert asked["params"] == params
    assert asked["request_id"] == request_hash(json.loads(params))


@pytest.mark.parametrize(("query", "digest", "params"), QUERIES)
def a_result_uploaded_for_the_hash_answers_the_read(user, room, query, digest, params):
    provider = user.provider(room)
    steps.is_empty(user.upload(provider, digest, b"[1]"))
    answer = user.get(f"/rooms/{room}/providers/{provider['full_name']}?{query}", headers={"Prefer": "wait=0"})
    assert answer.content == b"[1]"


def the_order_of_parameters_does_not_matter(user, room):
    provider = user.provider(room)
    user.upload(provider, {"a": "1", "b": "2"}, b"[1]")
    for query in ("a=1&b=2", "b=2&a=1", "b=3&a=1&b=2"):
        answer = user.get(f"/rooms/{room}/providers/{provider['full_name']}?{query}", headers={"Prefer": "wait=0"})
        assert answer.content == b"[1]"


def _next_request(user, room, listen, query):
    provider, serving = user.provider(room), listen(user)
    serving.serve(provider)
    user.get(f"/rooms/{room}/providers/{provider['full_name']}?{query}", headers={"Prefer": "wait=0"})
    request = serving.expect("provider_request")
    assert list(request) == ["request_id", "provider_name", "params"]
    assert request.pop("provider_name") == provider["full_name"]
    return request
