"""A copy of this very repository's packages in which a scripted agent reads, searches and changes files for real."""

import random
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGES = ("policy", "retrieval", "writer")
"""What is copied: of ``app`` the routes and schemas alone, for it is the largest and the agent needs no more."""
ROOT = Path(__file__).parents[2]
TIMEOUT_S = 20
MOST_CHARS = 60_000


@dataclass(frozen=True, slots=True)
class Answered:
    """What a tool answered."""

    output: str
    status: str = "ok"


class Scratch:
    """The copy, which every run finds as it was."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "repository"
        for name in (*PACKAGES, "app/routes", "app/schemas"):
            shutil.copytree(ROOT / name, self.root / name, ignore=shutil.ignore_patterns("__pycache__"))
        self._texts = {path: path.read_text() for path in sorted(self.root.rglob("*.py"))}
        self.files = [str(path.relative_to(self.root)) for path, text in self._texts.items() if len(text) > 500]  # noqa: PLR2004 - not the empty ones

    def restore(self) -> None:
        """Makes every file what it was, and takes away what was added."""
        for path in [path for path in self.root.rglob("*") if path.is_file() and path not in self._texts]:
            path.unlink()
        for path, text in self._texts.items():
            if not path.exists() or path.read_text() != text:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)

    def _text(self, path: str) -> str | None:
        """Returns what a file says now; None: it is gone."""
        file = self.root / path
        return file.read_text() if file.exists() else None

    def change(self, path: str, rng: random.Random) -> None:
        """Changes a file behind the agent's back."""
        text = self._text(path)
        if text is not None:
            (self.root / path).write_text(f"{text}\n# seen by {rng.randrange(10**6)}\n")

    def call(self, tool: str, given: Mapping[str, Any]) -> Answered:
        """Does what the tool does, and returns its answer."""
        if tool == "bash":
            return self._shell(given["command"])
        if tool == "Grep":
            where = given.get("path", ".")
            return self._shell(f"grep -rnE '{given['pattern']}' {where} --include='*.py' | sort")
        path = self.root / given.get("file_path", given.get("path", ""))
        if not path.is_file():
            return Answered(f"Error: {path.name} does not exist", "error")
        text = path.read_text()
        if tool == "Edit":
            path.write_text(text.replace(given["old_string"], given["new_string"], 1))
            return Answered("The file was edited.")
        return Answered(_numbered(text, given) if tool == "Read" else text)

    def _shell(self, line: str) -> Answered:
        done = subprocess.run(  # noqa: S602 - the lines are the agent's script, in a folder of its own
            line, shell=True, cwd=self.root, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        return Answered((done.stdout + done.stderr)[:MOST_CHARS], "ok" if done.returncode in {0, 1} else "error")


def _numbered(text: str, given: Mapping[str, Any]) -> str:
    """Returns the lines as some agents' tool shows them, each with its number."""
    first = given.get("offset", 1)
    lines = text.splitlines()[first - 1 :][: given.get("limit", 1_000_000)]
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, start=first))
