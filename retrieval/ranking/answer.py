"""From candidates to the answer with its slate and the reasons for it, and to the entry that logs the decision."""

from collections.abc import Mapping
from uuid import UUID

import uuid_utils.compat as uuids

from policy import default, features
from policy.decide import Budget, Decision, Policy, Trial, decide
from policy.slate import Field, field_of, order
from retrieval.procedures.found import Procedure, compose
from retrieval.ranking.decisions import LoggedDecision
from retrieval.ranking.others import others
from retrieval.ranking.pool import Pool
from retrieval.ranking.question import Question
from retrieval.ranking.retrieved import Choice, Mode, Retrieved
from retrieval.ranking.search_result import SearchResult
from retrieval.sealed import opened
from retrieval.search.candidates import Candidate
from retrieval.search.profile_settings import ProfileSettings
from retrieval.sections.context import PROCEDURES_SHARE, Remembered, memory_context, with_others

LARGEST_SEED = 0x7FFF_FFFF_FFFF_FFFF


def answer(
    question: Question, found: SearchResult, pool: Pool, arms: Mapping[str, Policy | None], *, explore: bool
) -> tuple[Retrieved, LoggedDecision]:
    """Returns the answer, and the entry that logs its decision."""
    settings = found.settings
    retrieval_id = uuids.uuid7()
    k = question.k or (settings.k if settings else 0)
    rules = field_of(pool.features, pool.group, pool.source, _least_similarity(question))
    decision = decide(pool.features, rules, k, Trial(arms, _budget(settings, explore=explore), _seed(retrieval_id)))
    by_id = {row.id: row for row in found.cases}
    chosen: list[Candidate] = [opened(by_id[pool.ids[index]]) for index in decision.slate]
    beside = _others(found, decision, rules) if question.others else []
    procedures = _procedures(found, decision, warned=any(row.failed for row in chosen))
    degraded = found.degraded + _other_space(question, found, pool)
    policy = arms[decision.arm]
    context = memory_context(
        [_remembered(row) for row in chosen],
        question.token_budget,
        [each.guidance for each in procedures],
        quotes=found.quotes,
        procedures_share=settings.procedures_share if settings else PROCEDURES_SHARE,
    )
    context = with_others(context, [_remembered(row) for row in beside], question.token_budget)
    answered = Retrieved(
        retrieval_id=retrieval_id,
        choices=[_choice(row, place, pool, decision) for place, row in enumerate(chosen)],
        context=context,
        mode=_mode(found, degraded),
        policy_version=default.VERSION if policy is None else policy.version,
        degraded=degraded,
        procedures=procedures,
        others=beside[: context.shown("others")],
        threshold=found.procedures.threshold,
        rewritten=question.search.query if question.original_query is not None else None,
        why_empty=_why_empty(found, decision),
        recalled=found.recalled,
    )
    return answered, _entry(question, answered, pool, decision, k)


def _entry(question: Question, answered: Retrieved, pool: Pool, decision: Decision, k: int) -> LoggedDecision:
    search = question.search
    return LoggedDecision(
        id=answered.retrieval_id,
        agent_key=search.agent_key,
        query=search.query if question.original_query is None else question.original_query,
        rewritten=answered.rewritten,
        mode=answered.mode,
        degraded=answered.degraded,
        policy_version=answered.policy_version,
        feature_version=features.VERSION,
        seed=_seed(answered.retrieval_id),
        arm=decision.arm,
        k=k,
        min_similarity=_least_similarity(question),
        slate_propensity=decision.lottery.chance(decision.slate),
        candidate_ids=pool.ids,
        candidate_groups=pool.group.tolist(),
        candidate_sources=pool.source.tolist(),
        features=features.packed(pool.features),
        scores=decision.scores.total.tolist(),
        query_model=None if search.vector is None else search.model,
        query_vector=search.vector,
        procedure_ids=[each.id for each in answered.procedures],
        procedure_versions=[each.version for each in answered.procedures],
        tokens=answered.context.tokens,
        case_ids=[choice.row.id for choice in answered.choices],
        propensities=[choice.propensity for choice in answered.choices],
    )


