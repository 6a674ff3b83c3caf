"""A TypeScript executor that does not look the same thing up twice: ``executor.ts`` beside this, run by Node."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from examples.scenarios.place import NotHere, Place, PromiseBroken

EXECUTOR = Path(__file__).with_name("executor.ts")
NODE = (22, 6)
"""First version of Node that runs TypeScript as it is."""


def story(place: Place) -> None:
    """Runs the executor with the place's address and token.

    Raises:
        NotHere: no Node on the PATH is new enough.
        PromiseBroken: the executor ended with an error.
    """
    node = shutil.which("node")
    if node is None:
        raise NotHere("there is no Node on the PATH")
    version = subprocess.run((node, "--version"), capture_output=True, text=True, check=True).stdout  # noqa: S603 - Node
    if tuple(map(int, re.findall(r"\d+", version)))[:2] < NODE:
        raise NotHere(f"Node is {version.strip()}; this needs v{NODE[0]}.{NODE[1]} or later")
    environment = {**os.environ, "CASEBANK_URL": place.base_url, "CASEBANK_TOKEN": place.tokens[0]}
    command = (node, "--experimental-strip-types", "--no-warnings", str(EXECUTOR))
    if subprocess.run(command, env=environment, check=False).returncode:  # noqa: S603 - Node
        raise PromiseBroken("the executor ended with the error above")
