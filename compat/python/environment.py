"""A virtual environment with packages from PyPI, kept until what it needs changes."""

import shutil
import subprocess
import sys
import venv


def ensure(home, requirements, *more):
    """The environment's python, with what the files require and `more`."""
    python = home / "bin" / "python"
    installed = home / "installed"
    wanted = "\n".join([sys.version, *more, *(file.read_text() for file in requirements)])
    if installed.is_file() and installed.read_text() == wanted:
        return python
    print(f"installing packages in {home}", file=sys.stderr, flush=True)
    shutil.rmtree(home, ignore_errors=True)
    venv.create(home, with_pip=True)
    install = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    files = [option for file in requirements for option in ("--requirement", file)]
    subprocess.run([*install, *more, *files], check=True)
    # Last: an installation that was interrupted is made anew.
    installed.write_text(wanted)
    return python
