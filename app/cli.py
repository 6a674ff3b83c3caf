"""The front door: every command that a person or cron runs."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, TypeVar

import typer
import uvicorn
import uvloop
from rich.console import Console
from rich.table import Table
from sqlalchemy import RowMapping
from tqdm import tqdm

from app import logs
from app.auth import ACT_AS, is_user, issue_token
from app.backup import backup as make_backup
from app.backup import restore as restore_backup
from app.bench.main import BENCHMARKS, LEARNING, as_table, run_benchmarks, run_learning
from app.demo.main import demo as run_demo
from app.doctor import examine
from app.experiment.main import ENVIRONMENTS
from app.experiment.main import experiment as run_experiment
from app.jobs import beside
from app.main import create_app
from app.migrate import migrate as migrate_database
from app.runtime import Runtime, owner_url, running
from app.schedule import sign_of_life
from app.settings import Settings
from retrieval.errors import CasebankError
from writer.author import Author
from writer.retain.backfill import Backfilled
from writer.retain.backfill import backfill as backfill_runs
from writer.rights.erase import Receipt, erase
from writer.rights.export import export as export_rows
from writer.training.lifecycle import roll_back, versions
from writer.upkeep.hnsw import index_all
from writer.upkeep.prune import Pruned, prune_all
from writer.upkeep.reembed import reembed_all
from writer.worker import queue

cli = typer.Typer(
    name="casebank",
    help="Memory for agents that learns which memories help.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
policy = typer.Typer(no_args_is_help=True, help="Look at what was learned, and take it out of service.")
cli.add_typer(policy, name="policy")
out = Console()

User = Annotated[str, typer.Option("--user", help="whose memory (the token's subject)")]
PATIENCE_S, EMBEDDER_PATIENCE_S = 600.0, 30.0
"""How long a command waits for one answer of the database or for its vectors in all, and for one request for them."""

LARGEST_SLATE = 50
Agent = Annotated[str, typer.Option("--agent", help="which assistant")]
Result = TypeVar("Result")


def _run(work: Coroutine[object, None, Result]) -> Result:
    """Runs the work to its end; an error that casebank expects is one line and exit status 1."""
    try:
        return uvloop.run(work)
    except (CasebankError, ValueError, OSError) as error:
        Console(stderr=True).print(f"casebank: {error}", style="red", markup=False)
        raise typer.Exit(1) from None


@asynccontextmanager
async def _parts() -> AsyncIterator[Runtime]:
    """Yields the parts for a command, which may take its time: nobody waits for it as a caller of the service does."""
    logs.quiet()
    settings = Settings()
    patient = {
        "database_timeout_s": max(PATIENCE_S, settings.database_timeout_s),
        "embedder_timeout_s": max(EMBEDDER_PATIENCE_S, settings.embedder_timeout_s),
        "embedder_budget_s": max(PATIENCE_S, settings.embedder_budget_s),
    }
    async with running(settings.model_copy(update=patient)) as runtime:
        yield runtime


def _checked(user: str) -> str:
    if not is_user(user):
        raise typer.BadParameter("a user is 1 to 255 printable characters", param_hint="--user")
    return user


@cli.command()
def serve(
    port: Annotated[int, typer.Option(help="port to listen on")] = 8700,
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
) -> None:
    """Run the service, with its worker and, unless DATABASE_URL is set, its own Postgres."""
    settings = Settings()
    logs.as_json(settings.log_level)
    Console(stderr=True).print(
        f"casebank on http://{host}:{port} (API at /docs), state in {settings.home}", markup=False
    )
    uvicorn.run(
        create_app(settings),
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=settings.stop_within_s,
    )


@cli.command()
def worker() -> None:
    """Run a worker alone, beside a service or in place of its own."""

    async def work() -> None:
        async with running(settings) as runtime, beside([sign_of_life(runtime).run]):
            await runtime.worker.run()

    settings = Settings()
    logs.as_json(settings.log_level)
    _run(work())


@cli.command()
def migrate(revision: Annotated[str, typer.Argument(help="head, base, or a revision")] = "head") -> None:
    """Bring the database's schema to a revision."""

    async def move() -> None:
        settings = Settings()
        async with owner_url(settings) as url:
            await migrate_database(url, revision, pgvector=settings.pgvector)

    _run(move())
    out.print(f"schema at {revision}")


@cli.command()
def token(
    user: User,
    hours: Annotated[float, typer.Option(min=0.01, help="how long it is valid")] = 24 * 30,
    service: Annotated[bool, typer.Option("--service", help="may act for any user it names")] = False,
) -> None:
    """Print a bearer token, signed with this installation's secret."""
    settings = Settings()
    if settings.jwks_url is not None:
        raise typer.BadParameter("CASEBANK_JWKS_URL is set: tokens come from your identity provider")
    typer.echo(
        issue_token(
            settings.signing_secret,
            user=_checked(user),
            issuer=settings.jwt_issuer,
            audience=settings.jwt_audience,
            ttl=timedelta(hours=hours),
            now=datetime.now(UTC),
            scope=ACT_AS if service else "",
        ),
    )


