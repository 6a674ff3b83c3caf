"""The answer to a question: from candidates to a slate with its reasons, and to the entry that logs the decision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Any
from uuid import UUID

import uuid_utils.compat as uuids

from policy import default, features
from policy.decide import Budget, Decision, Policy, Scores, Trial, decide
from policy.features import Features
from policy.slate import field_of
from retrieval.context import Guidance, MemoryContext, Remembered, memory_context
from retrieval.kinds import Rewrite
from retrieval.procedures.found import Guides, Procedure, compose
from retrieval.procedures.threshold import Threshold
from retrieval.ranking.pool import Pool
from retrieval.search.candidates import Search


@dataclass(frozen=True, slots=True)
class Question:
    """What a backend asks before it acts."""

    search: Search
    k: int | None = None
    token_budget: int = 1500
    min_similarity: float | None = None
    tool_memory: bool = False
    """Whether the context tells which tools of its cases fail often, and what put that right."""
    rewrite: Rewrite | None = None
    """Who turns the query into what is searched for; None: whoever the profile says."""
    said: str | None = None
    """The query as it came, where ``search`` has another in its place."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One place of the slate: the case as it was read, what the policy knew of it, and why it is there."""

    row: Any
    propensity: float
    q_value: float | None
    """Expected reward, 0 to 1; None of the untrained default, which promises none."""
    why: str
    index: int
    """Of the case among the candidates."""
    features: Features
    scores: Scores

    def terms(self) -> dict[str, float | None]:
        """Returns every feature of the case, and every term of its score; a missing number is None."""
        scores, index = self.scores, self.index
        terms = {
            "posterior_mean": float(default.posterior_mean(self.features[index : index + 1])[0]),
            "prior": float(scores.prior[index]),
            "residual": float(scores.residual[index]),
            "spread": float(scores.spread[index]),
            "score": float(scores.total[index]),
        }
        own = dict(zip(features.NAMES, map(float, self.features[index]), strict=True))
        return {name: None if isnan(value) else value for name, value in (own | terms).items()}


@dataclass(frozen=True, slots=True)
class Slate:
    """The answer to a question, as it was logged."""

    retrieval_id: UUID
    choices: list[Choice]
    context: MemoryContext
    mode: str
    policy_version: str = default.VERSION
    degraded: list[str] = field(default_factory=list)
    procedures: Sequence[Procedure] = ()
    threshold: Threshold | None = None
    """From which similarity on a procedure was told; None where nobody looked for any."""
    rewritten: str | None = None
    """What was searched for in place of the query; None: the query itself."""
    why_empty: str | None = None
    """Of a slate without a case; None where there is one."""


LARGEST_SEED = 0x7FFF_FFFF_FFFF_FFFF


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of the candidates' statement, what was missing when they were searched for, and the procedures."""

    rows: Sequence[Any]
    degraded: list[str]
    guides: Guides = field(default_factory=Guides)

    @property
    def settings(self) -> Any:
        """The profile's settings; None where there is no such profile."""
        return self.rows[0] if self.rows else None

    @property
    def cases(self) -> Sequence[Any]:
        """The candidates; none of a profile without cases, or one whose memory is off."""
        return [row for row in self.rows if row.id is not None] if self.rows and self.rows[0].enabled else []


