"""The route for advice at a failed call."""

from fastapi import APIRouter

from app.edge.dependencies import Caller, Parts
from app.edge.intake.route import BodyRoute
from app.edge.problems import DOCUMENTED
from app.schemas.advice import AdviceIn, AdviceOut, AdvisedFixOut, AdvisedPlanOut
from app.schemas.responses import response_of
from writer.advice.answer import Answer, FailedCall
from writer.analysis.calls import calls_in

router = APIRouter(tags=["the loop"], responses=DOCUMENTED, route_class=BodyRoute)


@router.post("/v1/advice")
async def advise(failed: AdviceIn, parts: Parts, caller: Caller) -> AdviceOut:
    """Returns what put a failure like this right in earlier runs of the agent, or says why it says nothing.

    Silence is the default: a fix is told where the bank's own failures show that such fixes are right. It is logged as
    a decision; whether the failure then came back is counted once the run is retained.
    """
    await parts.admission.of_agent(caller, "reads", failed.agent)
    call, *tried = calls_in([failed.model_dump(), *(each.model_dump() for each in failed.tried)])
    asked = FailedCall(
        failed.agent,
        call,
        failed.task or "",
        failed.run_id,
        failed.retrieval_id,
        tried,
        failed.precision,
        failed.token_budget,
        failed.plans,
    )
    return advice_out(await parts.adviser.advise(caller, asked))


def advice_out(answer: Answer) -> AdviceOut:
    """Returns the answer as the API has it."""
    fixes = [response_of(AdvisedFixOut, each, dangerous=each.fix["dangerous"]) for each in answer.fixes]
    plans = [response_of(AdvisedPlanOut, each) for each in answer.plans]
    return response_of(AdviceOut, answer, fixes=fixes, plans=plans)
