"""A plugin for pytest: says how many cases there are and how each ended, a line for each."""

import os

import pytest

# What they run against, such as "2.6.0 on sqlite".
AGAINST = os.environ.get("CASES_AGAINST", "")


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    # Workers hand their reports to the process that started them; that one says it.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Lines(config))


def keep(config, items, is_for_this_run):
    """Not skipped: a case that is not for this run is no case of it."""
    other = [item for item in items if not is_for_this_run(item)]
    if other:
        config.hook.pytest_deselected(items=other)
        items[:] = [item for item in items if item not in other]


class Lines:
    def __init__(self, config):
        self._say = config.pluginmanager.get_plugin("terminalreporter").write_line
        self._is_counted = False
        self._took = {}
        self._failed = set()

    def pytest_collection_finish(self, session):
        self._count(session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node, ids):
        self._count(ids)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report):
        # No letters between the lines.
        if report.passed:
            return ("passed" if report.when == "call" else "", "", "")
        if report.failed:
            return ("failed" if report.when == "call" else "error", "", "")

    def pytest_runtest_logreport(self, report):
        case = report.nodeid
        self._took[case] = self._took.get(case, 0) + report.duration
        if report.failed:
            self._failed.add(case)
        if report.when == "teardown" and not report.skipped:
            how = "FAILED" if case in self._failed else "passed"
            self._say(f"{how} {AGAINST}: {case} [{self._took[case]:.1f} s]")

    def _count(self, cases):
        # Every worker finds the same ones.
        if not self._is_counted and cases:
            self._is_counted = True
            self._say(f"{len(cases)} cases")
