"""A host of the real zndraw-joblib: its router, zndraw-auth and zndraw-socketio in one FastAPI.

It has only what zndraw-joblib leaves to its host: users and tokens, the result backend on Redis,
the Socket.IO handlers, the sweeper. Its own settings come from the environment
(ZNDRAW_JOBLIB_*, ZNDRAW_AUTH_*); without ZNDRAW_AUTH_DEFAULT_ADMIN_EMAIL every user is a superuser.
"""

import argparse
import asyncio
import secrets
import time
import uuid
from contextlib import asynccontextmanager, suppress
from typing import Annotated

import jwt
import redis.asyncio
import socketio
import uvicorn
from fastapi import Depends, FastAPI
from fastapi_users.jwt import decode_jwt
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import async_sessionmaker
from zndraw_auth import (
    AuthSettings,
    Base,
    UserCreate,
    UserRead,
    UserUpdate,
    auth_backend,
    create_engine_for_url,
    ensure_default_admin,
    fastapi_users,
)
from zndraw_auth.users import UserManager, get_jwt_strategy, get_user_manager
from zndraw_joblib import (
    JobLibSettings,
    JoinJobRoom,
    JoinProviderRoom,
    LeaveJobRoom,
    LeaveProviderRoom,
    ProblemException,
    get_result_backend,
    problem_exception_handler,
    router,
    run_sweeper,
)
from zndraw_socketio import wrap

NOTIFY = "notify:"
# Each waiter has a connection of its own, and the default limit of this client is a hundred.
CONNECTIONS = 100_000


class RedisResults:
    """zndraw-joblib's ResultBackend: SET NX for what is in flight, one subscription per waiter."""

    def __init__(self, url):
        self._redis = redis.asyncio.from_url(url, max_connections=CONNECTIONS)

    async def store(self, key, data, ttl):
        await self._redis.set(key, data, ex=ttl)

    async def get(self, key):
        return await self._redis.get(key)

    async def delete(self, key):
        await self._redis.delete(key)

    async def acquire_inflight(self, key, ttl):
        return bool(await self._redis.set(key, b"1", nx=True, ex=ttl))

    async def release_inflight(self, key):
        await self._redis.delete(key)

    async def notify_key(self, key):
        await self._redis.publish(NOTIFY + key, b"1")

    async def wait_for_key(self, key, timeout):
        deadline = time.monotonic() + timeout
        async with self._redis.pubsub() as waiter:
            await waiter.subscribe(NOTIFY + key)
            # After the subscription: a result that was stored before is not announced again.
            found = await self.get(key)
            # For the confirmation of the subscription get_message returns None.
            while found is None and (left := deadline - time.monotonic()) > 0:
                if await waiter.get_message(ignore_subscribe_messages=True, timeout=left):
                    found = await self.get(key)
            return found

    async def close(self):
        await self._redis.aclose()


class RoomJoin(BaseModel):
    room_id: str
    client_type: str = "frontend"


class ChatMessage(BaseModel):
    content: str


def sockets(url, auth):
    """Socket.IO as ZnDraw has it: the token in the connect payload, rooms by four plain events."""
    server = wrap(socketio.AsyncServer(async_mode="asgi", client_manager=socketio.AsyncRedisManager(url)))

    @server.on("connect")
    async def connect(sid, environ, payload=None):
        try:
            token = (payload or {}).get("token") or ""
            decode_jwt(token, auth.secret_key.get_secret_value(), ["fastapi-users:auth"])
        except jwt.PyJWTError:
            # Python's own error, as in ZnDraw: the client then reads a text without a reason.
            raise ConnectionRefusedError from None

    @server.on(RoomJoin)
    async def room_join(sid, data: RoomJoin):
        await server.enter_room(sid, f"room:{data.room_id}")
        if data.client_type == "frontend":
            await server.enter_room(sid, "room:@global")
        return {
            "room_id": data.room_id,
            "session_id": sid,
            "step": 0,
            "frame_count": 0,
            "locked": False,
            "camera_key": None,
            "default_camera": None,
            "progress_trackers": {},
        }

    @server.on(JoinJobRoom)
    async def join_job_room(sid, data: JoinJobRoom):
        await server.enter_room(sid, f"jobs:{data.job_name}")

    @server.on(LeaveJobRoom)
    async def leave_job_room(sid, data: LeaveJobRoom):
        await server.leave_room(sid, f"jobs:{data.job_name}")

    @server.on(JoinProviderRoom)
    async def join_provider_room(sid, data: JoinProviderRoom):
        await server.enter_room(sid, f"providers:{data.provider_name}")

    @server.on(LeaveProviderRoom)
    async def leave_provider_room(sid, data: LeaveProviderRoom):
        await server.leave_room(sid, f"providers:{data.provider_name}")

    return server


async def guest(
    users: Annotated[UserManager, Depends(get_user_manager)],
    strategy: Annotated[object, Depends(get_jwt_strategy)],
):
    email = f"{uuid.uuid4().hex[:8]}@guest.user"
    user = await users.create(UserCreate(email=email, password=secrets.token_hex()))
    return {"access_token": await strategy.write_token(user), "token_type": "bearer", "email": email}


async def chat_message(room_id: str, message: ChatMessage):
    return {"room_id": room_id, "content": message.content}


def application(database, redis_url):
    auth, jobs = AuthSettings(), JobLibSettings()
    engine = create_engine_for_url(database)
    sessions = async_sessionmaker(engine, expire_on_commit=False)
    results = RedisResults(redis_url)
    server = sockets(redis_url, auth)

    async def session():
        async with sessions() as session:
            yield session

    @asynccontextmanager
    async def lifespan(app):
        async with engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        async with sessions() as session_:
            await ensure_default_admin(session_, auth)
        sweeper = asyncio.create_task(run_sweeper(session, jobs, server))
        yield
        sweeper.cancel()
        with suppress(asyncio.CancelledError):
            await sweeper
        await results.close()
        await engine.dispose()

    app = FastAPI(lifespan=lifespan)
    app.state.engine, app.state.session_maker = engine, sessions
    app.state.auth_settings, app.state.joblib_settings = auth, jobs
    app.state.tsio = server
    app.dependency_overrides[get_result_backend] = lambda: results
    app.add_exception_handler(ProblemException, problem_exception_handler)
    app.include_router(router)
    app.include_router(fastapi_users.get_auth_router(auth_backend), prefix="/v1/auth/jwt")
    app.include_router(fastapi_users.get_register_router(UserRead, UserCreate), prefix="/v1/auth")
    app.include_router(fastapi_users.get_users_router(UserRead, UserUpdate), prefix="/v1/auth/users")
    app.post("/v1/auth/guest")(guest)
    app.post("/v1/rooms/{room_id}/chat/messages", status_code=201)(chat_message)
    return socketio.ASGIApp(server, app)


def driver(url):
    for plain in ("postgres://", "postgresql://"):
        if url.startswith(plain):
            return "postgresql+asyncpg://" + url.removeprefix(plain)
    return url.replace("sqlite://", "sqlite+aiosqlite://", 1)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--port", type=int, required=True, help="on 127.0.0.1; 0 for any free one")
    arguments.add_argument("--database", required=True, help="postgres://… or sqlite:////path; it must be there")
    arguments.add_argument("--redis", required=True, help="redis://…")
    given = arguments.parse_args()
    # The parent process reads the address from its line about the port, and that it is ready.
    uvicorn.run(
        application(driver(given.database), given.redis),
        host="127.0.0.1",
        port=given.port,
        log_level="info",
        access_log=False,
        timeout_graceful_shutdown=1,
    )


if __name__ == "__main__":
    main()
