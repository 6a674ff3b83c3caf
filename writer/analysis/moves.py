"""Moves of a run's plan: the parts of its successful calls that two runs with the same plan have in common.

Each move is a short text: ``tool:refund_order``, ``refund_order.method=store_credit``,
``refund_order.amount=<number>``, ``sql:update orders``, ``shell:git commit``, ``act:heat <named>``. Plans that do the
same to other objects have the same moves: an object that the task names is its data. ``policy.agreement`` compares
plans by their moves; rare moves weigh more.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

import snowballstemmer

from policy.channels import searchable
from retrieval.patterns import word_sets
from writer.analysis.argument_diff import as_object
from writer.analysis.calls import Call, StoredRun
from writer.analysis.command_moves import PREPARES
from writer.analysis.move_values import (
    LITTLE,
    NAMED,
    NUMBERED,
    fields_of,
    is_label,
    label_of,
    normal,
    parsed,
    query_fields,
    route_of,
    singular,
    value_of,
)
from writer.analysis.placeholders import PROPER_NAMES, abstract, without_placeholders
from writer.analysis.state_changes import changes_state
from writer.analysis.statement_moves import SESSION, language_in, statement_moves

MOST_MOVES = 256
CHANGE = 4
"""Times that a move which changes something is listed; a move that looks something up is listed once."""
LOOKED_AT = 300
"""Maximum number of successful calls of a run that are read."""
MOST_FIELDS = 100
"""Maximum number of values of one call that are read."""
TOOL_CHARS = 80
TASK_CHARS = 4_000
MOST_NUMBERS = 40
"""Maximum number of a task's numbers that are read."""
NEAR_CHARS = 24
"""Maximum characters between a number of the task and a word that says what the number counts."""
MOST_STEPS = 60
"""Maximum number of steps of a plan in prose that are read."""
STEP_CHARS = 400
WORD_CHARS = 40
CAPITALS = 0.2
"""Share of capitalised words within sentences above which a capital is no sign of a name, as in German."""

_GOES = frozenset(("examine", "go", "goto", "inventory", "look", "navigate", "scroll", "wait", "walk"))
"""First words in the names of tools by which an agent only looks around, as in ``go_to``."""
_ADDRESSES = frozenset(("endpoint", "path", "route", "uri", "url"))
"""Names of the arguments of an HTTP request that hold its address."""
_WORD = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"\d+")
_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_TOOL_NAME = re.compile(r"[A-Za-z][\w.:/-]{0,79}")
_WORDS = word_sets("writer.analysis", "moves")
_WITHOUT_SPACES = re.compile(r"[぀-ヿ㐀-鿿豈-﫿฀-๿]")
"""Characters of scripts without spaces between words."""
_IDENTIFIER = re.compile(r"\b[A-Za-z]+(?:_[A-Za-z]+)+\b")
_NUMBERED_IN_STEP = re.compile(r"(?<=\w )[^\W\d_]{2,} \d{1,3}(?!\w)")
"""Pattern of a numbered object; the first word of a step is a verb, as in "wait 5 minutes"."""
_STEMMER = snowballstemmer.stemmer("english")


def moves_of(run: StoredRun) -> list[str]:
    """Returns the moves of a run's plan, at most MOST_MOVES, in the order of its calls; without calls, its words.

    Failed calls, and repeats of the call before, are left out, and so are commands and statements that only prepare
    others, such as mkdir and SET, in a run that changes something else. A move that looks something up is listed once,
    because runs with the same plan may search differently. A move that changes something counts more: it is listed
    CHANGE times, and once more when it comes the second, fourth and eighth time.
    """
    if not any(call.tool for call in run.calls):
        return _prose(run.plan)
    named = named_by(run.task)
    times: Counter[str] = Counter()
    moves: list[str] = []
    before: Call | None = None
    for call in islice((call for call in run.calls if call.tool and not call.failed), LOOKED_AT):
        if before is not None and (before.tool, before.arguments) == (call.tool, call.arguments):
            continue
        before = call
        for move, changes in dict(moves_of_call(call, named)).items():
            times[move] += 1
            if times[move] == 1:
                moves += [move] * (CHANGE if changes else 1)
            elif changes and times[move] in {2, 4, 8}:
                moves.append(move)
        if len(moves) >= MOST_MOVES:
            break
    prepares = times.keys() & {SESSION, *PREPARES}
    if prepares and any(number > 1 for move, number in Counter(moves).items() if move not in prepares):
        moves = [move for move in moves if move not in prepares]
    return moves[:MOST_MOVES]


