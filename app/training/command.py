"""``casebank train``: trains policies from the logs. The service starts it as a process, which leaves it its own."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table
from tqdm import tqdm

from app import logs
from app.runtime import running
from app.settings import Settings
from app.terminal.command_line import MaybeUser, checked
from app.terminal.plain_console import out
from app.terminal.run_to_end import run_to_end
from app.terminal.which_database import tell_database
from policy.examples import Examples
from policy.network import Head
from policy.train import train
from retrieval.pages.listing import known_profile
from retrieval.ranking.policies import name_of
from writer.profiles import Profile
from writer.training.candidates import Recipe, TrainHeads
from writer.training.nightly import learn
from writer.training.result import TrainingResult

Engine = Literal["local", "ray"]


def locally(profiles: Sequence[Examples], seeds: Sequence[int], start: Head) -> list[Head]:
    """Trains on this machine, with a progress bar; see ``policy.train.train``."""
    with tqdm(total=len(profiles), unit=" profiles", desc="train", disable=None) as bar:
        return train(profiles, seeds, start, progress=bar.update)


def engine(name: Engine) -> TrainHeads:
    """Returns the function that trains policies: on this machine, or in portions on a Ray cluster."""
    if name == "local":
        return locally
    try:
        from app.training.ray import on_ray  # noqa: PLC0415 - an extra that most installations lack
    except ModuleNotFoundError:
        raise typer.BadParameter(
            "it needs the extra: pip install 'casebank[ray]' in casebank's environment", param_hint="--engine"
        ) from None
    return on_ray


async def run(settings: Settings, train_heads: TrainHeads, only: Profile | None, seed: int) -> list[TrainingResult]:
    """Trains and judges, and returns the result for each profile.

    Raises:
        NotFound: there is no such profile as the only one to train.
    """
    async with running(settings) as runtime:
        if only is not None:
            async with runtime.database.as_user(only.user_sub, only.seen_at) as connection:
                await known_profile(connection, only.user_sub, only.agent_key)
        recipe = Recipe(train_heads, seed=seed, first_order=settings.first_order)
        return [learnt async for learnt in learn(runtime.database, recipe, only)]


def main(  # noqa: PLR0913, PLR0917 - each is a choice of the command line
    user: MaybeUser = None,
    agent: Annotated[str | None, typer.Option(help="assistant of that user, whose profile alone is trained")] = None,
    engine_name: Annotated[Engine, typer.Option("--engine", help="local, or ray for a cluster")] = "local",
    seed: Annotated[int, typer.Option(help="seed; the same seed and logs give the same weights")] = 0,
    out_dir: Annotated[Path | None, typer.Option(help="folder for train.json", file_okay=False)] = None,
    outcomes: Annotated[
        bool,
        typer.Option(
            "--outcomes",
            help="print the number of profiles by outcome, and the decisions that trials still need, as JSON",
        ),
    ] = False,
    profile_from_stdin: Annotated[
        bool,
        typer.Option("--profile-from-stdin", help='read one profile from standard input, as {"user": …, "agent": …}'),
    ] = False,
) -> None:
    """Train policies from the logs, judge those on trial and watch those that serve."""
    logs.quiet()
    if profile_from_stdin:
        profile = json.loads(sys.stdin.read())
        user, agent = profile["user"], profile["agent"]
    if (user is None) != (agent is None):
        raise typer.BadParameter("give --user and --agent together")
    only = None if user is None or agent is None else Profile(checked(user), agent, datetime.now(UTC))
    train_heads = engine(engine_name)
    settings = Settings()
    tell_database(settings)
    learnt = run_to_end(run(settings, train_heads, only, seed))
    if outcomes:
        trials = [each.verdict for each in learnt if each.outcome == "insufficient evidence" and each.verdict]
        more = [each.outlook.more for each in trials if each.outlook.more is not None]
        counts = {"outcomes": Counter(each.outcome for each in learnt), "more": more}
        sys.stdout.write(json.dumps(counts) + "\n")
    else:
        out.print(as_table(learnt))
    if out_dir is not None:
        out_dir.mkdir(parents=True, exist_ok=True)
        results = [{**asdict(each), "verdict": each.verdict and each.verdict.as_json()} for each in learnt]
        (out_dir / "train.json").write_text(json.dumps(results, indent=2) + "\n")


def as_table(learnt: Sequence[TrainingResult]) -> Table:
    """Returns a table of the results, each with the gate's reasons or the number of missing decisions."""
    table = Table("user", "agent", "policy", "decisions", "outcome", "why")
    for each in learnt:
        version = "" if each.version is None else name_of(each.version)
        why = [f"{each.missing} more rewarded decisions are needed"] if each.missing else []
        if each.verdict:
            outlook = each.verdict.outlook
            more = [f"{outlook.more} more decisions if all stays as it is"] if outlook.more else []
            why = [*each.verdict.reasons, *more]
        table.add_row(each.user_sub, each.agent_key, version, str(each.decisions), each.outcome, "\n".join(why))
    return table