def answer(
    question: Question, found: Found, pool: Pool, arms: Mapping[str, Policy | None], *, explore: bool
) -> tuple[Slate, dict[str, Any]]:
    """Returns the slate, and the parameters of ``retrieval.ranking.decisions.log_decision`` for it."""
    settings, with_vector = found.settings, question.search.vector is not None
    degraded = list(found.degraded)
    if pool.ids and with_vector and settings.embedding_model != question.search.model:
        degraded.append("embedding_model")
    retrieval_id = uuids.uuid7()
    seed = retrieval_id.int & LARGEST_SEED
    k = question.k or (settings.k if settings else 0)
    nearest = question.min_similarity if with_vector else None
    budget = Budget(settings.explore, settings.canary) if settings and explore else Budget(0, 0, 0)
    rules = field_of(pool.features, pool.group, pool.source, nearest)
    decision = decide(pool.features, rules, k, Trial(arms, budget, seed))
    by_id = {row.id: row for row in found.cases}
    chosen = [by_id[pool.ids[index]] for index in decision.slate]
    told = [Remembered(row.task, row.plan, row.outcome, row.reward) for row in chosen]
    procedures = _guiding(found, decision, warned=any(row.failed for row in chosen))
    policy = arms[decision.arm]
    slate = Slate(
        retrieval_id=retrieval_id,
        choices=[_choice(row, place, pool, decision) for place, row in enumerate(chosen)],
        context=memory_context(told, question.token_budget, [_guidance(each) for each in procedures]),
        mode=_mode(found, degraded),
        policy_version=default.VERSION if policy is None else policy.version,
        degraded=degraded,
        procedures=procedures,
        threshold=found.guides.threshold,
        rewritten=question.search.query if question.said is not None else None,
        why_empty=_why_empty(decision),
    )
    return slate, {
        "rewritten": slate.rewritten,
        **_asked(question),
        **_offered(pool),
        "id": retrieval_id,
        "mode": slate.mode,
        "degraded": degraded,
        "policy_version": slate.policy_version,
        "seed": seed,
        "arm": decision.arm,
        "k": k,
        "slate_propensity": decision.lottery.chance(decision.slate),
        "scores": decision.scores.total.tolist(),
        "procedure_ids": [each.id for each in procedures],
        "procedure_versions": [each.version for each in procedures],
        "tokens": slate.context.tokens,
        "case_ids": [row.id for row in chosen],
        "propensities": [choice.propensity for choice in slate.choices],
    }


def _why_empty(decision: Decision) -> str | None:
    """Returns why there is no case on the slate; None where there is one."""
    if decision.slate:
        return None
    if not decision.allowed:
        return "there is no case that may be shown"
    if decision.slates[decision.arm]:
        return "left empty to see what is done without memory"
    return "no case is expected to help"


def _guiding(found: Found, decision: Decision, *, warned: bool) -> list[Procedure]:
    """Returns the procedures told beside the slate; a failed case on it is the one warning that there may be.

    A slate left empty shows what is done without any memory: then there is none of theirs, either.
    """
    if not found.guides.found or (not decision.slate and decision.allowed):
        return []
    return compose(found.guides.found, found.settings.procedures, warnings=0 if warned else 1)


def _guidance(procedure: Procedure) -> Guidance:
    cause = procedure.record.get("identified_root_cause", "")
    return Guidance(procedure.trigger, procedure.steps, cause, warns=procedure.warns, reported=procedure.reported)


def _asked(question: Question) -> dict[str, Any]:
    search = question.search
    with_vector = search.vector is not None
    return {
        "agent_key": search.agent_key,
        "query": search.query if question.said is None else question.said,
        "query_model": search.model if with_vector else None,
        "query_vector": search.vector,
        "min_similarity": question.min_similarity if with_vector else None,
    }


def _offered(pool: Pool) -> dict[str, Any]:
    return {
        "candidate_ids": pool.ids,
        "candidate_groups": pool.group.tolist(),
        "candidate_sources": pool.source.tolist(),
        "feature_version": features.VERSION,
        "features": features.packed(pool.features),
    }


def _choice(row: Any, place: int, found: Pool, decision: Decision) -> Choice:
    scores, index = decision.scores, decision.slate[place]
    drawn = decision.slate != decision.slates[decision.arm]
    return Choice(
        row=row,
        propensity=decision.lottery.place_chance(place, index),
        q_value=None if scores.q is None else float(scores.q[index]),
        why=_why(row, drawn=drawn),
        index=index,
        features=found.features,
        scores=scores,
    )


def _mode(found: Found, degraded: list[str]) -> str:
    if found.rows and not found.rows[0].enabled:
        return "off"
    if not found.cases and not found.guides.found:
        return "empty"
    return "keyword" if set(degraded) - {"pgvector", "rewriter"} else "hybrid"


def _why(row: Any, *, drawn: bool) -> str:
    """Returns in one line which half found the case, what its record is, and whether its slate was tried out."""
    halves = [
        f"{name} match {rank}"
        for name, rank in (("semantic", row.semantic_rank), ("keyword", row.keyword_rank))
        if rank is not None
    ]
    reward = "unknown" if row.reward is None else f"{row.reward:g}"
    record = f"{row.outcome}, reward {reward}"
    reused = f", {row.reuse_reward:.1f} of {row.reuse_count:.1f} reuses rewarded" if row.reuse_count else ""
    kept = "; kept as a warning: this run failed" if row.failed else ""
    tried = "; on a slate that was tried out" if drawn else ""
    return f"{' and '.join(halves)}; {record}{reused}{kept}{tried}"
