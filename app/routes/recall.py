"""Recall: what was said in any session of the user's with an agent, and what is known, by what a question is about."""

from dataclasses import asdict

from fastapi import APIRouter

from app.edge.dependencies import Caller, Parts
from app.edge.intake.route import BodyRoute
from app.edge.problems import DOCUMENTED, raises
from app.schemas.recall import RecalledMemoryOut, RecallIn, RecallOut, SessionFoundOut, SourceOut
from retrieval.recall.memory import KnowledgeSource, Memory, Recalled, RecallQuestion, TurnSource
from writer.errors import SecretInName
from writer.privacy.names import nameable

router = APIRouter(tags=["recall"], responses=DOCUMENTED, route_class=BodyRoute)


@router.post("/v1/recall", responses=raises(SecretInName))
async def recall(asked: RecallIn, parts: Parts, caller: Caller) -> RecallOut:
    """Finds turns, facts and knowledge by their words and their meaning, each with where it comes from."""
    await parts.admission.of_agent(caller, "reads", asked.agent)
    question = RecallQuestion(
        agent_key=nameable(asked.agent),
        query=asked.query,
        top_k=asked.top_k,
        kinds=asked.kinds,
        session=asked.session_id,
        as_of=asked.as_of,
        token_budget=asked.token_budget,
    )
    found = await parts.reader.recall(caller.user_sub, caller.authorised_at, question)
    return recalled_out(found)


def recalled_out(found: Recalled) -> RecallOut:
    """Returns what was found as recall answers it."""
    return RecallOut(
        memories=[_memory(each) for each in found.memories],
        sessions=[SessionFoundOut(**asdict(each)) for each in found.sessions],
        tokens=found.tokens,
        left_out=found.left_out,
        degraded=list(found.degraded),
    )


def _memory(memory: Memory) -> RecalledMemoryOut:
    source = memory.source
    if isinstance(source, TurnSource):
        shown = SourceOut(
            session_id=source.session_id, turn_number=source.number, role=source.role, said_at=source.said_at
        )
    elif isinstance(source, KnowledgeSource):
        shown = SourceOut(
            knowledge_id=source.knowledge_id, category=source.category, type=source.entry_type, shared=source.shared
        )
    else:
        shown = SourceOut(
            fact_id=source.fact_id,
            fact_kind=source.kind,
            said_by=source.said_by,
            valid_from=source.valid_from,
            valid_to=source.valid_to,
        )
    return RecalledMemoryOut(
        kind=memory.kind,
        text=memory.text,
        rank=memory.rank,
        relevance=memory.relevance,
        similarity=memory.similarity,
        source=shown,
    )
