"""Ranks the candidates of a query, composes the answer, and makes the log entry of the decision."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

import uuid_utils.compat as uuids

from policy import features
from policy.decide import Budget, Policy, Trial, decide
from policy.slate import ranking, traits_of
from retrieval.procedures.procedure import Procedure, ShownCases, compose_procedures
from retrieval.procedures.quarantine import fits_proven
from retrieval.ranking.others import others
from retrieval.ranking.pool import Pool
from retrieval.ranking.retrieved import Choice, Question, Retrieved, SearchResult
from retrieval.ranking.why import TellingWords, why
from retrieval.sealed import opened, unreadable
from retrieval.search.candidates import Candidate
from retrieval.sections.cases import CasesSection, OthersSection, Remembered, tool_called
from retrieval.sections.context import memory_context
from retrieval.sections.procedures import ProceduresSection
from retrieval.sections.quoting import quoted_list
from retrieval.sections.tools import ToolsSection

LARGEST_SEED = 0x7FFF_FFFF_FFFF_FFFF


def rank(
    question: Question, result: SearchResult, pool: Pool, arms: Mapping[str, Policy | None], *, explore: bool
) -> Retrieved:
    """Returns the slate that a policy chooses from the candidates, and the other runs and procedures to show."""
    settings, retrieval_id = result.settings, uuids.uuid7()
    k = question.k or (settings.k if settings else 0)
    budget = Budget(settings.explore, settings.canary) if settings and explore else Budget(0, 0, 0)
    traits = traits_of(pool.features, pool.group, pool.source, _least_similarity(question))
    decision = decide(pool.features, traits, k, Trial(arms, budget, seed_of(retrieval_id)))
    cases: list[Candidate] = [opened(result.cases[index], result.seal) for index in decision.slate]
    beside: list[Candidate] = []
    ordered = ranking(traits, decision.scores.total)
    if question.others:
        plans = [row.plan for row in result.cases]
        beside = [opened(result.cases[index], result.seal) for index in others(traits, ordered, decision.slate, plans)]
    procedures: list[Procedure] = []
    quarantine = pool.fit.mostly_proven and fits_proven(traits, result.procedures, result.threshold.similarity)
    # a slate left empty on purpose shows what is done without any memory, so it goes without procedures, too
    if result.procedures and settings is not None and (decision.slate or not decision.allowed):
        teach = ~traits.failed & (traits.proven if quarantine else True)
        broken = unreadable(cases)
        readable = [row for row in cases if row.id not in broken]
        served = [index for index in dict.fromkeys([*decision.slate, *ordered]) if teach[index]]
        shown = ShownCases(
            pool.places(served),
            traits.similarity[served].tolist(),
            slate=frozenset(pool.places([index for index in decision.slate if teach[index]])),
            went_well=frozenset(row.id for row in cases if not row.failed),
            tools=frozenset(filter(None, (tool_called(step) for row in readable for step in row.plan))),
            warn=any(row.failed for row in cases),
        )
        procedures = compose_procedures(result.procedures, settings.procedures, shown, quarantine=quarantine)
    degraded = list(result.degraded)
    other_model = settings is not None and settings.embedding_model != question.search.model
    if pool.ids and question.search.vector is not None and other_model:
        degraded.append("embedding_model")
    if result.unreadable:
        degraded.append("unreadable")
    return Retrieved(
        question=question,
        result=result,
        retrieval_id=retrieval_id,
        k=k,
        pool=pool,
        decision=decision,
        policy=arms[decision.arm],
        cases=cases,
        others=beside,
        procedures=procedures,
        quarantine=quarantine,
        degraded=degraded,
    )


def seed_of(retrieval_id: UUID) -> int:
    """Returns the seed of a decision's random draws, the last bits of its id."""
    return retrieval_id.int & LARGEST_SEED


def compose(answer: Retrieved, tools: Iterable[str]) -> None:
    """Adds the text for the prompt to the answer, and leaves out the further runs that did not fit into it.

    A procedure whose steps are a case's actions names the case in their place, if the budget lets the text quote them.
    """
    result, cases = answer.result, answer.cases
    share = result.settings.procedures_share if result.settings and cases else 1.0
    remembered, beside = (
        [Remembered(row.task, row.plan, row.outcome, row.reward, row.reward_source) for row in rows]
        for rows in (cases, answer.others)
    )
    below = (CasesSection(remembered), OthersSection(beside), ToolsSection([*tools]))
    plans = {row.id: () if row.failed else row.plan for row in cases}
    for shown in (plans, dict.fromkeys(plans, ())):  # the second time, each procedure quotes its steps
        guides = [each.guidance(shown) for each in answer.procedures]
        procedures = ProceduresSection(guides, share)
        answer.context = memory_context(answer.question.token_budget, *result.quotes, procedures, *below)
        if all(quoted_list(cases[each.case - 1].plan) in answer.context.text for each in guides if each.case):
            break
    answer.others = answer.others[: answer.context.shown("others")]


def explain(answer: Retrieved) -> None:
    """Adds the places of the slate to the answer, each with the reason for its case."""
    decision, pool = answer.decision, answer.pool
    drawn = decision.slate != decision.slates[decision.arm]
    words = TellingWords.of(pool, answer.question.search.query)
    answer.choices = [
        Choice(
            row=row,
            propensity=propensity,
            q_value=None if decision.scores.q is None else float(decision.scores.q[index]),
            why=why(pool, answer.result.cases, index, words, slate_drawn=drawn),
        )
        for row, index, propensity in zip(answer.cases, decision.slate, answer.propensities, strict=True)
    ]


def entry_of(answer: Retrieved) -> dict[str, Any]:
    """Returns the entry of the decision for ``decisions.log``; shown lessons are logged as shown procedures."""
    question, settings, decision, pool = answer.question, answer.result.settings, answer.decision, answer.pool
    procedures = {each.id: each.version for each in answer.procedures}
    procedures |= {each.id: each.version for each in answer.lessons.values()}
    is_kept = settings is None or settings.enabled  # where the user's memory is off, no query is stored
    quotes = [each.quotes for each in answer.result.quotes]
    asked = question.search.query if question.original_query is None else question.original_query
    return {
        "id": answer.retrieval_id,
        "agent_key": question.search.agent_key,
        "query": asked if is_kept else "",
        "rewritten": answer.rewritten if is_kept else None,
        "mode": answer.mode,
        "degraded": answer.degraded,
        "policy_version": answer.policy_version,
        "feature_version": features.VERSION,
        "seed": seed_of(answer.retrieval_id),
        "arm": decision.arm,
        "k": answer.k,
        "min_similarity": _least_similarity(question),
        "slate_propensity": decision.lottery.chance(decision.slate),
        "candidate_ids": pool.ids,
        "candidate_groups": pool.group.tolist(),
        "candidate_sources": pool.source.tolist(),
        "features": features.packed(pool.features),
        "scores": decision.scores.total.tolist(),
        "procedure_ids": list(procedures),
        "procedure_versions": list(procedures.values()),
        "tokens": answer.context.tokens,
        "case_ids": answer.case_ids,
        "propensities": answer.propensities,
        "quoted_ids": [
            *(row.id for row in [*answer.cases, *answer.others]),
            *(id_ for each in quotes for id_ in each.ids),
        ],
        "quoted_sessions": list({name for each in quotes for name in each.sessions}),
    }


def _least_similarity(question: Question) -> float | None:
    """Returns the least similarity of a case that the request allows; None if the query has no vector to compare."""
    return None if question.search.vector is None else question.min_similarity
