"""ZnDraw's own client at work: `zndraw_client.py <work> <url> <room> [<email> <password>]`.

It runs in an environment of its own, because `zndraw` brings its own `zndraw_joblib`. Each line that it
writes is JSON. Where the case has something to do meanwhile, it writes "pause" and waits for a line.
"""

import json
import sys
import tempfile
import threading
import time
from pathlib import Path

import ase
import ase.io
import fsspec
from zndraw import ZnDraw
from zndraw.exceptions import RoomLockedError
from zndraw.tqdm import ZnDrawTqdm

PATIENCE = 30


def say(word, **values):
    print(json.dumps({"is": word, **values}), flush=True)


def pause():
    say("pause")
    sys.stdin.readline()


def molecules(count):
    return [ase.Atoms("H2", positions=[(0, 0, 0), (0, 0, 0.5 + number / count)]) for number in range(count)]


def until(what, check):
    end = time.monotonic() + PATIENCE
    while not check():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def refused(error, action):
    try:
        action()
    except error as reason:
        return str(reason)
    raise AssertionError("it was not refused")


def extend(url, room):
    vis = ZnDraw(url=url, room=room)
    other = ZnDraw(url=url, room=room)
    other.connect()
    wanted = molecules(2_500)
    vis.extend(wanted)
    until("the other client's length", lambda: len(other) == 2_500)
    assert other[2_499] == wanted[2_499] and other[1_000] == wanted[1_000]
    del vis[0]
    until("the other client's length", lambda: len(other) == 2_499)
    say("done", user=vis.user)


def together(url, room):
    """The length that a client knows from events is right, however many append at once."""
    watching = ZnDraw(url=url, room=room)
    watching.connect()
    clients = [ZnDraw(url=url, room=room) for _ in range(8)]
    frame = molecules(1)[0]
    for step in range(1, 11):
        threads = [threading.Thread(target=client.append, args=[frame]) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        until("the length", lambda: watching.cached_length == 8 * step)
        # No older event comes behind it.
        time.sleep(0.05)
        assert watching.cached_length == 8 * step, (watching.cached_length, 8 * step)
    say("done")


def load_file(url, room):
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "molecules.xyz"
        ase.io.write(path, molecules(20), format="extxyz")
        serving = ZnDraw(url=url, room=room, polling_interval=0.5)
        serving.register_fs(fsspec.filesystem("file"), name="local")
        asking = ZnDraw(url=url, room=room)
        name = f"{room}:filesystem:local"
        task = asking.run(f"{room}:modifiers:LoadFile", provider_name=name, path=str(path))
        task.wait(timeout=PATIENCE, poll=0.05)
        assert task.status == "completed", task.fetch()
        assert len(asking) == 20
        serving.disconnect()
    say("done")


def mount(url, room):
    source = molecules(30)
    vis = ZnDraw(url=url, room=room)
    vis.mount(source)
    other = ZnDraw(url=url, room=room)
    assert len(other) == 30
    assert other[7].positions.tolist() == source[7].positions.tolist()
    assert len(other[3:9]) == 6
    say("refused", text=refused(Exception, lambda: other.append(source[0])))
    vis.unmount()
    until("an empty room", lambda: len(other) == 0)
    say("done")


def lock(url, room):
    mine, others = ZnDraw(url=url, room=room), ZnDraw(url=url, room=room)
    mine.append(molecules(1)[0])
    mine.locked = True
    assert others.locked
    for edit in [
        lambda: others.append(molecules(1)[0]),
        lambda: others.extend(molecules(3)),
        lambda: others.__setitem__(0, molecules(1)[0]),
        lambda: others.__delitem__(0),
        lambda: setattr(others, "locked", False),
    ]:
        refused(RoomLockedError, edit)
    mine.append(molecules(1)[0])
    mine.locked = False
    others.append(molecules(1)[0])
    assert len(mine) == 3
    say("done")


def chat(url, room):
    vis = ZnDraw(url=url, room=room)
    for number in range(3):
        vis.chat.send(f"message {number}")
    assert len(vis.chat) == 3
    assert [message.content for message in vis.chat] == ["message 0", "message 1", "message 2"]
    assert vis.chat[-1].email == vis.user
    pause()
    assert [message.content for message in vis.chat] == ["message 0", "message 1", "message 2"]
    say("done")


def progress(url, room):
    vis = ZnDraw(url=url, room=room)
    for _ in ZnDrawTqdm(range(3), vis=vis, description="three steps", mininterval=0):
        pause()
    say("done")


def restart(url, room):
    """The server restarts in the middle of an upload, which goes on."""

    def frames():
        for number, molecule in enumerate(molecules(2_500)):
            if number == 1_200:
                pause()
            yield molecule

    vis = ZnDraw(url=url, room=room)
    vis.extend(frames())
    assert len(vis) == 2_500
    say("done")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
