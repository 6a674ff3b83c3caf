"""The loop: retrieve before acting, retain after, feedback whenever the outcome is known."""

from typing import Annotated

from fastapi import APIRouter, Header, Response

from app.admission.errors import QueueFull
from app.edge.dependencies import Caller, Parts
from app.edge.intake.route import BodyRoute
from app.edge.problems import DOCUMENTED, raises
from app.routes.procedures import procedure_out, threshold_out
from app.routes.recall import recalled_out
from app.schemas.loop import (
    FeedbackIn,
    FeedbackOut,
    HybridSearchIn,
    LessonOut,
    Memory,
    OtherOut,
    PartOut,
    RedactionOut,
    RetainOut,
    RetrieveIn,
    RetrieveOut,
    SlotOut,
)
from retrieval.errors import NotFound
from retrieval.procedures.lessons import lesson_of
from retrieval.ranking.question import Question
from retrieval.ranking.retrieved import Choice, Retrieved
from retrieval.search.candidates import Candidate, Filters, Search
from retrieval.tables.columns import ALL_AGENTS
from retrieval.telemetry import REWARDS
from writer.errors import IdempotencyConflict, NotJoined, RunEnded, SecretInName, SourceNotAllowed, UnknownReference
from writer.privacy.names import nameable
from writer.privacy.seal import PayloadTooLarge
from writer.retain.draft import Draft
from writer.retain.retain import retain_draft
from writer.rewards.feedback import Feedback, give_feedback

router = APIRouter(tags=["the loop"], responses=DOCUMENTED, route_class=BodyRoute)

RETRIEVAL_ID = "X-Casebank-Retrieval-Id"
"""The header that names the retrieval where the body has no place for it."""

IdempotencyKey = Annotated[
    str | None,
    Header(min_length=1, max_length=255, description="the same key with the same body is the same case"),
]


@router.post(
    "/v1/retain",
    status_code=202,
    responses=raises(
        IdempotencyConflict, UnknownReference, SecretInName, SourceNotAllowed, PayloadTooLarge, QueueFull, RunEnded
    ),
)
async def retain(draft: Draft, parts: Parts, caller: Caller, idempotency_key: IdempotencyKey = None) -> RetainOut:
    """Stores one finished run and answers once it is on disk; the worker makes it ready to be found.

    A `reward_source` of `judge` or `metric` is a service's to claim: a user's own token is refused with 403.
    """
    caller.claim(draft.reward_source)
    await parts.admission.of_agent(caller, "writes", str(draft.columns["agent_key"]))
    retained = await retain_draft(parts.database, parts.keyring, draft, caller, idempotency_key)
    parts.admission.backlog.took(caller.user_sub)
    parts.worker.wake()
    redactions = [RedactionOut(kind=redaction.kind, count=redaction.count) for redaction in retained.redactions]
    return RetainOut(
        case_id=retained.case_id,
        status=retained.status,
        redactions=redactions,
        retrieval_id=retained.retrieval_id,
    )


@router.post("/v1/retrieve", responses=raises(SecretInName))
async def retrieve(question: RetrieveIn, parts: Parts, caller: Caller) -> RetrieveOut:
    """Returns up to k earlier runs that may help, with the text for the prompt, and logs the decision."""
    await parts.admission.of_agent(caller, "reads", question.agent)
    slate = await parts.reader.retrieve(caller.user_sub, caller.authorised_at, question_of(question))
    return RetrieveOut(
        retrieval_id=slate.retrieval_id,
        cases=[slot_out(choice, explain=question.explain) for choice in slate.choices],
        procedures=[procedure_out(each) for each in slate.procedures],
        others=[_other(row) for row in slate.others],
        procedure_threshold=None if slate.threshold is None else threshold_out(slate.threshold),
        memory_context=slate.context.text,
        tokens=slate.context.tokens,
        parts=[
            PartOut(part=each.part, tokens=each.tokens, shown=each.shown, left_out=each.left_out)
            for each in slate.context.parts
        ],
        policy_version=slate.policy_version,
        mode=slate.mode,
        degraded=slate.degraded,
        why_empty=slate.why_empty,
        recalled=None if slate.recalled is None else recalled_out(slate.recalled),
        rewritten=slate.rewritten,
    )


