"""Texts of the console for the short words of the API; the glossary explains the terms."""

from dataclasses import dataclass, field
from typing import Literal, get_args

from policy.reasons import Reason
from retrieval.tables.kinds import Abstraction, AnalystChoice, Rewrite, SummaryChoice
from writer.replays.profile_replay import SPOKEN

REASONS: dict[Reason, str] = {
    "chosen": "Chosen: it comes first by the order and the rules.",
    "drawn": "Chosen at random, to learn whether it helps.",
    "not_near_enough": "Less similar to the query than the request requires.",
    "same_as_another": "Has the same content as a chosen case.",
    "another_failure": "The slate has one failed run as a warning already; one is the maximum.",
    "unproven": "In quarantine: so far, only its own run reports success.",
    "displaced": "Replaced by an unproven case that is much more similar to the query.",
    "source": "Cases from the same source fill half of the slate already.",
    "lower": "Has a lower score than all chosen cases.",
    "left_empty": "The slate was left empty: at random as a comparison, or because no case was expected to help.",
}

LABELS: dict[str, str] = {
    "hybrid": "by meaning and keywords",
    "keyword": "by keywords alone",
    "off": "without memory",
    "empty": "in an empty bank",
    "default": "the order that replay chose",
    "serving": "in service",
    "candidate": "on trial",
    "retired": "retired",
    "rolled_back": "rolled back",
    "rejected": "not promoted",
    "failed": "cannot be used",
    "active": "in use",
    "superseded": "replaced by a newer version",
    "pending": "waiting for the worker",
    "ready": "ready",
    "merged": "merged into an equal case",
    "pruned": "pruned",
    "dead": "failed after several attempts",
    "heuristic": "set by a rule",
    "user": "from a user",
    "judge": "from a judge",
    "metric": "from a metric",
    "embedder": "the embedder did not answer, so the search used keywords alone",
    "query_not_embeddable": "the query could not be embedded, so the search used keywords alone",
    "embedding_model": "the stored vectors come from another model: run casebank reembed",
    "pgvector": "the database has no pgvector, so the service compares the vectors",
    "rewriter": "the rewriter did not answer, so the search used the original query",
    "failure_lesson": "lesson from a failure",
    "keep": "not promoted",
    "promote": "promoted",
    "roll back": "roll back the policy in service",
    "insufficient evidence": "not enough evidence yet",
    "futile": "no chance of promotion",
}

FINDING_KINDS = {"read": "a file", "search": "a search", "answer": "an answer", "write": "a change", "other": "a call"}
STANDINGS = {
    "holds": "holds",
    "in_doubt": "a later step may have changed it",
    "changed": "a later step changed it",
    "found_again": "found again later",
}

ORDERS = {name: spoken.capitalize() for name, spoken in SPOKEN.items()}
"""Orders that a replay compares, as the console's tables name them."""

TERMS = {
    "order": "Order",
    "learned": "Learned",
}
"""Terms of a candidate's score, in the order of the table's columns."""
TERMS_SAY = "the case's place in the order used for this agent, and the learned policy's correction"

CHECKS: dict[str, str] = {
    "decisions": "Decisions with a reward",
    "rewards differ": "Rewards are not all equal",
    "missing rewards": "Both policies miss rewards equally often",
    "effective sample of candidate": "Decisions that inform about the policy on trial",
    "effective sample of serving": "Decisions that inform about the policy in service",
    "effective sample of default": "Decisions that inform about the order that replay chose",
    "effective groups of candidate": "Different queries that inform about the policy on trial",
    "effective groups of serving": "Different queries that inform about the policy in service",
    "effective groups of default": "Different queries that inform about the order that replay chose",
    "support of candidate": "The log covers the slates of the policy on trial",
    "support of serving": "The log covers the slates of the policy in service",
    "support of default": "The log covers the slates of the order that replay chose",
    "better than default": "Better than the order that replay chose, with confidence",
    "better than serving": "Better than the policy in service, with confidence",
    "calibration": "Predicted rewards match actual rewards",
    "no segment worse": "Not worse for any kind of query",
    "serving is not worse": "The policy in service is not worse than the order that replay chose",
}

ESTIMATED: dict[str, str] = {
    "default": "the order that replay chose",
    "serving": "the policy in service",
    "candidate": "the policy on trial",
    "candidate - default": "the policy on trial minus the order that replay chose",
    "candidate - serving": "the policy on trial minus the policy in service",
    "default - serving": "the order that replay chose minus the policy in service",
    "serving - default": "the policy in service minus the order that replay chose",
}
"""Policies and differences whose reward the gate estimates."""

KNOWN = {"facts": "Facts", "cases": "Cases", "sessions": "Sessions", "knowledge": "Knowledge"}
"""Kinds of memories on the page of what is known of a user."""
DELETES = {
    "facts": "Delete this fact permanently",
    "cases": "Delete this case permanently, with the procedures made from its text",
    "sessions": "Delete this session permanently, with the facts first stated in it; its runs stay",
    "knowledge": "Delete this entry permanently",
}
"""Confirmations of a deletion, by kind."""

