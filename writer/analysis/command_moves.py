"""Moves of a command: its program and subcommand, and the operands and flags that are choices."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, islice

from retrieval.patterns import patterns, word_sets
from writer.analysis.command_names import DATABASES, SECRET_FLAGS, SUBCOMMANDS
from writer.analysis.commands import SHELLS, Command, bare
from writer.analysis.move_values import normal, query_fields, route_of, value_of
from writer.analysis.program_effects import shows
from writer.analysis.state_changes import changes_state

WORD_CHARS = 40
OPERAND_CHARS = 200
"""Maximum characters of an operand that are read."""
MOST_READ = 8
"""Maximum number of operands that are read."""
MOST_OPERANDS = 2
"""Maximum number of operands that become moves; later operands are mostly values of flags."""
MOST_WORDS = 40
"""Maximum number of words that are searched for flags."""

_FORMS = patterns("writer.analysis", "command_moves")
_WORDS = word_sets("writer.analysis", "command_moves")

_WITH_SHORT = frozenset(flag.rpartition("-")[0].replace("-", " ") for flag in _WORDS["short"])
"""Commands of which some short flags decide what they do."""
_ASKS = [["--help"], ["--version"], ["-V"], ["-version"]]
"""Last words of commands that only ask for a version or help."""
PREPARES = frozenset(f"shell:{label}" for label in ("chmod", "git add", "git fetch", "mkdir", "touch"))
"""Moves of commands that prepare others; they are moves of a plan only if no other move of it changes something."""


def command_moves(command: Command) -> Iterator[tuple[str, bool]]:
    """Yields the moves of a command, each with whether it changes something."""
    program, sub, plain = command.program[:WORD_CHARS].replace("apt-get", "apt"), command.sub, _plain_operands(command)
    if not sub and program in SUBCOMMANDS:  # a flag with a value stands before it, as in "git -C folder pull"
        sub = "install" if command.operands[:1] == ("i",) else next(iter(plain), "")
    label = normal(f"{program} {sub}".strip())
    if f"shell:{label}" in PREPARES:
        yield f"shell:{label}", True
        return
    short = [*_short_flags(label, command)] if label in _WITH_SHORT else []
    lists = label == "git branch" and not command.operands
    looks_up = not short and (lists or sub in _WORDS["shows"] or (sub and not changes_state(sub)))
    words = [*map(bare, command.words)]
    if looks_up or shows(command.program, words) or words[-1:] in _ASKS:
        yield f"shell:{label}", False
        return
    yield f"shell:{label}", True
    if command.program == "run":
        plain = _script(command)
    elif command.program in DATABASES or not _WORDS["on_data"].isdisjoint(accumulate(label.split(), "{}-{}".format)):
        plain = []
    elif command.program == "kubectl" and sub not in {"rollout", "set"}:
        plain = plain[:1]  # a name follows the kind of an object
    for word in [word for word in plain if word != sub and word not in _WORDS["folders"]][:MOST_OPERANDS]:
        yield f"shell:{label}={word}", True
    for flag in (*_flags(command), *short):
        yield f"shell:{label} {flag}", True


def _plain_operands(command: Command) -> list[str]:
    """Returns the first operands of a command that are words, without versions; of kubectl, the kinds of objects."""
    operands = [word for word in command.operands[:MOST_READ] if len(word) <= OPERAND_CHARS]
    if command.program == "kubectl":
        operands = [word.split("/", 1)[0] for word in operands]
    found = [_FORMS["operand"].fullmatch(word.removesuffix(".service")) for word in operands]
    return [normal(operand["word"] or operand[0]) for operand in found if operand]


def _script(command: Command) -> list[str]:
    """Returns the name of the script that a command runs, and the name with the plain word after it."""
    script = next(map(_FORMS["script"].fullmatch, command.operands[:1]), None)
    if script is None:
        return []
    name = normal(script[1])
    return [name, *(f"{name} {word}" for word in command.words[1:2] if _FORMS["word"].fullmatch(word))]


def _flags(command: Command) -> Iterator[str]:
    """Yields the long flags of a command that decide what it does, as "--hard", and those whose value is a choice."""
    words = command.words[:MOST_WORDS]
    for word, after in zip(words, (*words[1:], ""), strict=False):
        name, _, value = word.partition("=")
        if command.program == "git" and _FORMS["git_force"].fullmatch(word):
            yield "--force"
        elif name[2:] in _WORDS["decides"] and name.startswith("--"):
            yield name
        elif _FORMS["flag"].fullmatch(name) and name not in SECRET_FLAGS:
            shown = value_of(name, bare(value or (after if after.isdecimal() else "")))
            if shown and not shown.startswith("<"):
                yield f"{name}={shown}"


def _short_flags(label: str, command: Command) -> Iterator[str]:
    """Yields the short flags that decide what a command does, as "-r" of crontab, and their values that are choices."""
    words = command.words[:MOST_WORDS]
    program = label.replace(" ", "-")
    for word, after in zip(words, (*words[1:], ""), strict=False):
        if word[:1] != "-" or word[:2] == "--":
            continue
        for flag in [word] if f"{program}{word}" in _WORDS["short"] else [f"-{letter}" for letter in word[1:]]:
            if f"{program}{flag}" in _WORDS["short"]:
                is_choice = after.isalpha() and (after.isupper() or program == "find")  # "-j DROP", "-exec rm"
                yield f"{flag}={normal(after)[:WORD_CHARS]}" if is_choice else flag


def inner_line(command: Command) -> str:
    """Returns the command line that a command runs on another host or in a container; empty: it runs none.

    It may be a here-document, which a shell reads.
    """
    words = list(command.words)
    if command.program == "ssh":
        words = [bare(word) for word in words]
    elif command.program in {"docker", "kubectl", "podman"} and command.sub.rsplit(" ", 1)[-1] == "exec":
        words = words[words.index("exec") + 1 :]
    else:
        return ""
    if "--" in words:
        return " ".join(words[words.index("--") + 1 :])
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 1 + (words[at] in _WORDS["takes_value"])
    inner, document = words[at + 1 :], next(reversed(command.operands), "")
    is_shell = not inner or inner[0].split(" ")[0] in SHELLS
    return document if is_shell and document.endswith("\n") else " ".join(inner)


def request_moves(words: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yields the method and the route of a request that curl sends, and the values of its query and its data."""
    yield "shell:curl", False
    line = " ".join(words[:MOST_WORDS])
    request = _FORMS["request"].search(line)
    posts = _FORMS["sends"].search(line) and not _FORMS["asks"].search(line)
    method = request[1].casefold() if request else "post" if posts else "get"
    changes = method not in {"get", "head"}
    yield f"shell:curl {method}", changes
    url = next((word for word in map(bare, words) if word.startswith(("http://", "https://", "localhost"))), "")
    if route := route_of(url):
        yield f"shell:curl {method}:{route}", changes
    sent = [query for query in (url.partition("?")[2].partition("#")[0], *_data(words)) if query]
    for name, value in islice(chain.from_iterable(map(query_fields, sent)), MOST_WORDS):
        shown = value_of(name, value)
        if shown and (changes or not shown.startswith("<")):
            yield f"shell:curl {method}.{name}={shown}", changes


def _data(words: Sequence[str]) -> Iterator[str]:
    """Yields the texts that curl sends."""
    for word, after in zip(words, (*words[1:], ""), strict=False):
        if flag := _FORMS["data"].fullmatch(word):
            text = flag["text"] or after
            yield bare(text).replace('\\"', '"') if text.startswith('"') else bare(text)
