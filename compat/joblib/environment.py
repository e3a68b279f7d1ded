"""A virtual environment with the client from PyPI, kept until the requirements change."""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def ensure(home):
    """The environment's python."""
    python = home / "bin" / "python"
    installed = home / "installed"
    wanted = f"{sys.version}\n{REQUIREMENTS.read_text()}"
    if installed.is_file() and installed.read_text() == wanted:
        return python
    print(f"installing the client in {home}", flush=True)
    shutil.rmtree(home, ignore_errors=True)
    venv.create(home, with_pip=True)
    install = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*install, "--requirement", REQUIREMENTS], check=True)
    # Last: an installation that was interrupted is made anew.
    installed.write_text(wanted)
    return python
