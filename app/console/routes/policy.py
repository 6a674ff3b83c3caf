"""Page of the policy: the one in service, its trial, the checks of the gate, and the rollback."""

from fastapi import APIRouter, HTTPException, Request, Response

from app.console.charts import Axes, Chart, Point, Series, chart
from app.console.page import ROOT, Form, Looking, Page, go, show
from app.console.routes.bank import be_sure
from app.routes.bank import get_profile
from app.routes.policy import get_policy, roll_back_policy
from app.schemas.bank import AgentIn
from policy.verdict import Verdict, trial_of
from writer.training.candidates import Demand

router = APIRouter(prefix=f"{ROOT}/policy", route_class=Page, include_in_schema=False)


LEAST_ROWS = 10
"""Least number of decisions behind a point of the calibration chart; the table shows every point."""


@router.get("")
async def policy_page(request: Request, looking: Looking) -> Response:
    """Returns the page of an agent's policies, with the gate's verdict on the newest judged one."""
    if looking.agent is None:
        return show(request, "begin.html", looking)
    known = await get_policy(looking.agent, looking.parts, looking.author)
    profile = await get_profile(looking.agent, looking.parts, looking.author)
    judged = next((each for each in known.policies if each.verdict), None)
    verdict = trial_of(judged.verdict if judged else None)
    return show(
        request,
        "policy.html",
        looking,
        known=known,
        demand=Demand(),
        trains=profile.learning and profile.canary > 0,
        training=training_note(looking.parts.settings.train_every_s),
        trial=next((each for each in known.policies if each.status == "candidate"), None),
        judged=judged,
        verdict=verdict,
        kept=_calibration(verdict),
    )


@router.post("/roll-back")
async def roll_back(looking: Looking, form: Form) -> Response:
    """Takes the serving policy out of service, if the confirmation box is ticked."""
    be_sure(form)
    if looking.agent is None:
        raise HTTPException(404, "no policy is in service")
    await roll_back_policy(AgentIn(agent=looking.agent), looking.parts, looking.author)
    return go(f"{ROOT}/policy", agent=looking.agent)


def training_note(every_s: float) -> str:
    """Returns a sentence that says when policies are trained."""
    if not every_s:
        return "Policies are trained and checked only by the command “casebank train” and by the API."
    return f"Policies are trained and checked every {every_s / 3600:g} hours, or now with “casebank train”."


def _calibration(verdict: Verdict | None) -> Chart | None:
    """Returns the chart of actual against predicted rewards."""
    if verdict is None or verdict.calibration is None:
        return None
    line = [Point(each.predicted, each.observed) for each in verdict.calibration.bins if each.rows >= LEAST_ROWS]
    labels = [(tenth / 5, f"{tenth / 5:.1f}") for tenth in range(6)]
    description = "Actual reward by predicted reward; on the thin line both are equal."
    return chart("Calibration", description, [Series("reward", line)], Axes(labels, (0.0, 1.0), diagonal=True))
