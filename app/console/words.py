"""What the console says in place of the short words of the API; every one of them means what the glossary says."""

from dataclasses import dataclass, field
from typing import Literal, get_args

from policy.reasons import Reason
from retrieval.tables.kinds import Abstraction, AnalystChoice, Rewrite, SummaryChoice

REASONS: dict[Reason, str] = {
    "chosen": "Chosen: it stands by the order and the rules.",
    "drawn": "Drawn by lot, to find out whether it helps.",
    "not_near_enough": "Less similar than the request asked for.",
    "same_as_another": "Says the same as a case that was chosen.",
    "another_failure": "One failed run stands as a warning already; a slate has room for one.",
    "unproven": "Waits in quarantine: nobody but its own run says that it went well.",
    "displaced": "Gave its place to an unproven case that is much nearer to the query.",
    "source": "Its source has half of the slate already.",
    "lower": "Lower in the order than everything that was chosen.",
    "left_empty": "The slate was left empty: by lot, or because no case was expected to help.",
}

LABELS: dict[str, str] = {
    "hybrid": "by meaning and by words",
    "keyword": "by words alone",
    "off": "without memory",
    "empty": "nothing to search",
    "default": "the untrained order",
    "serving": "serving",
    "candidate": "on trial",
    "retired": "retired",
    "rolled_back": "rolled back",
    "rejected": "not promoted",
    "failed": "cannot serve",
    "active": "in use",
    "superseded": "replaced by another version",
    "pending": "waiting for the worker",
    "ready": "ready to be found",
    "merged": "merged with a case that says the same",
    "pruned": "pruned",
    "dead": "given up after several attempts",
    "heuristic": "guessed by rule",
    "user": "by a user",
    "judge": "by a judge",
    "metric": "by a metric",
    "embedder": "the embedder did not answer, so words carried the search",
    "query_not_embeddable": "the query could not be embedded, so words carried the search",
    "embedding_model": "the vectors are of another model: run casebank reembed",
    "pgvector": "the database has no pgvector, so the service compares the vectors",
    "rewriter": "the rewriter did not answer, so the query itself was searched for",
    "failure_lesson": "lesson of a failure",
    "keep": "not promoted",
    "promote": "promoted",
    "roll back": "roll back what serves",
    "insufficient evidence": "not enough evidence yet",
    "futile": "not to be won",
}

FINDING_KINDS = {"read": "a file", "search": "a search", "answer": "an answer", "write": "a change", "other": "a call"}
STANDINGS = {"holds": "holds", "changed": "a later step may have changed it", "found_again": "found again since"}

TERMS = {
    "found": "Search",
    "record": "Record",
    "plan": "Plan",
    "returned": "Return",
    "learned": "Learned",
}
"""What a score is the sum of, in the order of its columns."""
TERMS_SAY = (
    "how the search ranked it, what came of it before, how well its plan agrees with what the query needs, whether its"
    " task came back, and what was learned"
)

CHECKS: dict[str, str] = {
    "decisions": "Decisions with a reward",
    "rewards differ": "Rewards are not all the same",
    "missing rewards": "Rewards are missing alike for both",
    "effective sample of candidate": "Decisions that speak of the policy on trial",
    "effective sample of serving": "Decisions that speak of what serves",
    "effective sample of default": "Decisions that speak of the untrained order",
    "effective groups of candidate": "Different queries that speak of the policy on trial",
    "effective groups of serving": "Different queries that speak of what serves",
    "effective groups of default": "Different queries that speak of the untrained order",
    "support of candidate": "The log could have served all that the policy on trial would",
    "support of serving": "The log could have served all that serves",
    "support of default": "The log could have served all of the untrained order",
    "better than default": "Better than the untrained order, surely",
    "better than serving": "Better than what serves, surely",
    "calibration": "Keeps its promises",
    "no segment worse": "Worse for no kind of query",
    "serving is not worse": "What serves is no worse than the untrained order",
}

ESTIMATED: dict[str, str] = {
    "default": "the untrained order",
    "serving": "what serves",
    "candidate": "the policy on trial",
    "candidate - default": "the policy on trial less the untrained order",
    "candidate - serving": "the policy on trial less what serves",
    "default - serving": "the untrained order less what serves",
    "serving - default": "what serves less the untrained order",
}
"""What the gate estimates the reward of."""

