"""Writes the block of a run's findings for a system prompt, within a limit of tokens.

A tool's text is quoted on one line, in characters that can end neither the line nor the block.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Literal

from retrieval.sections.quoting import quoted, unescaped
from retrieval.tables.kinds import FindingKind
from retrieval.text import shortened
from retrieval.tokens import count_tokens

TITLE = "# Execution Memory"
_HEADINGS = {
    "files": "**Files Already Read:**",
    "searches": "**Previous Search Results:**",
    "others": "**Other Findings:**",
}
"""Heading of each group of findings, in the order of the block."""
Standing = Literal["holds", "in_doubt", "changed", "found_again"]
"""Standing of a finding: it holds, a later step may have changed its subject, changed it, or found the same again."""
LONGEST_LINE = 300
"""Largest number of characters of the line of a finding."""


@dataclass(frozen=True, slots=True)
class SummaryFinding:
    """A finding of a run: what a step's call found out, decrypted.

    Attributes:
        same: number that is equal for findings with the same subject; the newest of these counts.
        texts: texts of the finding: tool, query, fact and others.
        changed: true if a later step changed the finding's subject.
        in_doubt: true if a later step may have changed the subject, such as a call of an unknown tool.
    """

    step: int
    kind: FindingKind
    success: bool
    same: int
    texts: Mapping[str, Any]
    changed: bool
    in_doubt: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """The text of a run's findings.

    Attributes:
        text: the block for a system prompt; empty if no finding fits.
        shown: number of findings in the text.
        left_out: number of findings that did not fit, for each group: files, searches, others.
    """

    text: str
    tokens: int
    shown: int
    left_out: dict[str, int] = field(default_factory=dict)


def summary(findings: Sequence[SummaryFinding], token_budget: int) -> Summary:
    """Returns the block of the findings that may still hold, in the order of the steps; empty if none fits.

    A finding whose subject was changed is left out; a line says if a later step may have changed its subject. If not
    all findings fit, the newest of each group (files, searches, others) are taken in turn.
    """
    groups: dict[str, list[SummaryFinding]] = {group: [] for group in _HEADINGS}
    for each, stands in zip(findings, standings(findings), strict=True):
        if stands in {"holds", "in_doubt"} and (each.texts.get("query") or each.texts.get("path")):
            groups[_group_of(each)].append(each)
    chosen: list[SummaryFinding] = []
    used = count_tokens(_block([])) + sum(count_tokens(f"\n{_HEADINGS[each]}\n\n") for each in groups if groups[each])
    for turn in zip_longest(*groups.values()):
        for each in turn:
            cost = 0 if each is None else count_tokens(_line(each) + "\n")
            if each is not None and used + cost <= token_budget:
                chosen.append(each)
                used += cost
    text = _block(chosen) if chosen else ""
    fitting = {id(each) for each in chosen}
    left = {group: sum(id(each) not in fitting for each in members) for group, members in groups.items()}
    return Summary(text, count_tokens(text), len(chosen), {name: count for name, count in left.items() if count})


def standings(findings: Sequence[SummaryFinding]) -> list[Standing]:
    """Returns the standing of each of a run's findings, in the order of the input, the newest first.

    A finding that a step changed something always holds.
    """
    seen: set[tuple[FindingKind, int]] = set()
    standing: list[Standing] = []
    for each in findings:
        about = each.kind, each.same
        if each.kind == "write":
            standing.append("holds")
        elif about in seen:
            standing.append("found_again")
        else:
            standing.append("changed" if each.changed else "in_doubt" if each.in_doubt else "holds")
        seen.add(about)
    return standing


def _block(chosen: Sequence[SummaryFinding]) -> str:
    parts = [TITLE]
    for group, heading in _HEADINGS.items():
        members = [each for each in reversed(chosen) if _group_of(each) == group]
        lines = [_line(each) for each in sorted(members, key=lambda finding: finding.step)]
        if lines:
            parts.append("\n".join([heading, *lines]))
    return "\n\n".join(parts) + "\n"


def _group_of(finding: SummaryFinding) -> str:
    if finding.kind == "read":
        return "files"
    return "searches" if finding.kind == "search" and not finding.texts.get("listing") else "others"


def _line(finding: SummaryFinding) -> str:
    texts = finding.texts
    fact = shortened(str(texts.get("fact", "")), LONGEST_LINE)
    step = f"(step {finding.step}{', may have changed since' if finding.in_doubt and finding.kind != 'write' else ''})"
    if finding.kind == "read" and finding.success:
        lines = texts.get("lines")
        part = f" lines {lines[0]} to {lines[1] or 'the end'}" if lines else ""
        return f"- {unescaped(texts.get('path', '') + part)}: {unescaped(fact)} {step}"
    tool = str(texts.get("tool", ""))
    query = unescaped(shortened(str(texts.get("query", "")).removeprefix(f"{tool} "), LONGEST_LINE))
    if _group_of(finding) == "searches" and finding.success:
        return f"- {query}: {unescaped(fact)} {step}"
    ours = finding.success and (texts.get("by_hand") or texts.get("listing"))  # no words of a tool
    result = unescaped(fact) if ours else f"{'' if finding.success else 'failed: '}{quoted(fact)}"
    return f"- {unescaped(tool)} ({query}): {result} {step}"
