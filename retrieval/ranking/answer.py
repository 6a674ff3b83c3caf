"""Ranks the candidates of a query, composes the answer, and makes the log entry of the decision."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import uuid_utils.compat as uuids

from policy import features
from policy.decide import REPLAYED, Budget, Decision, Policy, Trial, decide
from policy.slate import ranking, traits_of
from retrieval.procedures.lessons import CaseLesson
from retrieval.procedures.procedure import Procedure, ShownCases, compose_procedures
from retrieval.procedures.quarantine import fits_proven
from retrieval.ranking.others import others
from retrieval.ranking.pool import Pool
from retrieval.ranking.question import Question
from retrieval.ranking.retrieved import Choice, Mode, Retrieved
from retrieval.ranking.search_result import SearchResult
from retrieval.ranking.why import TellingWords, why
from retrieval.sealed import opened, unreadable
from retrieval.search.candidates import Candidate
from retrieval.sections.cases import CasesSection, OthersSection, Remembered, tool_called
from retrieval.sections.context import MemoryContext, memory_context
from retrieval.sections.procedures import ProceduresSection
from retrieval.sections.tools import ToolsSection

LARGEST_SEED = 0x7FFF_FFFF_FFFF_FFFF


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """The decision on a query's candidates, and everything that the answer shows.

    Attributes:
        k: largest number of cases on the slate.
        pool: the candidates as the policy sees them.
        policy: the policy that served; None: the untrained default.
        cases: the cases on the slate, the best first, decrypted.
        others: further runs to show below the slate, decrypted.
        procedures: procedures to show, the best first.
        quarantine: true if procedures and lessons are shown only if proven runs taught them or a person pinned them.
        degraded: names of the parts of the search that failed.
    """

    retrieval_id: UUID
    seed: int
    k: int
    pool: Pool
    decision: Decision
    policy: Policy | None
    cases: Sequence[Candidate]
    others: Sequence[Candidate]
    procedures: Sequence[Procedure]
    quarantine: bool
    degraded: list[str]
    mode: Mode

    @property
    def case_ids(self) -> list[UUID]:
        """Ids of the cases on the slate, in the order of places."""
        return [row.id for row in self.cases]

    @property
    def propensities(self) -> list[float]:
        """Propensities of the cases on the slate, in the order of places."""
        decision = self.decision
        return [decision.lottery.place_chance(place, index) for place, index in enumerate(decision.slate)]

    @property
    def policy_version(self) -> str:
        """Version of the policy that served."""
        return REPLAYED if self.policy is None else self.policy.version


def rank(
    question: Question, result: SearchResult, pool: Pool, arms: Mapping[str, Policy | None], *, explore: bool
) -> Ranked:
    """Returns the slate that a policy chooses from the candidates, and the other runs and procedures to show."""
    settings, retrieval_id = result.settings, uuids.uuid7()
    k = question.k or (settings.k if settings else 0)
    seed = retrieval_id.int & LARGEST_SEED
    budget = Budget(settings.explore, settings.canary) if settings and explore else Budget(0, 0, 0)
    traits = traits_of(pool.features, pool.group, pool.source, _least_similarity(question))
    decision = decide(pool.features, traits, k, Trial(arms, budget, seed))
    by_id = {row.id: row for row in result.cases}
    cases: list[Candidate] = [opened(by_id[pool.ids[index]], result.seal) for index in decision.slate]
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
    return Ranked(
        retrieval_id=retrieval_id,
        seed=seed,
        k=k,
        pool=pool,
        decision=decision,
        policy=arms[decision.arm],
        cases=cases,
        others=beside,
        procedures=procedures,
        quarantine=quarantine,
        degraded=degraded,
        mode=_mode(result, degraded),
    )


def context_of(question: Question, result: SearchResult, ranked: Ranked, tools: Iterable[str]) -> MemoryContext:
    """Returns the text for the prompt."""
    share = result.settings.procedures_share if result.settings and ranked.cases else 1.0
    return memory_context(
        question.token_budget,
        *result.quotes,
        ProceduresSection([each.guidance(ranked.case_ids) for each in ranked.procedures], share),
        CasesSection([_remembered(row) for row in ranked.cases]),
        OthersSection([_remembered(row) for row in ranked.others]),
        ToolsSection(tools),
    )


def compose(
    question: Question,
    result: SearchResult,
    ranked: Ranked,
    context: MemoryContext,
    lessons: Mapping[UUID, CaseLesson],
) -> Retrieved:
    """Returns the answer to a request for memory, with the reason for each case."""
    decision, pool = ranked.decision, ranked.pool
    drawn = decision.slate != decision.slates[decision.arm]
    words = TellingWords.of(pool, question.search.query)
    choices = [
        Choice(
            row=row,
            propensity=propensity,
            q_value=None if decision.scores.q is None else float(decision.scores.q[index]),
            why=why(pool, index, row, words, slate_drawn=drawn),
            index=index,
            features=pool.features,
            scores=decision.scores,
        )
        for row, index, propensity in zip(ranked.cases, decision.slate, ranked.propensities, strict=True)
    ]
    return Retrieved(
        retrieval_id=ranked.retrieval_id,
        choices=choices,
        context=context,
        mode=ranked.mode,
        policy_version=ranked.policy_version,
        degraded=ranked.degraded,
        procedures=ranked.procedures,
        others=ranked.others[: context.shown("others")],
        threshold=result.procedures.threshold,
        rewritten=_rewritten(question),
        why_empty=_why_empty(question, result, decision),
        recalled=result.recalled,
        lessons=lessons,
    )


def entry_of(
    question: Question, result: SearchResult, ranked: Ranked, context: MemoryContext, lessons: Mapping[UUID, CaseLesson]
) -> dict[str, Any]:
    """Returns the entry of the decision for ``decisions.log``; shown lessons are logged as shown procedures."""
    search, decision, pool = question.search, ranked.decision, ranked.pool
    procedures = {each.id: each.version for each in ranked.procedures}
    procedures |= {each.id: each.version for each in lessons.values()}
    is_kept = result.settings is None or result.settings.enabled  # where the user's memory is off, no query is stored
    quotes = [each.quotes for each in result.quotes]
    asked = search.query if question.original_query is None else question.original_query
    return {
        "id": ranked.retrieval_id,
        "agent_key": search.agent_key,
        "query": asked if is_kept else "",
        "rewritten": _rewritten(question) if is_kept else None,
        "mode": ranked.mode,
        "degraded": ranked.degraded,
        "policy_version": ranked.policy_version,
        "feature_version": features.VERSION,
        "seed": ranked.seed,
        "arm": decision.arm,
        "k": ranked.k,
        "min_similarity": _least_similarity(question),
        "slate_propensity": decision.lottery.chance(decision.slate),
        "candidate_ids": pool.ids,
        "candidate_groups": pool.group.tolist(),
        "candidate_sources": pool.source.tolist(),
        "features": features.packed(pool.features),
        "scores": decision.scores.total.tolist(),
        "procedure_ids": list(procedures),
        "procedure_versions": list(procedures.values()),
        "tokens": context.tokens,
        "case_ids": ranked.case_ids,
        "propensities": ranked.propensities,
        "quoted_ids": [
            *(row.id for row in [*ranked.cases, *ranked.others]),
            *(id_ for each in quotes for id_ in each.ids),
        ],
        "quoted_sessions": list({name for each in quotes for name in each.sessions}),
    }


def _least_similarity(question: Question) -> float | None:
    """Returns the least similarity of a case that the request allows; None if the query has no vector to compare."""
    return None if question.search.vector is None else question.min_similarity


def _rewritten(question: Question) -> str | None:
    """Returns the query that was searched for in place of the request's; None if the request's own was."""
    return None if question.original_query is None else question.search.query


def _remembered(row: Candidate) -> Remembered:
    return Remembered(row.task, row.plan, row.outcome, row.reward, row.reward_source)


def _mode(result: SearchResult, degraded: list[str]) -> Mode:
    if result.is_off:
        return "off"
    if not result.found and not result.procedures:
        return "empty"
    return "keyword" if set(degraded) - {"pgvector", "rewriter", "unreadable"} else "hybrid"


def _why_empty(question: Question, result: SearchResult, decision: Decision) -> str | None:
    """Returns the reason why no case is on the slate; None if there is one."""
    if decision.slate:
        return None
    if result.is_off:
        return "memory is switched off for this " + ("agent" if question.memory else "request")
    if result.unreadable and not result.cases:
        return "no case that was found decrypts"
    if result.found and not result.cases:
        return "no case is related to the query: none is near it, and none shares a rare word with it"
    if not decision.allowed:
        return "there is no case that may be shown"
    return "left empty to see what is done without memory"