@cli.command()
def prune() -> None:
    """Take out of every bank what its window, time limit and worth leave no room for; index what is very large."""

    async def work() -> Pruned:
        async with _parts() as runtime:
            kept = timedelta(days=runtime.settings.pruned_kept_days)
            pruned = await prune_all(runtime.database, now=datetime.now(UTC), kept=kept)
            await index_all(runtime.database)
            return pruned

    pruned = _run(work())
    out.print(f"{pruned.soft} cases taken out of their banks, {pruned.hard} deleted for good")


@cli.command()
def purge(
    user: User,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the receipt as JSON")] = False,
) -> None:
    """Erase everything of a user, for good, and print the receipt."""
    _checked(user)
    if not yes:
        typer.confirm(f"Erase everything of {user!r}? This cannot be undone.", abort=True)

    async def work() -> Receipt:
        async with _parts() as runtime:
            return await erase(runtime.database, user)

    receipt = _run(work())
    if as_json:
        typer.echo(json.dumps(receipt.as_dict()))
    else:
        out.print(receipt.as_table())
    if not receipt.clean:
        raise typer.Exit(1)


@cli.command()
def backup(folder: Annotated[Path, typer.Argument(help="a new folder for the dump and its manifest")]) -> None:
    """Write the embedded database into a folder, while the service may go on; the master key is not in it."""
    logs.quiet()
    made = _run(make_backup(Settings(), folder))
    out.print(f"schema {made.revision}, sha256 {made.sha256}", markup=False)
    out.print(f"keep the master key apart: what is sealed opens only with {made.master_key}", markup=False)


@cli.command()
def restore(
    folder: Annotated[Path, typer.Argument(help="as `casebank backup` left it")],
    replace: Annotated[bool, typer.Option("--replace", help="the bank that is there goes")] = False,
    receipt: Annotated[
        list[Path] | None, typer.Option(help="of an erasure since (purge --json), if this machine knows nothing of it")
    ] = None,
) -> None:
    """Put a backup in the place of the bank, less everybody who was erased since; the service must not run."""
    logs.quiet()
    done = _run(restore_backup(Settings(), folder, receipt or [], replace=replace))
    out.print(f"{done.users} users are back as of {done.manifest.created_at}; {done.erased_again} erased again")


@cli.command()
def export(user: User) -> None:
    """Write everything of a user to standard output, one JSON object a line."""

    async def work() -> None:
        async with _parts() as runtime:
            async for row in export_rows(runtime.database, runtime.keyring, _checked(user)):
                sys.stdout.write(json.dumps(row) + "\n")

    _run(work())


@cli.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})
def train(context: typer.Context) -> None:
    """Train candidate policies from the logs, judge those on trial, watch over those that serve (--help for more)."""
    # a process of its own: torch has no place in the others
    raise typer.Exit(subprocess.run([sys.executable, "-m", "app.training", *context.args], check=False).returncode)  # noqa: S603


@policy.command()
def rollback(user: User, agent: Agent) -> None:
    """Take the serving policy out of service; the untrained default goes on."""

    async def work() -> int:
        async with _parts() as runtime, runtime.database.as_user(_checked(user), datetime.now(UTC)) as connection:
            return await roll_back(connection, user, agent)

    out.print(f"q-{_run(work())} serves no more")


@policy.command()
def show(user: User, agent: Agent) -> None:
    """Show the versions of a profile's policy, and the gate's reasons."""

    async def work() -> Sequence[RowMapping]:
        async with _parts() as runtime, runtime.database.as_user(_checked(user), datetime.now(UTC)) as connection:
            return (await connection.execute(versions(user, agent))).mappings().all()

    table = Table("policy", "status", "decisions", "blend", "trained", "why")
    for row in _run(work()):
        why = "\n".join(row["verdict"]["reasons"]) if row["verdict"] else ""
        trained = f"{row['created_at']:%F %R}"
        table.add_row(f"q-{row['version']}", row["status"], str(row["decisions"]), f"{row['blend']:.2f}", trained, why)
    out.print(table)


@cli.command()
def backfill(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="old runs, one JSON object a line")],
    user: User,
    agent: Agent,
) -> None:
    """Retain old runs from a file; running it again adds only what is missing."""

    async def work() -> Backfilled:
        author = Author(_checked(user), "backfill", datetime.now(UTC))
        with file.open("rb") as lines, tqdm(unit=" runs", desc=file.name, disable=None) as bar:
            async with _parts() as runtime:
                return await backfill_runs(runtime.database, runtime.keyring, lines, author, agent, progress=bar.update)

    done = _run(work())
    out.print(f"{done.read} lines: {done.retained} retained, {done.known} known before, {len(done.refused)} refused")
    for line, reason in done.refused:
        out.print(f"  line {line}: {reason}", markup=False)
    if done.refused:
        raise typer.Exit(1)