Kind = Literal["whole", "part", "switch", "wish", "choice", "tools"]


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a profile as a form asks for it.

    Attributes:
        name: as the API has it.
        says: what it does, in a sentence.
        kind: a whole number, another number, a switch, a wish (a switch that may be left to the service), one of
            ``choices``, or names of tools with their kinds.
        may_be_empty: whether nothing is a value, and which ``says`` explains.
    """

    name: str
    label: str
    says: str
    kind: Kind
    may_be_empty: bool = False
    choices: tuple[str, ...] = field(default=())


SETTINGS: dict[str, list[Setting]] = {
    "Memory": [
        Setting("enabled", "Memory is on", "Off: nothing is told to the agent; runs are still kept.", "switch"),
        Setting("k", "Cases on a slate", "How many earlier runs an answer shows at most. Usual: 4.", "whole"),
        Setting("window_size", "Window", "How many cases the bank keeps; the least useful go first.", "whole"),
        Setting("ttl_days", "Days that a case stays", "Empty: for good.", "whole", may_be_empty=True),
        Setting(
            "session_ttl_days",
            "Days that a session stays",
            "After its last turn. Empty: for good.",
            "whole",
            may_be_empty=True,
        ),
    ],
    "What the agent is told": [
        Setting("procedures", "Procedures in an answer", "0: none.", "whole"),
        Setting(
            "procedure_similarity",
            "Least similarity of a procedure",
            "0 to 1. Empty: what was measured for the embedding model.",
            "part",
            may_be_empty=True,
        ),
        Setting("procedures_share", "Share for procedures", "Of the text's tokens, 0 to 1, beside cases.", "part"),
        Setting(
            "session_summary",
            "Who tells of a session's older turns",
            "rules: as it was said. llm: a language model, where the service has one.",
            "choice",
            choices=get_args(SummaryChoice),
        ),
        Setting(
            "session_share", "Share for the session", "Of the text's tokens, 0 to 1; the rest is for others.", "part"
        ),
        Setting("facts_share", "Share for facts", "Of the text's tokens, 0 to 1; 0: nothing of the user.", "part"),
    ],
    "Search": [
        Setting("semantic_weight", "Weight of meaning", "Of the search by vectors.", "part"),
        Setting("full_text_weight", "Weight of words", "Of the search by keywords.", "part"),
        Setting("rrf_k", "Fusion constant", "Larger: ranks further down count more. Usual: 50.", "part"),
        Setting(
            "rewrite",
            "Rewriting of queries",
            "off: the query is searched for as it is. rules, llm: it is rewritten first.",
            "choice",
            choices=get_args(Rewrite),
        ),
    ],
    "Learning": [
        Setting("learning", "Learn which cases help", "Off: the untrained order serves for ever.", "switch"),
        Setting(
            "explore", "Share of slates with a drawn place", "0 to 0.5. A lot tries one case out; 0: never.", "part"
        ),
        Setting("canary", "Share for a policy on trial", "0 to 0.9. Of the decisions, while there is a trial.", "part"),
        Setting(
            "contribute",
            "Give numbers to the fleet",
            "Yes: numbers of this agent's decisions, and no content, train what all its users share.",
            "wish",
        ),
        Setting(
            "receive",
            "Be served what the fleet learned",
            "Yes: until this agent has learned a policy of its own, that of all its users serves, if it proved itself.",
            "wish",
        ),
    ],
    "What runs teach": [
        Setting(
            "abstraction",
            "Scripts of successful runs",
            "off: none. concrete: with the run's values. abstract: with placeholders. hybrid: with both.",
            "choice",
            choices=get_args(Abstraction),
        ),
        Setting("least_success", "Least success of a run that teaches", "0 to 1. Usual: 0.7.", "part"),
        Setting(
            "analyst",
            "Who explains failures",
            "rules: without a model. llm: a language model, where the service has one.",
            "choice",
            choices=get_args(AnalystChoice),
        ),
        Setting(
            "llm_tokens_per_day",
            "Tokens a day for language models",
            "Empty: as many as the service allows.",
            "whole",
            may_be_empty=True,
        ),
        Setting(
            "tool_kinds",
            "Kinds of tools",
            "One a line, as “fetch: read”, where its name does not tell: read, search, answer, write, shell, other.",
            "tools",
        ),
    ],
}
"""The settings of a profile, by what they are about."""

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
    ("/console/user", "User", ("/console/user",)),
    ("/console/installation", "Installation", ("/console/installation",)),
]
"""Each page of the menu with its name, and how the paths begin that belong to it."""
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
    """Returns whether a path belongs where these beginnings lead."""
    return path in beginnings or any(path.startswith(each) for each in beginnings if each != "/console")


def section(path: str) -> str:
    """Returns the page of the menu to which a path belongs."""
    return next((page for page, _, beginnings in MENU if is_in(path, beginnings)), "/console")


PROBLEMS: dict[int, str] = {
    401: "Please sign in",
    403: "Not allowed",
    404: "Not here",
    409: "Something else came first",
    410: "This memory was erased",
    413: "Too much at once",
    422: "That cannot be done so",
    429: "Too often",
    503: "Not now",
}
"""Headings of the pages that say what is wrong."""

COUNTED = frozenset(name for name in CHECKS if name == "decisions" or name.startswith("effective"))
"""The checks that more decisions, or more queries, can fulfil."""
