"""A copy of this repository's packages, in which a scripted agent reads, searches and changes files."""

import random
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGES = ("policy", "retrieval", "writer")
"""Packages that are copied whole; from ``app``, the largest, only routes and schemas are."""
ROOT = Path(__file__).parents[2]
TIMEOUT_S = 20
MOST_CHARS = 60_000


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The answer of a tool."""

    output: str
    status: str = "ok"


class Scratch:
    """The copy, restored for each run."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "repository"
        for name in (*PACKAGES, "app/routes", "app/schemas"):
            shutil.copytree(ROOT / name, self.root / name, ignore=shutil.ignore_patterns("__pycache__"))
        self._texts = {path: path.read_text() for path in sorted(self.root.rglob("*.py"))}
        self.files = [str(path.relative_to(self.root)) for path, text in self._texts.items() if len(text) > 500]  # noqa: PLR2004 - not the empty ones

    def restore(self) -> None:
        """Restores every file, and deletes new ones."""
        for path in [path for path in self.root.rglob("*") if path.is_file() and path not in self._texts]:
            path.unlink()
        for path, text in self._texts.items():
            if not path.exists() or path.read_text() != text:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)

    def _text(self, path: str) -> str | None:
        """Returns the current text of a file, or None if it is gone."""
        file = self.root / path
        return file.read_text() if file.exists() else None

    def change(self, path: str, rng: random.Random) -> None:
        """Changes a file without a call of the agent."""
        text = self._text(path)
        if text is not None:
            (self.root / path).write_text(f"{text}\n# seen by {rng.randrange(10**6)}\n")

    def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Runs the tool, and returns its answer."""
        if tool == "bash":
            return self._shell(arguments["command"])
        if tool == "Grep":
            where = arguments.get("path", ".")
            return self._shell(f"grep -rnE '{arguments['pattern']}' {where} --include='*.py' | sort")
        path = self.root / arguments.get("file_path", arguments.get("path", ""))
        if not path.is_file():
            return ToolAnswer(f"Error: {path.name} does not exist", "error")
        text = path.read_text()
        if tool == "Edit":
            path.write_text(text.replace(arguments["old_string"], arguments["new_string"], 1))
            return ToolAnswer("The file was edited.")
        return ToolAnswer(_numbered(text, arguments) if tool == "Read" else text)

    def _shell(self, line: str) -> ToolAnswer:
        done = subprocess.run(  # noqa: S602 - the lines are the agent's script, in a folder of its own
            line, shell=True, cwd=self.root, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        return ToolAnswer((done.stdout + done.stderr)[:MOST_CHARS], "ok" if done.returncode in {0, 1} else "error")


def _numbered(text: str, arguments: Mapping[str, Any]) -> str:
    """Returns the lines in the form of a reading tool, each with its number."""
    first = arguments.get("offset", 1)
    lines = text.splitlines()[first - 1 :][: arguments.get("limit", 1_000_000)]
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, start=first))