def _seed(retrieval_id: UUID) -> int:
    return retrieval_id.int & LARGEST_SEED


def _least_similarity(question: Question) -> float | None:
    """Returns the similarity that a case must reach; None where the query has no vector to compare."""
    return None if question.search.vector is None else question.min_similarity


def _budget(settings: ProfileSettings | None, *, explore: bool) -> Budget:
    return Budget(settings.explore, settings.canary) if settings and explore else Budget(0, 0, 0)


def _other_space(question: Question, found: SearchResult, pool: Pool) -> list[str]:
    """Returns what is missing where the bank's vectors are of another space than the query's."""
    if not pool.ids or question.search.vector is None or found.settings is None:
        return []
    return ["embedding_model"] if found.settings.embedding_model != question.search.model else []


def _why_empty(found: SearchResult, decision: Decision) -> str | None:
    """Returns why there is no case on the slate; None where there is one."""
    if decision.slate:
        return None
    if found.is_off:
        return "memory is switched off for this " + ("agent" if found.wanted else "request")
    if found.candidates and not found.cases:
        return "no case is related to the query: none is near it, and none shares a rare word with it"
    if not decision.allowed:
        return "there is no case that may be shown"
    if decision.slates[decision.arm]:
        return "left empty to see what is done without memory"
    return "no case is expected to help"


def _procedures(found: SearchResult, decision: Decision, *, warned: bool) -> list[Procedure]:
    """Returns the procedures shown beside the slate; a failed case on it is the one warning that there may be.

    A slate left empty shows what is done without any memory: then there is none of theirs, either.
    """
    if not found.procedures.found or found.settings is None or (not decision.slate and decision.allowed):
        return []
    return compose(found.procedures.found, found.settings.procedures, warnings=0 if warned else 1)


def _others(found: SearchResult, decision: Decision, rules: Field) -> list[Candidate]:
    """Returns the cases that are told beside the slate."""
    ordered, plans = order(rules, decision.scores.total), [row.plan for row in found.cases]
    return [opened(found.cases[index]) for index in others(rules, ordered, decision.slate, plans)]


def _remembered(row: Candidate) -> Remembered:
    return Remembered(row.task, row.plan, row.outcome, row.reward, row.reward_source)


def _choice(row: Candidate, place: int, pool: Pool, decision: Decision) -> Choice:
    scores, index = decision.scores, decision.slate[place]
    drawn = decision.slate != decision.slates[decision.arm]
    return Choice(
        row=row,
        propensity=decision.lottery.place_chance(place, index),
        q_value=None if scores.q is None else float(scores.q[index]),
        why=_why(row, drawn=drawn),
        index=index,
        features=pool.features,
        scores=scores,
    )


def _mode(found: SearchResult, degraded: list[str]) -> Mode:
    if found.is_off:
        return "off"
    if not found.candidates and not found.procedures.found:
        return "empty"
    return "keyword" if set(degraded) - {"pgvector", "rewriter"} else "hybrid"


def _why(row: Candidate, *, drawn: bool) -> str:
    """Returns in one line which half found the case, what its record is, and whether its slate was tried out."""
    halves = [
        f"{name} match {rank}"
        for name, rank in (("semantic", row.semantic_rank), ("keyword", row.keyword_rank))
        if rank is not None
    ]
    reward = "unknown" if row.reward is None else f"{row.reward:g}"
    record = f"{row.outcome}, reward {reward}"
    reused = f", {row.reuse_reward:.1f} of {row.reuse_count:.1f} reuses rewarded" if round(row.reuse_count, 1) else ""
    kept = "; kept as a warning: this run failed" if row.failed else ""
    tried = "; on a slate that was tried out" if drawn else ""
    return f"{' and '.join(halves)}; {record}{reused}{kept}{tried}"