Kind = Literal["whole", "part", "switch", "choice", "tools"]


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a profile as a form field.

    Attributes:
        name: name of the setting in the API.
        says: explanation of the setting in one sentence, shown below the field.
        kind: type of the field: a whole number, a number, a switch, one of ``choices``, or names of tools with their
            kinds.
        may_be_empty: true if an empty field is a value; ``says`` explains it.
    """

    name: str
    label: str
    says: str
    kind: Kind
    may_be_empty: bool = False
    choices: tuple[str, ...] = field(default=())


SETTINGS: dict[str, list[Setting]] = {
    "Memory": [
        Setting("enabled", "Memory is read", "Off: the agent gets no memories.", "switch"),
        Setting("writing", "Memory is written", "Off: no run, step, turn or fact is stored.", "switch"),
        Setting("k", "Cases on a slate", "Maximum number of earlier runs in one answer. Default: 4.", "whole"),
        Setting(
            "window_size",
            "Window",
            "Maximum number of cases in the bank; the least useful are removed first. Default: 200.",
            "whole",
        ),
        Setting("ttl_days", "Days that a case is kept", "Empty: no limit.", "whole", may_be_empty=True),
        Setting(
            "session_ttl_days",
            "Days that a session is kept",
            "Counted from its last turn. Empty: no limit.",
            "whole",
            may_be_empty=True,
        ),
    ],
    "Text for the agent": [
        Setting("procedures", "Procedures in an answer", "Maximum number. 0: no procedures.", "whole"),
        Setting(
            "procedure_similarity",
            "Least similarity of a procedure",
            "0 to 1. Empty: the value measured for the embedding model.",
            "part",
            may_be_empty=True,
        ),
        Setting(
            "procedures_share", "Share for procedures", "Largest share of the text, 0 to 1, if cases are in it.", "part"
        ),
        Setting(
            "session_summary",
            "Summary of older turns of a session",
            "rules: quotations. llm: by a language model, if the service has one.",
            "choice",
            choices=get_args(SummaryChoice),
        ),
        Setting("session_share", "Share for the session", "Largest share of the text, 0 to 1.", "part"),
        Setting("facts_share", "Share for facts", "Largest share of the text, 0 to 1. 0: no facts.", "part"),
    ],
    "Search": [
        Setting(
            "rewrite",
            "Rewriting of queries",
            "off: search with the original query. llm: rewrite it with a language model.",
            "choice",
            choices=get_args(Rewrite),
        ),
    ],
    "Learning": [
        Setting("learning", "Learn which cases help", "Off: the order that replay chose always serves.", "switch"),
        Setting(
            "explore", "Share of slates with a random case", "0 to 0.5. Random cases show what helps. 0: never.", "part"
        ),
        Setting(
            "canary",
            "Share of a policy on trial",
            "0 to 0.9. Share of decisions in which the policy on trial orders the cases.",
            "part",
        ),
    ],
    "Learning from runs": [
        Setting(
            "abstraction",
            "Scripts of successful runs",
            "off: no scripts. concrete: with the values of the run. abstract: with placeholders. hybrid: with both.",
            "choice",
            choices=get_args(Abstraction),
        ),
        Setting(
            "analyst",
            "Analysis of failures",
            "rules: by rules. llm: by a language model, if the service has one.",
            "choice",
            choices=get_args(AnalystChoice),
        ),
        Setting(
            "llm_tokens_per_day",
            "Tokens a day for language models",
            "Empty: the limit of the service.",
            "whole",
            may_be_empty=True,
        ),
        Setting(
            "tool_kinds",
            "Kinds of tools",
            "One tool per line, such as “fetch: read”, if its name does not show its kind. Kinds: read, search, answer,"
            " write, shell, other.",
            "tools",
        ),
    ],
}
"""Settings of a profile, by topic."""

MENU: list[tuple[str, str, tuple[str, ...]]] = [
    ("/console", "Overview", ("/console",)),
    ("/console/decisions", "Decisions", ("/console/decisions",)),
    (
        "/console/bank",
        "Bank",
        (
            "/console/bank",
            "/console/cases",
            "/console/procedures",
            "/console/runs",
            "/console/tool",
            "/console/session",
            "/console/facts",
            "/console/knowledge",
            "/console/shared-knowledge",
        ),
    ),
    ("/console/policy", "Policy", ("/console/policy",)),
    ("/console/known", "Known of me", ("/console/known",)),
    ("/console/user", "User", ("/console/user",)),
    ("/console/installation", "Installation", ("/console/installation",)),
]
"""Menu items: page, name, and prefixes of the paths that belong to it."""
BANK_MENU: list[tuple[str, str, tuple[str, ...]]] = [
    ("/console/bank", "Search and cases", ("/console/bank", "/console/cases")),
    ("/console/procedures", "Procedures", ("/console/procedures",)),
    ("/console/runs", "Runs", ("/console/runs",)),
    ("/console/tools", "Tools", ("/console/tool",)),
    ("/console/sessions", "Sessions", ("/console/session",)),
    ("/console/facts", "Facts", ("/console/facts",)),
    ("/console/knowledge", "Knowledge", ("/console/knowledge",)),
    ("/console/shared-knowledge", "Shared knowledge", ("/console/shared-knowledge",)),
]


def is_in(path: str, beginnings: tuple[str, ...]) -> bool:
    """Returns whether a path belongs to a menu item with these prefixes."""
    return path in beginnings or any(path.startswith(each) for each in beginnings if each != "/console")


def section(path: str) -> str:
    """Returns the page of the menu that a path belongs to."""
    return next((page for page, _, beginnings in MENU if is_in(path, beginnings)), "/console")


PROBLEMS: dict[int, str] = {
    401: "Please sign in",
    403: "Not allowed",
    404: "Not found",
    409: "Conflict with another change",
    410: "This memory was erased",
    413: "Too much data",
    422: "Invalid input",
    429: "Too many requests",
    503: "Not available now",
}
"""Headings of error pages, by status."""

COUNTED = frozenset(name for name in CHECKS if name == "decisions" or name.startswith("effective"))
"""Checks of the gate that pass once there are enough decisions or queries."""