def named_by(task: str) -> set[str]:
    """Returns the words of a task, as ``singular`` does, and its numbers after each word near, as "ticket 55"."""
    text = normal(searchable(task[:TASK_CHARS]))
    stated = (
        f"{singular(word)} {number[0]}"
        for number in islice(_NUMBER.finditer(text), MOST_NUMBERS)
        for word in _WORD.findall(text[max(0, number.start() - NEAR_CHARS) : number.end() + NEAR_CHARS])
    )
    return {*map(singular, _WORD.findall(text)), *stated}


def moves_of_call(call: Call, named: Collection[str] = ()) -> Iterator[tuple[str, bool]]:
    """Yields the moves of a call, each with whether it changes something.

    Values of a lookup that are placeholders or numbered objects ("drawer 3") are left out, because lookups of different
    ids and at different places may belong to the same plan; but an object that the task names stays.

    Args:
        call: the call.
        named: words and numbers of the run's task, as ``named_by`` returns them.
    """
    called, arguments = _dispatched(call.tool, as_object(call.arguments))
    tool = normal(called[:TOOL_CHARS])
    changes = changes_state(called) and re.split("[^a-z]", tool, maxsplit=1)[0] not in _GOES
    fields = list(islice(fields_of(arguments), MOST_FIELDS))
    is_request = any(normal(name) == "method" for name, _ in fields)
    for name, value in tuple(fields):
        if isinstance(value, str) and normal(name) in _ADDRESSES:
            fields += query_fields(value.partition("?")[2].partition("#")[0])
    languages = [
        language_in(called, name, value, only=len(fields) == 1) if isinstance(value, str) else None
        for name, value in fields
    ]
    yield f"tool:{tool}", changes and not any(languages)
    for (name, value), language in zip(fields, languages, strict=True):
        if language is not None and isinstance(value, str):
            yield from statement_moves(language, value, named)
            continue
        if is_request and isinstance(value, str) and normal(name) in _ADDRESSES and (route := route_of(value)):
            yield f"{tool}:{route}", changes
            continue
        label = label_of(value, named) if is_label(name) else ""
        shown = label or value_of(name, value, named)
        # where it is only looked up, a placeholder or a numbered object is data of the run
        is_data = shown.startswith("<") or (isinstance(value, str) and NUMBERED.fullmatch(value.strip()) is not None)
        if shown and (changes or shown == NAMED or not is_data):
            yield f"{tool}.{name}={shown}" if name else f"{tool}={shown}", changes


def _dispatched(tool: str, arguments: object) -> tuple[str, object]:
    """Returns the tool that a call of a dispatcher names, as in ``call_tool(name=…, arguments=…)``, and its arguments.

    Another call comes back unchanged.
    """
    if not isinstance(arguments, Mapping):
        return tool, arguments
    names = _WORDS["names_tool"]
    if not _WORDS["calls_tools"].isdisjoint(word.casefold() for word in _NAME_WORD.findall(tool)):
        names |= _WORDS["may_name_tool"]
    fields = {
        key.casefold().replace("_", "").replace("-", ""): value
        for key, value in islice(arguments.items(), MOST_FIELDS)
        if isinstance(key, str)
    }
    named = next((fields[key] for key in fields if key in names), None)
    given = next((fields[key] for key in fields if key in _WORDS["arguments"]), None)
    given = parsed(given) if isinstance(given, str) else given
    is_tool = isinstance(named, str) and _TOOL_NAME.fullmatch(named)
    return (str(named), given) if is_tool and isinstance(given, Mapping) else (tool, arguments)


def _prose(plan: Sequence[str]) -> list[str]:
    """Returns the content words of a plan in prose, each once and without its ending.

    Data, names and numbered objects ("mug 1") are left out.

    A script without spaces between words has each two neighbouring characters.
    """
    steps = [_NUMBERED_IN_STEP.sub(" ", step[:STEP_CHARS]) for step in plan[:MOST_STEPS]]
    spelt = [_IDENTIFIER.sub(lambda name: name[0].replace("_", " ").casefold(), step) for step in steps]
    text = "\n".join(without_placeholders(abstract(step)) for step in spelt)
    if len(PROPER_NAMES.findall(text)) <= CAPITALS * len(text.split()):
        text = PROPER_NAMES.sub(" ", text)
    words: dict[str, None] = {}
    for word in _WORD.findall(normal(text)):
        if _WITHOUT_SPACES.search(word):
            words.update(dict.fromkeys(word[at : at + 2] for at in range(max(1, len(word) - 1))))
        elif (word not in LITTLE or word in _WORDS["opposed"]) and len(word) > 1:
            words[_STEMMER.stemWord(word[:WORD_CHARS])] = None
    return [f"word:{word}" for word in islice(words, MOST_MOVES)]