@cli.command()
def reembed() -> None:
    """Bring every bank over to the embedder in the settings; each one switches at once when it is done."""

    async def work() -> int:
        async with _parts() as runtime:
            with tqdm(unit=" cases", desc="reembed", disable=None) as bar:
                return await reembed_all(runtime.database, runtime.embedder, progress=bar.update)

    out.print(f"{_run(work())} cases embedded")


@cli.command()
def requeue(
    user: Annotated[str | None, typer.Option("--user", help="only this user's; unset: everybody's")] = None,
) -> None:
    """Queue the dead cases again."""

    async def work() -> int:
        async with _parts() as runtime, runtime.database.as_worker() as connection:
            return len((await connection.execute(queue.requeue_dead(user))).all())

    out.print(f"{_run(work())} cases queued again")


@cli.command()
def doctor() -> None:
    """Check everything that a support person would ask about."""
    logs.quiet()
    findings = _run(examine(Settings()))
    table = Table("check", "", "found", "what to do")
    for finding in findings:
        mark = {True: "ok", False: "BAD", None: "-"}[finding.ok]
        table.add_row(finding.name, mark, finding.detail, "" if finding.ok else finding.advice)
    out.print(table)
    if any(finding.ok is False for finding in findings):
        raise typer.Exit(1)


@cli.command()
def demo(
    tasks: Annotated[int, typer.Option(min=10, help="length of the stream")] = 120,
    seed: Annotated[int, typer.Option(help="the same seed is the same stream")] = 1,
    out_dir: Annotated[Path, typer.Option(help="where the plot and the numbers go")] = Path("out"),
    learn: Annotated[
        bool, typer.Option("--learn", help="also train on what was logged, and try what was learned")
    ] = False,
) -> None:
    """Show what memory changes: a scripted database operator, without and with casebank."""
    logs.quiet()
    _run(run_demo(Settings(), tasks=tasks, seed=seed, out_dir=out_dir, learn=learn))


@cli.command()
def experiment(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    environment: Annotated[str, typer.Option("--env", help=f"one of {', '.join(ENVIRONMENTS)}")] = "operator",
    seed: Annotated[int, typer.Option(help="the same seed is the same tasks")] = 1,
    practice: Annotated[int | None, typer.Option(min=1, help="tasks of each family to gather experience on")] = None,
    test: Annotated[int | None, typer.Option(min=1, help="tasks of each family to compare the arms on")] = None,
    ks: Annotated[str, typer.Option("--k", help="the sizes of the slate to compare, 0 to 50")] = "0,1,2,4,8",
    out_dir: Annotated[Path, typer.Option("--out", help="where the numbers and the picture go")] = Path("out"),
) -> None:
    """Compare an agent with and without memory, task by task: first the prediction, then the verdict."""
    logs.quiet()
    if environment not in ENVIRONMENTS:
        raise typer.BadParameter(f"no environment {environment!r}; there are {', '.join(ENVIRONMENTS)}")
    wanted = {"seed": seed, "practice": practice, "test": test, "ks": _slate_sizes(ks)}
    given = {name: value for name, value in wanted.items() if value is not None}
    _run(run_experiment(Settings(), environment, given, out_dir))


def _slate_sizes(text: str) -> list[int]:
    sizes = [int(part) if part.strip().isdecimal() else -1 for part in text.split(",")]
    if any(not 0 <= size <= LARGEST_SLATE for size in sizes):
        raise typer.BadParameter(f"{text!r} is no list of numbers from 0 to {LARGEST_SLATE}", param_hint="--k")
    return sizes


@cli.command()
def bench(
    name: Annotated[str, typer.Argument(help=f"one of {', '.join(BENCHMARKS)}, all of them, or {LEARNING}")],
    json_file: Annotated[Path | None, typer.Option("--json", help="write the numbers here, too")] = None,
    data: Annotated[
        Path | None,
        typer.Option(envvar="CASEBANK_DATA", help=f"with {LEARNING}, lessons: the folder with banking77 and tau"),
    ] = None,
) -> None:
    """Measure speed and memory, as ratios within one run; or what the policy learns (minutes, not part of all)."""
    logs.quiet()
    if name not in {"all", LEARNING, *BENCHMARKS}:
        raise typer.BadParameter(f"no benchmark {name!r}; there are {', '.join(BENCHMARKS)}, all and {LEARNING}")
    if name == LEARNING:
        raise typer.Exit(run_learning(json_file, data))
    measured = _run(run_benchmarks(list(BENCHMARKS) if name == "all" else [name], data))
    out.print(as_table(measured))
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(measurement) for measurement in measured], indent=2) + "\n")


if __name__ == "__main__":
    cli()
