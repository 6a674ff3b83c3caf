"""``casebank impact``: reports whether memory helped, as tables or as the API's JSON."""

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.table import Table

from app.impact.report import ImpactRequest, impact_of
from app.schemas.impact import RunMeansOut
from app.terminal.command_line import Agent, User, checked, parts
from app.terminal.plain_console import out
from app.terminal.run_to_end import runs_to_end


@runs_to_end
async def show_impact(
    user: User,
    agent: Agent,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="print the report as the API's JSON")] = False,
) -> None:
    """Report whether memory helped: rewards with memory beside those with none and with other policies."""
    async with parts(only_reads=True) as runtime:
        report = await impact_of(runtime, ImpactRequest(checked(user), datetime.now(UTC), agent))
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
        return
    seen = report.looked_at
    counted = f"{seen.decisions:,} decisions that had candidates (at most {seen.most:,})"
    out.print(f"{seen.rewarded:,} rewarded of the newest {counted}")
    for each in report.differences:
        version = f" ({each.policy_version})" if each.policy_version else ""
        out.print(f"beside {each.less}{version}: {each.sentence}", soft_wrap=True)
    weeks = Table("week of", "decisions", "hit rate", "reuse", "tokens", "runs with memory", "without")
    for week in report.weeks:
        rates = _percent(week.hit_rate), _percent(week.reuse_rate)
        tokens = "-" if week.mean_tokens is None else f"{week.mean_tokens:.0f}"
        runs = _runs(week.with_memory), _runs(week.without_memory)
        weeks.add_row(f"{week.starts:%F}", str(week.decisions), *rates, tokens, *runs)
    out.print(weeks)
    for case in report.never_helped:
        out.print(f"never helped, judged {case.judged} times: {case.case_id} {case.task[:60]}", soft_wrap=True)
    for procedure in report.put_right:
        used = f"{procedure.use_reward:.1f} of {procedure.uses:.1f}"
        out.print(f"put things right, {used}: {procedure.procedure_id} {procedure.name}", soft_wrap=True)


def _runs(runs: RunMeansOut | None) -> str:
    return "-" if runs is None else f"{runs.runs}: {runs.steps:.1f} steps, {runs.errors:.1f} errors"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"