@router.post("/v1/feedback", responses=raises(NotFound, NotJoined, SourceNotAllowed))
async def feedback(given: FeedbackIn, parts: Parts, caller: Caller) -> FeedbackOut:
    """Judges a loop, by its retrieval or its run: both, what was shown and used, and what was learned follow.

    The newest trusted reward counts, and the history stays. A reward under 0.5 takes the procedures that the run taught
    out of use. A `source` of `judge` or `metric` is a service's to claim: a user's own token is refused with 403.
    """
    caller.claim(given.source)
    reward = Feedback(given.value, given.source, given.case_id, given.retrieval_id)
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        reached = await give_feedback(connection, caller.user_sub, caller.actor, reward)
    REWARDS.labels(given.source).inc()
    return FeedbackOut(
        reward=reached.reward,
        source=reached.source,
        case_ids=list(reached.case_ids),
        retrieval_id=reached.decision_id,
        withdrawn_procedure_ids=list(reached.withdrawn),
    )


@router.post(
    "/functions/v1/hybrid-search-context-eng",
    responses={200: {"headers": {RETRIEVAL_ID: {"schema": {"type": "string", "format": "uuid"}}}}},
)
async def hybrid_search(asked: HybridSearchIn, parts: Parts, caller: Caller, response: Response) -> list[Memory]:
    """Returns the top memories for the query, by the path and body that existing flows already call.

    Without an `agent` it searches those of all the user's agents. The header `X-Casebank-Retrieval-Id` names the
    retrieval, for the run's `retrieval_id` or for `/v1/feedback`: a reward reaches the memories that were answered.
    """
    agent_key = ALL_AGENTS if asked.agent is None else nameable(asked.agent)
    await parts.admission.of_agent(caller, "reads", agent_key)
    question = Question(Search(agent_key, asked.query), asked.match_count, token_budget=0, others=False, lessons=True)
    slate: Retrieved = await parts.reader.retrieve(caller.user_sub, caller.authorised_at, question)
    response.headers[RETRIEVAL_ID] = str(slate.retrieval_id)
    return [
        Memory(
            id=choice.row.id,
            content=choice.row.task,
            metadata=LessonOut.model_validate(lesson_of(slate.lessons.get(choice.row.id), choice.row.error_count)),
            created_dt=choice.row.created_at,
            agent=choice.row.agent_key,
            plan=choice.row.plan,
            outcome=choice.row.outcome,
            reward=choice.row.reward,
            tags=choice.row.tags,
        )
        for choice in slate.choices
    ]


def question_of(asked: RetrieveIn) -> Question:
    """Returns what a request asks, as the reader takes it."""
    filters = Filters(asked.filters.tags, asked.filters.kinds, asked.filters.outcomes)
    search = Search(
        agent_key=nameable(asked.agent),
        query=asked.query,
        filters=filters,
        full_text_weight=asked.full_text_weight,
        semantic_weight=asked.semantic_weight,
        rrf_k=asked.rrf_k,
    )
    return Question(
        search,
        asked.k,
        asked.token_budget,
        asked.min_similarity,
        memory=asked.memory,
        tool_memory=asked.tool_memory,
        others=asked.others,
        rewrite=asked.rewrite,
        session=asked.session_id,
        recall=asked.recall,
    )


def _other(row: Candidate) -> OtherOut:
    return OtherOut(case_id=row.id, task=row.task, plan=row.plan, outcome=row.outcome, reward=row.reward)


def slot_out(choice: Choice, *, explain: bool) -> SlotOut:
    """Returns a place of the slate as retrieve answers it."""
    row = choice.row
    return SlotOut(
        case_id=row.id,
        kind=row.kind,
        task=row.task,
        plan=row.plan,
        tags=row.tags,
        outcome=row.outcome,
        reward=row.reward,
        similarity=row.similarity,
        semantic_rank=row.semantic_rank,
        keyword_rank=row.keyword_rank,
        rrf=row.rrf,
        q_value=choice.q_value,
        propensity=choice.propensity,
        why=choice.why,
        explain=choice.terms() if explain else None,
    )
