"""Route for recall: search turns of all sessions, facts and knowledge of an agent by a question."""

from app.edge.dependencies import Caller, Parts
from app.edge.routers import api_router
from app.schemas.recall import RecallIn, RecallOut
from app.schemas.responses import response_of
from retrieval.recall.memory import RecallQuestion
from writer.privacy.names import nameable

router = api_router("recall")


@router.post("/v1/recall")
async def recall(body: RecallIn, parts: Parts, caller: Caller) -> RecallOut:
    """Searches turns, facts and knowledge by keywords and meaning; each result has its source."""
    await parts.admission.of_agent(caller, "reads", body.agent)
    question = RecallQuestion(
        agent_key=nameable(body.agent),
        query=body.query,
        top_k=body.top_k,
        kinds=body.kinds,
        session=body.session_id,
        as_of=body.as_of,
        token_budget=body.token_budget,
    )
    return response_of(RecallOut, await parts.reader.recall(caller.user_sub, caller.authorised_at, question))
