"""Counts an answer in the metrics and logs its mode, policy, sizes and costs, without the user's name."""

from prometheus_client import Counter

from retrieval.ranking.policies import number_of
from retrieval.ranking.retrieved import Retrieved
from retrieval.telemetry import log

RETRIEVALS = Counter("casebank_retrievals_total", "Retrievals by the mode that answered", ["mode"])
DECISIONS = Counter(
    "casebank_decisions_total", "Decisions by whose order they followed: default, serving or candidate", ["policy"]
)
BY_VERSION = Counter(
    "casebank_policy_version_decisions_total",
    "Decisions by the version of the policy: the default's, or how often the profile's was trained",
    ["version"],
)
HITS = Counter("casebank_retrieval_hits_total", "Retrievals that returned at least one case")
SHOWN = Counter("casebank_cases_shown_total", "Cases on slates, each place counted")
PROCEDURES_SHOWN = Counter("casebank_procedures_shown_total", "Procedures told beside slates")
CONTEXT_TOKENS = Counter("casebank_context_tokens_total", "Tokens added to prompts by memory_context")

LAST_VERSION = 50
"""Highest version with a label of its own: a profile that is trained every night gets a new version each day."""


def count_answer(answered: Retrieved) -> None:
    """Counts the answer in the metrics, and logs its sizes."""
    arm = answered.decision.arm
    DECISIONS.labels(arm).inc()
    BY_VERSION.labels(version_label(answered.policy_version)).inc()
    RETRIEVALS.labels(answered.mode).inc()
    HITS.inc(bool(answered.choices))
    SHOWN.inc(len(answered.choices))
    PROCEDURES_SHOWN.inc(len(answered.procedures))
    CONTEXT_TOKENS.inc(answered.context.tokens)
    log.debug(
        "retrieve.answered",
        policy=arm,
        policy_version=answered.policy_version,
        mode=answered.mode,
        cases=len(answered.choices),
        procedures=len(answered.procedures),
        tokens=answered.context.tokens,
    )


def version_label(version: str) -> str:
    """Returns a policy's version as a metric's label; versions above LAST_VERSION share one label."""
    number = number_of(version)
    return version if number is None or number <= LAST_VERSION else f"{version[:2]}{LAST_VERSION + 1}+"
