"""An environment of its own, elsewhere, with casebank from a wheel: what somebody has who installs it."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.paths import ROOT

CONTAINERFILE = (ROOT / "deploy" / "Containerfile").read_text()
OFFLINE = {
    "PIP_NO_INDEX": "1",
    "PIP_NO_DEPS": "1",
    "PIP_NO_BUILD_ISOLATION": "0",  # so pip reads it: no isolation
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_COMPILE": "0",  # most modules are never imported
}
"""Makes pip take nothing from an index: the dependencies are those that are here."""


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} (.*)$", CONTAINERFILE, re.MULTILINE)


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    whole = os.environ | environment
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={name: value for name, value in whole.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the files that git knows, built by the image's own command; the processes of the tests share it."""
    own = tmp_path_factory.getbasetemp()
    wheels = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "wheels"
    with wheels.with_suffix(".lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not wheels.exists():
            clone, made = [tmp_path_factory.mktemp(name) for name in ("clone", "wheels")]
            for name in run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines():
                if (ROOT / name).is_file():
                    (clone / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(ROOT / name, clone / name)
            build = instructions("RUN")[0].replace("/wheels", str(made))
            run("/bin/sh", "-euc", f"{sys.executable} -m {build}", cwd=clone, **OFFLINE)
            shutil.rmtree(clone)
            made.rename(wheels)
    (wheel,) = wheels.iterdir()
    return wheel


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment, with casebank from the wheel and the dependencies that are here."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", wheel, cwd=home, **OFFLINE)
    libraries = sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)})
    # in an environment with an index pip brings the dependencies; no .pth of that folder is read, so no clone comes in
    Path(libraries, "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / "bin"
