"""A virtual environment with a client from PyPI, kept until what it needs changes."""

import shutil
import subprocess
import sys
import venv


def ensure(home, requirements, *more):
    """The environment's python, with what the file requires and `more`."""
    python = home / "bin" / "python"
    installed = home / "installed"
    wanted = "\n".join([sys.version, *more, requirements.read_text()])
    if installed.is_file() and installed.read_text() == wanted:
        return python
    print(f"installing the client in {home}", flush=True)
    shutil.rmtree(home, ignore_errors=True)
    venv.create(home, with_pip=True)
    install = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*install, *more, "--requirement", requirements], check=True)
    # Last: an installation that was interrupted is made anew.
    installed.write_text(wanted)
    return python
