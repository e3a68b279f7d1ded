"""Runs of pytest: some at the same time, what they say of their cases passed on as it comes."""

import os
import re
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
# What pytest itself needs, beside the packages of a client.
REQUIREMENTS = HERE / "requirements.txt"
# Most cases wait rather than work.
SIDE_BY_SIDE = ["-n", "4"]
RUNS_AT_ONCE = 2
# A whole run takes a minute or two; a run that takes so long hangs.
ENDS_WITHIN = 1200
NOTHING_COLLECTED = 5


class Run:
    """One run of the cases, with servers of its own: `serve` is overridden."""

    def __init__(self, name):
        self.name = name
        self.passed = self.failed = 0
        # Those that `serve` has started. They are stopped after it.
        self.nodes = []
        # How often the clients have sent what the servers ignore, by place and name.
        self.ignored = Counter()
        self._output = []

    def serve(self):
        """Starts the servers and calls `pytest`."""
        raise NotImplementedError

    def run(self):
        try:
            self.serve()
        except Exception as error:  # One that cannot run must not hide the others.
            self.fail(str(error))
        for node in self.nodes:
            if node.has_ended():
                self.fail("a server has ended by itself")
            self.tell(f"a server's log:\n{node.log()}")
            node.stop()
        return self

    def fail(self, text):
        self.failed += 1
        self.tell(text)

    def tell(self, text):
        """Shown if the run has failed."""
        self._output.append(text)

    def output(self):
        return "\n".join([self.name, *self._output]) if self.failed else ""

    def pytest(self, python, place, options, environment, may_be_empty=False):
        command = [python, "-m", "pytest", "-p", "pytest_cases", "-q", "--tb=short", "--show-capture=no"]
        process = subprocess.Popen(
            [*command, *options],
            cwd=place,
            env={**os.environ, **environment, "PYTHONPATH": str(HERE), "CASES_AGAINST": self.name},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        failed_before = self.failed
        late = threading.Timer(ENDS_WITHIN, process.kill)
        late.start()
        for line in process.stdout:
            self._hear(line.rstrip("\n"))
        ended = process.wait()
        late.cancel()
        # pytest itself may have failed: it could not collect, or was ended.
        if ended and self.failed == failed_before and not (ended == NOTHING_COLLECTED and may_be_empty):
            self.fail(f"pytest ended with {ended}")

    def _hear(self, line):
        if line.startswith((f"passed {self.name}: ", f"FAILED {self.name}: ")):
            if line.startswith("passed"):
                self.passed += 1
            else:
                self.failed += 1
            print(line, flush=True)
        elif line.endswith(" cases"):
            print(line, flush=True)
        else:
            self.tell(line)


def ignored_fields(node):
    """What a Wakeline counts of its tables `IGNORED`. Rows that no client has sent are 0."""
    with urllib.request.urlopen(f"{node.url}/metrics") as answer:
        text = answer.read().decode()
    found = re.findall(r"^wakeline_ignored_fields_total(\{.*\}) (\d+)$", text, re.MULTILINE)
    return {row: int(count) for row, count in found}


def run_all(runs, ignored_below=None):
    """Ends with `N passed, N failed`; returns whether any failed. A row of the servers' tables `IGNORED`
    for a path below `ignored_below` must be there for something that one of the clients sends."""
    with ThreadPoolExecutor(RUNS_AT_ONCE) as pool:
        for run in pool.map(Run.run, runs):
            if run.output():
                print(run.output(), flush=True)
    ignored = sum((run.ignored for run in runs), Counter())
    rows = {row for run in runs for row in run.ignored if ignored_below and f'of="{ignored_below}' in row}
    unused = sorted(row for row in rows if not ignored[row])
    for row in unused:
        print(f"FAILED ignored names: no client sends what this row is for: {row}", flush=True)
    passed, failed = sum(run.passed for run in runs), sum(run.failed for run in runs) + len(unused)
    print(f"{passed} passed, {failed} failed")
    return failed > 0
