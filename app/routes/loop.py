"""Routes of the loop: retrieve before acting, retain after, feedback once the outcome is known.

``retain`` takes a finished run that ``prepare`` has redacted and measured in the process that validated the body: a
side process if the body is large. If the route called ``prepare``, a large run would be copied from there and back on
the event loop, which takes half a second for 2 MB of small values; the ``PreparedRun`` of that body has 0.1 MB.
"""

from typing import Annotated

from fastapi import Header, Response

from app.edge.dependencies import Caller, Parts
from app.edge.intake.reading import MadeFrom
from app.edge.routers import api_router
from app.runtime import Runtime
from app.schemas.loop import (
    FeedbackIn,
    FeedbackOut,
    HybridSearchIn,
    LessonOut,
    Memory,
    RetainOut,
    RetrieveIn,
    RetrieveOut,
    SlotOut,
)
from app.schemas.responses import response_of
from retrieval.procedures.lessons import lesson_of
from retrieval.ranking.retrieved import Question, Retrieved
from retrieval.search.candidates import CaseSearch, Filters
from retrieval.tables.columns import ALL_AGENTS
from retrieval.telemetry import REWARDS
from writer.author import Author
from writer.privacy.names import nameable
from writer.retain.memory import MemoriesIn, PreparedMemories, prepared
from writer.retain.prepare import PreparedRun, prepare
from writer.retain.retain import store
from writer.rewards.feedback import Feedback, give_feedback
from writer.run import FinishedRun

router = api_router("the loop")

RETRIEVAL_ID = "X-Casebank-Retrieval-Id"
"""Header with the id of the retrieval, for a response whose body has no field for it."""

IdempotencyKey = Annotated[
    str | None,
    Header(min_length=1, max_length=255, description="a repeated key with the same body returns the same case"),
]


@router.post("/v1/retain", status_code=202)
async def retain(
    run: Annotated[PreparedRun, MadeFrom(FinishedRun, prepare)],
    parts: Parts,
    caller: Caller,
    idempotency_key: IdempotencyKey = None,
) -> RetainOut:
    """Stores one finished run and answers once it is on disk; the worker then makes it searchable.

    Only a service may send the `reward_source` `judge` or `metric`: a user's own token gets a 403.
    """
    caller.claim(run.reward_source)
    await parts.admission.of_agent(caller, "writes", run.agent_key)
    return await _stored(run, parts, caller, idempotency_key)


async def _stored(run: PreparedRun, parts: Runtime, caller: Author, idempotency_key: str | None) -> RetainOut:
    retained = await store(parts.database, parts.keyring, run, caller, idempotency_key)
    parts.admission.backlog.took(caller.user_sub)
    parts.worker.wake()
    return RetainOut.model_validate(retained, from_attributes=True)


@router.post("/v1/retrieve")
async def retrieve(question: RetrieveIn, parts: Parts, caller: Caller) -> RetrieveOut:
    """Returns up to k earlier runs that may help, with a text for the prompt, and logs the decision."""
    await parts.admission.of_agent(caller, "reads", question.agent)
    slate = await parts.reader.retrieve(caller.user_sub, caller.authorised_at, question_of(question))
    return response_of(
        RetrieveOut,
        slate,
        cases=[
            response_of(
                SlotOut,
                choice.row,
                q_value=choice.q_value,
                propensity=choice.propensity,
                why=choice.why,
                explain=slate.terms(place) if question.explain else None,
            )
            for place, choice in enumerate(slate.choices)
        ],
        memory_context=slate.context.text,
        tokens=slate.context.tokens,
        parts=slate.context.parts,
    )


@router.post("/v1/feedback")
async def feedback(body: FeedbackIn, parts: Parts, caller: Caller) -> FeedbackOut:
    """Rewards a retrieval or its run, and with it the cases and procedures that were used.

    The newest reward of the most trusted source counts; earlier rewards stay in the log. A reward under 0.5 takes the
    procedures learned from the run out of use, and the worker then revises those that the run used. Only a service may
    send the `source` `judge` or `metric`: a user's own token gets a 403.
    """
    caller.claim(body.source)
    reward = Feedback(body.value, body.source, body.case_id, body.retrieval_id)
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        reached = await give_feedback(connection, caller.user_sub, caller.actor, reward)
    REWARDS.labels(body.source).inc()
    parts.worker.wake()
    return response_of(FeedbackOut, reached)


@router.post(
    "/functions/v1/hybrid-search-context-eng",
    responses={200: {"headers": {RETRIEVAL_ID: {"schema": {"type": "string", "format": "uuid"}}}}},
)
async def hybrid_search(body: HybridSearchIn, parts: Parts, caller: Caller, response: Response) -> list[Memory]:
    """Returns the top memories for a query, with the path and body of existing hosted flows.

    Without an `agent` it searches the memories of all agents of the user. The header `X-Casebank-Retrieval-Id` has the
    id for the `retrieval_id` of the run or for `/v1/feedback`, so that a reward credits the returned memories.
    """
    agent_key = ALL_AGENTS if body.agent is None else nameable(body.agent)
    await parts.admission.of_agent(caller, "reads", agent_key)
    question = Question(CaseSearch(agent_key, body.query), body.match_count, token_budget=0, others=False, lessons=True)
    slate: Retrieved = await parts.reader.retrieve(caller.user_sub, caller.authorised_at, question)
    response.headers[RETRIEVAL_ID] = str(slate.retrieval_id)
    return [
        response_of(
            Memory,
            choice.row,
            metadata=LessonOut.model_validate(lesson_of(slate.lessons.get(choice.row.id), choice.row.error_count)),
        )
        for choice in slate.choices
    ]


@router.post("/rest/v1/context_eng_memories", status_code=201)
async def insert_memory(
    memories: Annotated[PreparedMemories, MadeFrom(MemoriesIn, prepared)],
    parts: Parts,
    caller: Caller,
    idempotency_key: IdempotencyKey = None,
) -> RetainOut | list[RetainOut]:
    """Stores a memory that a flow made by itself, with the path and body of existing hosted flows.

    Its learned-procedure record becomes a procedure. Secrets are removed and the text is sealed, as with a retain. Of a
    list each memory is stored by itself, in its order, and the answer is a list.
    """
    for run in memories.runs:  # before the first is stored: a refusal stores none
        await parts.admission.of_agent(caller, "writes", run.agent_key)
    kept: list[RetainOut] = []
    for place, run in enumerate(memories.runs):
        key = f"{idempotency_key}:{place}" if idempotency_key and place else idempotency_key
        kept.append(await _stored(run, parts, caller, key))
    return kept if memories.is_list else kept[0]


def question_of(body: RetrieveIn) -> Question:
    """Returns the question for the retrieval, from the body of a request."""
    filters = Filters(body.filters.tags, body.filters.kinds, body.filters.outcomes)
    search = CaseSearch(
        agent_key=nameable(body.agent),
        query=body.query,
        filters=filters,
        full_text_weight=body.full_text_weight,
        semantic_weight=body.semantic_weight,
        rrf_k=body.rrf_k,
    )
    return Question(
        search,
        body.k,
        body.token_budget,
        body.min_similarity,
        memory=body.memory,
        tool_memory=body.tool_memory,
        others=body.others,
        rewrite=body.rewrite,
        session=body.session_id,
        recall=body.recall,
    )
