"""A virtual environment for each release of the client, kept until the requirements change."""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def ensure(place, client):
    """The environment's python, with the client from PyPI."""
    home = place / client
    python = home / "bin" / "python"
    installed = home / "installed"
    wanted = f"{sys.version}\nqueen-mq=={client}\n{REQUIREMENTS.read_text()}"
    if installed.is_file() and installed.read_text() == wanted:
        return python
    print(f"installing queen-mq {client}", flush=True)
    shutil.rmtree(home, ignore_errors=True)
    venv.create(home, with_pip=True)
    install = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*install, f"queen-mq=={client}", "--requirement", REQUIREMENTS], check=True)
    # Last: an installation that was interrupted is made anew.
    installed.write_text(wanted)
    return python
