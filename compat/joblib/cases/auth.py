"""Users and their tokens, on a server that is not in dev mode."""

import base64
import json

import guarded
import pytest
import steps
import user as people
from user import User, done

PASSWORD = "a password of these cases"
USER = ["id", "email", "is_active", "is_superuser", "is_verified"]
# What needs a token, and how the two kinds of routes say so.
NEEDS = [
    ("POST", "/workers", "Unauthorized"),
    ("PATCH", f"/workers/{steps.NOBODY}", "Unauthorized"),
    ("DELETE", f"/workers/{steps.NOBODY}", "Unauthorized"),
    ("PUT", "/rooms/r/jobs", "Unauthorized"),
    ("POST", "/rooms/r/tasks/r:modifiers:X", "Unauthorized"),
    ("POST", "/tasks/claim", "Unauthorized"),
    ("PATCH", f"/tasks/{steps.NOBODY}", "Unauthorized"),
    ("PUT", "/rooms/r/providers", "Unauthorized"),
    ("DELETE", f"/providers/{steps.NOBODY}", "Unauthorized"),
    ("GET", "/rooms/r/providers/r:filesystem:x", "Not authenticated"),
    ("POST", f"/providers/{steps.NOBODY}/results", "Not authenticated"),
]
OPEN = ["/workers", "/rooms/r/jobs", "/rooms/r/workers", "/rooms/r/tasks", "/rooms/r/providers"]


@pytest.mark.parametrize(("method", "path", "detail"), NEEDS)
def a_request_without_a_token_is_refused(guarded_url, method, path, detail):
    _is_refused(User(guarded_url), method, path, detail)


@pytest.mark.parametrize(("method", "path", "detail"), NEEDS)
def a_request_with_a_bad_token_is_refused(guarded_url, alice, method, path, detail):
    detail = "Invalid token" if detail == "Not authenticated" else detail
    head, body, signature = alice.token.split(".")
    for token in ("junk", f"{head}.{body}.{signature[::-1]}", _unsigned(alice.token)):
        _is_refused(User(guarded_url, token), method, path, detail)


@pytest.mark.parametrize("path", OPEN)
def lists_need_no_token(guarded_url, path):
    assert User(guarded_url).get(path).status_code == 200


def a_token_of_another_scheme_is_refused(guarded_url):
    answer = User(guarded_url).post("/workers", headers={"Authorization": "Basic YTpi"})
    assert (answer.status_code, answer.json()) == (401, {"detail": "Unauthorized"})


def a_guest_has_a_token_and_an_email(guarded_url):
    made = done(User(guarded_url).ask("POST", "/v1/auth/guest"), 200)
    assert list(made) == ["access_token", "token_type", "email"]
    assert made["token_type"] == "bearer"
    assert made["email"].endswith("@guest.user")
    me = done(User(guarded_url, made["access_token"]).ask("GET", "/v1/auth/users/me"), 200)
    assert list(me) == USER
    assert (me["email"], me["is_active"], me["is_superuser"]) == (made["email"], True, False)


def in_dev_mode_every_caller_is_a_superuser(user):
    assert done(user.ask("GET", "/v1/auth/users/me"), 200)["is_superuser"] is True


def a_user_registers_and_logs_in(guarded_url):
    email = f"{steps.unique('user')}@example.com"
    answer = _register(guarded_url, email)
    assert list(done(answer, 201)) == USER
    assert (answer.json()["email"], answer.json()["is_superuser"]) == (email, False)
    answer = _login(guarded_url, email, PASSWORD)
    assert list(done(answer, 200)) == ["access_token", "token_type"]
    assert answer.json()["token_type"] == "bearer"
    assert User(guarded_url, answer.json()["access_token"]).worker()


def a_registration_cannot_set_superuser(guarded_url):
    email = f"{steps.unique('user')}@example.com"
    assert done(_register(guarded_url, email, is_superuser=True), 201)["is_superuser"] is False


def an_email_registers_once(guarded_url):
    email = f"{steps.unique('user')}@example.com"
    done(_register(guarded_url, email), 201)
    answer = _register(guarded_url, email)
    assert (answer.status_code, answer.json()) == (400, {"detail": "REGISTER_USER_ALREADY_EXISTS"})


