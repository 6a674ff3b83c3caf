"""A scripted agent that mends a repository; its next call follows from a seed and its earlier calls.

It reads again what it has read, in the same words or in others, as agents do whose context is cut.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.findings.questions import Topic, question
from bench.findings.scratch import Scratch

STEPS = 40
WORKING_SET = 7
"""Files of a run."""
AGAIN = 0.7
"""Share of its looks that repeat an earlier look."""
ASK = "docs:ask"
_PATTERNS = ("def \\w+_of", "raise \\w+", "class \\w+\\(", "import re$", "TODO", "user_sub", "async def", "frozenset")


@dataclass(frozen=True, slots=True)
class Act:
    """One call of the agent.

    Attributes:
        file: file that it reads, or empty.
        intent: intent of a question, which determines its answer.
        looks: the call only looks, so it may be spared.
    """

    tool: str
    arguments: dict[str, Any]
    file: str = ""
    intent: str = ""
    looks: bool = True


def script(scratch: Scratch, seed: int) -> Iterator[Act]:
    """Yields the calls of one run."""
    rng = random.Random(seed)
    files, topic = rng.sample(scratch.files, WORKING_SET), Topic.drawn(rng)
    seen: list[Act] = []
    for _ in range(STEPS):
        drawn = rng.random()
        if drawn < 0.66:  # noqa: PLR2004 - two thirds of the calls of coding agents only look
            again = seen and rng.random() < AGAIN
            act = rng.choice(seen) if again else _look(scratch, rng, files)
            seen.append(act)
            yield act
        else:
            yield _other(scratch, rng, files, topic)


def _look(scratch: Scratch, rng: random.Random, files: list[str]) -> Act:
    file = rng.choice(files)
    if rng.random() < 1 / 3:
        return _search(rng, file.rsplit("/", 1)[0])
    first = rng.randrange(1, 40)
    whole = {"file_path": str(scratch.root / file)}
    ways: tuple[tuple[str, dict[str, Any]], ...] = (
        ("Read", whole),
        ("Read", whole),
        ("Read", {**whole, "offset": first, "limit": 30}),
        ("read_file", {"path": file}),
        ("bash", {"command": f"cat {file}"}),
        ("bash", {"command": f"sed -n '{first},{first + 20}p' {file}"}),
    )
    return Act(*rng.choice(ways), file)


def _search(rng: random.Random, folder: str) -> Act:
    pattern = rng.choice(_PATTERNS)
    flags = rng.choice(("-rn", "-nr", "-n -r"))
    where = rng.choice((folder, f"{folder}/", f"./{folder}"))
    ways: tuple[tuple[str, dict[str, Any]], ...] = (
        ("Grep", {"pattern": pattern, "path": folder}),
        ("bash", {"command": f"grep {flags} '{pattern}' {where} | sort"}),
        ("bash", {"command": f"ls {folder}"}),
    )
    return Act(*rng.choice(ways))


def _other(scratch: Scratch, rng: random.Random, files: list[str], topic: Topic) -> Act:
    file = rng.choice(files)
    number = rng.randrange(10**6)
    kind = rng.choice(("ask",) * 6 + ("edit", "edit", "append", "sed", "look", "look", "run", "move", "make"))
    if kind == "ask":
        query = question(rng, topic)
        return Act(ASK, {"query": query.text}, intent=query.intent)
    if kind == "edit":
        change = {"old_string": '"""', "new_string": f'"""({number}) '}
        return Act("Edit", {"file_path": str(scratch.root / file), **change}, looks=False)
    lines = {
        "append": f"echo '# {number}' >> {file}",
        "sed": f"sed -i 's/return/return  /' {file} && head -3 {file}",
        "look": rng.choice((f"wc -l {file}", f"git log -3 -- {file}", "ls -la", f"stat -c %s {file}")),
        "run": f"python3 -c \"open('{file}', 'a').write('# {number}')\"",
        "move": f"mv {file} {file}.old; cp {file}.old {file}; echo '# {number}' >> {file}",
        "make": f"sh -c 'cd {file.rsplit('/', 1)[0]} && echo \"# {number}\" >> {file.rsplit('/', 1)[1]}'",
    }
    return Act("bash", {"command": lines[kind]}, looks=False)
