"""All tables of the case bank, in one MetaData.

Every primary key, unique key and foreign key starts with ``user_sub``, which row-level security, erasure and the
distribution over a cluster use. The exceptions are the tables about the service itself, whose only data of users are
digests: ``jobs``, ``master_keys``, ``installation_keys``, ``erasure_links``, ``erasure_heads``, ``token_revocations``
and ``readmissions``. The migrations create these tables, and ``alembic check`` proves that the two agree.
"""

from retrieval.tables.audit import audit, audit_heads, audit_links
from retrieval.tables.cases import case_embeddings, case_tools, cases, inserted_memories
from retrieval.tables.columns import metadata
from retrieval.tables.decisions import decision_slots, decisions, rewards
from retrieval.tables.failures import advice, failures
from retrieval.tables.keys import rate_limits, user_keys
from retrieval.tables.memories import facts, knowledge, memories
from retrieval.tables.procedures import procedure_reviews, procedures, reflections
from retrieval.tables.profiles import llm_usage, policies, profiles, replays
from retrieval.tables.runs import checkpoints, findings, run_steps, runs
from retrieval.tables.sessions import session_summaries, sessions, turns

__all__ = ["USER_TABLES", "metadata"]

USER_TABLES = (
    rewards,
    procedure_reviews,
    procedures,
    case_tools,
    reflections,
    failures,
    advice,
    llm_usage,
    case_embeddings,
    findings,
    run_steps,
    runs,
    memories,
    inserted_memories,
    checkpoints,
    knowledge,
    facts,
    cases,
    turns,
    session_summaries,
    sessions,
    decision_slots,
    decisions,
    policies,
    replays,
    audit_heads,
    audit_links,
    audit,
    rate_limits,
    user_keys,
    profiles,
)
"""The tables with a user's data, in an order in which foreign keys and the audit's trigger allow to empty them."""