def registering_needs_an_email_and_a_password(guarded_url):
    answer = User(guarded_url).ask("POST", "/v1/auth/register", json={})
    assert steps.is_refused_field(answer, "body", "email", kind="missing")
    assert steps.is_refused_field(answer, "body", "password", kind="missing")
    assert steps.is_refused_field(_register(guarded_url, "no address"), "body", "email")


def a_wrong_password_is_refused_like_an_unknown_email(guarded_url):
    for email in (guarded.ADMIN, f"{steps.unique('user')}@example.com"):
        answer = _login(guarded_url, email, "wrong")
        assert (answer.status_code, answer.json()) == (400, {"detail": "LOGIN_BAD_CREDENTIALS"})


def a_login_needs_both_fields(guarded_url):
    answer = User(guarded_url).ask("POST", "/v1/auth/jwt/login", data={"username": "x"})
    assert steps.is_refused_field(answer, "body", "password", kind="missing")


def the_admin_is_a_superuser_and_reads_users(admin, alice):
    me = done(alice.ask("GET", "/v1/auth/users/me"), 200)
    assert done(admin.ask("GET", "/v1/auth/users/me"), 200)["is_superuser"] is True
    assert done(admin.ask("GET", f"/v1/auth/users/{me['id']}"), 200) == me
    assert alice.ask("GET", f"/v1/auth/users/{me['id']}").status_code == 403
    assert admin.ask("GET", f"/v1/auth/users/{steps.NOBODY}").status_code == 404


def a_token_has_its_user_and_expiry(alice):
    claims = _claims(alice.token)
    assert claims["aud"] == ["fastapi-users:auth"]
    assert claims["sub"] == done(alice.ask("GET", "/v1/auth/users/me"), 200)["id"]
    assert isinstance(claims["exp"], int)
    head = json.loads(_decoded(alice.token.split(".")[0]))
    assert head == {"alg": "HS256", "typ": "JWT"}


@pytest.mark.alone
def a_token_expires(deployment, room):
    url = deployment.node(admin=True, token_lifetime=2).url
    user = people.guest(url)
    steps.until("the end of the token", lambda: user.post("/workers").status_code == 401)
    provider = {"room_id": room, "full_name": f"{room}:filesystem:x"}
    answer = user.read(provider)
    assert (answer.status_code, answer.json()) == (401, {"detail": "Invalid token"})


def _is_refused(user, method, path, detail):
    # A body that would be taken, so that only the token is wrong.
    options = {"json": {}} if method in ("PUT", "POST", "PATCH") else {}
    answer = user.ask(method, f"/v1/joblib{path}", headers={"X-Request-Hash": "x"}, **options)
    assert (answer.status_code, answer.json()) == (401, {"detail": detail})
    assert answer.headers["content-type"] == "application/json"


def _register(url, email, **more):
    return User(url).ask("POST", "/v1/auth/register", json={"email": email, "password": PASSWORD, **more})


def _login(url, email, password):
    return User(url).ask("POST", "/v1/auth/jwt/login", data={"username": email, "password": password})


def _unsigned(token):
    head = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').rstrip(b"=").decode()
    return f"{head}.{token.split('.')[1]}."


def _claims(token):
    return json.loads(_decoded(token.split(".")[1]))


def _decoded(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def a_password_may_be_short_on_loopback(guarded_url):
    nobody, email = people.User(guarded_url), f"{steps.unique('short')}@example.com"
    account = {"email": email, "password": "x"}
    done(nobody.ask("POST", "/v1/auth/register", json=account), 201)
    form = {"username": email, "password": "x"}
    assert done(nobody.ask("POST", "/v1/auth/jwt/login", data=form), 200)["access_token"]


@pytest.mark.alone
@pytest.mark.wakeline_only
def a_password_has_as_many_characters_as_the_settings_say(deployment):
    nobody = people.User(deployment.node(admin=True, flags=["--jobs-min-password", "8"]).url)
    account = {"email": "ada@example.com", "password": "seven c"}
    refused = nobody.ask("POST", "/v1/auth/register", json=account)
    assert refused.status_code == 422
    assert refused.json()["detail"][0]["msg"] == "String should have at least 8 characters"
