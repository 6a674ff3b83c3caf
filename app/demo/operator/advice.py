"""Reads advice for the operator: finds the repairs of its list that change SQL as the advised fixes did."""

import re
from collections import Counter
from collections.abc import Sequence

from app.demo.operator.catalog import Catalog
from app.demo.operator.repairs import REPAIRS, Repair, apply_chain, named_in
from app.demo.operator.script import Script
from app.demo.told import told_fixes, told_plans

LEAST = 0.35
"""Least F1 between the words that a fix and a repair change, 0 to 1, at which the fix is taken for that repair."""
_NAME = re.compile(r"\w+")
_WORD = re.compile(r"\w+|[\"'.(|:,]")
_TYPES = frozenset(("bigint", "boolean", "date", "integer", "numeric", "text", "timestamptz"))
_FUNCTIONS = frozenset(("ctid", "excluded", "kept", "late", "max", "min", "setval"))
A_TYPE = "a type"
"""Placeholder for the name of a data type; the column's name shows which type is right."""
OTHER_CASE = "other case"
"""Placeholder for a name in other upper and lower case, such as Payments for payments."""


def advised(text: str, chain: tuple[Repair, ...], script: Script, catalog: Catalog) -> list[tuple[Repair, ...]]:
    """Returns a chain of repairs for each fix of the text, the best fix first, and then for each plan.

    These are the repairs that the plan of the fix's run names, or else, behind this chain or alone, the one whose
    change of SQL is likest to the fix.
    """
    fixes = told_fixes(text)
    of_plans = [chain for plan in told_plans(text) if (chain := _named(plan))]
    if not fixes:
        return of_plans
    behind = {repair: _made_by(script, chain, repair, catalog) for repair in REPAIRS}
    alone = {repair: _made_by(script, (), repair, catalog) for repair in REPAIRS}
    found = []
    for fix in fixes:
        if named := _named(fix.plan):
            found.append(named)
            continue
        told = Counter[str]()  # the change of SQL that the fix tells
        for before, after in (*(("", statement) for statement in fix.first), *fix.changes):
            told += _change(before, after)
        scores = {
            (*first, repair): 2 * (told & words).total() / ((told + words).total() or 1)  # F1
            for first, wanted in (((), alone), (chain, behind))
            for repair, words in wanted.items()
            if words
        }
        best = max(scores, key=lambda each: (scores[each], len(each)), default=None)
        if best is not None and scores[best] >= LEAST:
            found.append(best)
    return found + of_plans


def _named(plan: Sequence[str]) -> tuple[Repair, ...]:
    return tuple(repair for line in plan if (repair := named_in(line)))


def _made_by(script: Script, chain: tuple[Repair, ...], repair: Repair, catalog: Catalog) -> Counter[str] | None:
    """Returns the change of SQL that a repair makes; None if it does not apply or was applied."""
    current = apply_chain(script, chain, catalog)
    longer = None if current is None or repair in chain else repair.edit(current, catalog)
    if current is None or longer is None:
        return None
    return _change(" ".join(current.statements), " ".join(longer.statements))


def _change(before: str, after: str) -> Counter[str]:
    """Returns the counts of the words that came, and of those that went, which begin with "gone "."""
    old, new = _sql(before), _sql(after)
    names = set(_NAME.findall(before)), set(_NAME.findall(after))
    folded = {name.casefold() for name in names[0]}
    respelt = any(name.casefold() in folded for name in names[1] - names[0])
    gone = {f"gone {word}": count for word, count in (old - new).items()}
    return Counter({**(new - old), **gone, **({OTHER_CASE: 1} if respelt else {})})


def _sql(text: str) -> Counter[str]:
    """Returns the counts of the words that any table could have: key words, functions, types and signs."""
    words = (A_TYPE if word in _TYPES else word for word in _WORD.findall(re.sub(r"<\w+>", "''", text)))
    return Counter(word for word in words if not word[0].isalnum() or word.isupper() or word in {A_TYPE, *_FUNCTIONS})
