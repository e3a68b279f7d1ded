"""ZnDraw's own client, `zndraw` 0.7.0a8: the class `ZnDraw` and what it ships."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import user as people
from user import done

PYTHON = os.environ.get("JOBLIB_ZNDRAW")
CLIENT = Path(__file__).resolve().parents[1] / "zndraw_client.py"
# Its modules take seconds to import, and two cores may be compiling beside it.
LONGEST = 120

pytestmark = [
    pytest.mark.wakeline_only,
    pytest.mark.skipif(PYTHON is None, reason="compat/joblib/run --zndraw installs it"),
]


class Work:
    def __init__(self, what, url, room):
        arguments = [PYTHON, CLIENT, what, url, room]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self._process = subprocess.Popen(arguments, text=True, **pipes)

    def until(self, word):
        """What it writes with this word."""
        for line in self._process.stdout:
            told = json.loads(line)
            if told["is"] == word:
                return told
        raise AssertionError(self._process.communicate(timeout=LONGEST)[1][-3000:])

    def go_on(self):
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def end(self):
        told = self.until("done")
        _, errors = self._process.communicate(timeout=LONGEST)
        assert self._process.returncode == 0, errors[-3000:]
        return told


def a_client_extends_a_room_and_others_know_its_length(url, room):
    assert Work("extend", url, room).end()["user"].endswith("@guest.user")


def a_clients_length_is_right_however_many_append(url, room):
    Work("together", url, room).end()


def a_file_is_loaded_by_the_shipped_action(url, room):
    Work("load_file", url, room).end()


def a_mounted_source_is_read_by_another_client(url, room):
    work = Work("mount", url, room)
    assert "read-only" in work.until("refused")["text"]
    work.end()


def a_locked_room_refuses_other_users(guarded_url, room):
    Work("lock", guarded_url, room).end()


@pytest.mark.alone
def messages_are_listed_also_after_a_restart(deployment, room, proxy):
    node = deployment.node()
    # The server's port is another one after the restart.
    cable = proxy(node.url)
    work = Work("chat", cable.url, room)
    work.until("pause")
    node.stop()
    cable.mend(node.start().url)
    work.go_on()
    work.end()


def a_progress_bar_is_shown_to_the_room(url, user, room, listen):
    work = Work("progress", url, room)
    work.until("pause")
    # The room was created by the client; who joins later gets its trackers.
    listener = listen(user)
    joined = listener.enter(room)
    (tracker,) = joined["progress_trackers"].values()
    assert tracker["description"] == "three steps" and tracker["n"] == 0
    for _ in range(3):
        work.go_on()
    work.end()
    assert listener.all("progress_update")[-1]["n"] == 3
    listener.expect("progress_complete", progress_id=tracker["progress_id"])


@pytest.mark.alone
@pytest.mark.parametrize("end", ["stop", "kill"])
def an_upload_goes_on_after_a_restart_of_the_server(deployment, room, proxy, end):
    node = deployment.node()
    cable = proxy(node.url)
    work = Work("restart", cable.url, room)
    work.until("pause")
    getattr(node, end)()
    cable.mend(node.start().url)
    work.go_on()
    work.end()
    shown = done(people.guest(node.url).ask("GET", f"/v1/rooms/{room}"), 200)
    assert shown["frame_count"] == 2_500
