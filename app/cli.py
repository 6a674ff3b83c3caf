"""The front door: every command that a person or cron runs."""

import json
import subprocess
import sys
from collections.abc import Coroutine, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from prometheus_client import REGISTRY
from rich.console import Console
from rich.table import Table
from sqlalchemy import RowMapping
from tqdm import tqdm

from app import logs
from app.audit_commands import commands as audit_commands
from app.backup import backup as make_backup
from app.backup import restore as restore_backup
from app.bench import cost
from app.bench.faults.victims import VICTIMS
from app.bench.main import (
    BENCHMARKS,
    COST,
    FAULTS,
    IMPACT,
    LEARNING,
    RECALL,
    as_table,
    fails,
    run_benchmarks,
    run_faults,
    run_learning,
)
from app.command_line import Agent, MaybeUser, User, named
from app.command_line import checked as _checked
from app.command_line import parts as _parts
from app.command_line import patient as _patient
from app.console.command import link, open_privately
from app.demo.main import demo as run_demo
from app.doctor import Finding, examine
from app.erase_again import erase_again, read_receipts
from app.erasure import command as erasure
from app.erasure.show import check, print_receipt
from app.experiment.main import ENVIRONMENTS
from app.experiment.main import experiment as run_experiment
from app.fleet_command import show_fleets
from app.impact_command import show_impact
from app.jobs import beside
from app.knowledge_commands import commands as knowledge_commands
from app.knowledge_commands import embed_shared_too
from app.mcp.command import speak_mcp
from app.metrics import serve_alone
from app.migrate import migrate as migrate_database
from app.own_module import OWN_MODULE
from app.run_to_end import run_to_end as _run
from app.run_to_end import until_told_to_stop
from app.runtime import owner_url, running
from app.schedule import worker_jobs
from app.server import run_server
from app.settings import Settings
from app.token_commands import OPERATOR_NAME
from app.token_commands import commands as token_commands
from retrieval.errors import NotFound
from retrieval.listing import one_profile
from retrieval.memory_schema import memories
from retrieval.schema import cases
from retrieval.session_schema import sessions
from writer.author import Author
from writer.privacy.rotation import Rotation, rotate
from writer.retain.backfill import Backfilled
from writer.retain.backfill import backfill as backfill_runs
from writer.rights.elsewhere import digest as name_digest
from writer.rights.export import export as export_rows
from writer.rights.signature import SignatureBroken
from writer.training.decision_log import rewarded
from writer.training.fit import Demand
from writer.training.lifecycle import roll_back, versions
from writer.training.progress import trial_of
from writer.upkeep.hnsw import index_all
from writer.upkeep.prune import Pruned, prune_all
from writer.upkeep.reembed import reembed_all
from writer.upkeep.reseal import reseal_all
from writer.upkeep.unremembered import remember_all
from writer.worker import queue

cli = typer.Typer(
    name="casebank",
    help="Memory for agents that learns which memories help.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
policy = typer.Typer(no_args_is_help=True, help="Look at what was learned, and take it out of service.")
cli.add_typer(policy, name="policy")
cli.add_typer(audit_commands, name="audit")
cli.add_typer(token_commands, name="token")
cli.add_typer(knowledge_commands, name="knowledge")
cli.command("mcp")(speak_mcp)
cli.command("impact")(show_impact)
cli.command("fleet")(show_fleets)
out = Console()


LARGEST_SLATE = 50
LOOKS_SHOWN = 3
"""Of a trial, the latest."""


@cli.command()
def serve(
    port: Annotated[int, typer.Option(help="port to listen on")] = 8700,
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
) -> None:
    """Run the service, with its worker and, unless DATABASE_URL is set, its own Postgres."""
    settings = Settings()
    logs.as_json(settings.log_level)
    Console(stderr=True).print(
        f"casebank on http://{host}:{port} (API at /docs, console at /console), state in {settings.home}", markup=False
    )
    run_server(settings, host, port)


@cli.command()
def console(
    user: MaybeUser = None,
    operator: Annotated[bool, typer.Option("--operator", help="show the numbers of the installation")] = False,
    address: Annotated[str, typer.Option("--at", help="where the service is reached")] = "http://127.0.0.1:8700",
    opens: Annotated[bool, typer.Option("--open/--no-open", help="open it in a browser")] = True,
) -> None:
    """Print a link that signs in to the console once, within two minutes, and open it in a browser."""
    if user is None and not operator:
        raise typer.BadParameter("whose memory?", param_hint="--user")
    settings = Settings()
    name = _checked(OPERATOR_NAME if user is None else user)
    made = link(settings, address, name, is_operator=operator)
    typer.echo(made)
    if opens:
        open_privately(settings, made)


@cli.command()
def worker(
    metrics_port: Annotated[int, typer.Option(help="port of its /metrics, on the loopback address; 0: none")] = 8701,
) -> None:
    """Run a worker alone, beside a service or in place of its own."""

    async def work() -> None:
        async with running(settings) as runtime, beside([job.run for job in worker_jobs(runtime)]):
            await until_told_to_stop(runtime.worker.run())

    settings = Settings()
    logs.as_json(settings.log_level)
    if metrics_port:
        serve_alone("127.0.0.1", metrics_port, REGISTRY)
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
def purge(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    user: MaybeUser = None,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the receipt as JSON")] = False,
    scrub: Annotated[
        bool, typer.Option("--scrub", help="then rewrite the tables and drop the log; alone: for all erased before")
    ] = False,
    receipt: Annotated[bool, typer.Option("--receipt", help="erase nothing, print the receipts of before")] = False,
    digest: Annotated[str | None, typer.Option("--digest", help="with --receipt: the sha256 of the name")] = None,
    verify: Annotated[Path | None, typer.Option("--verify", help="erase nothing, check a receipt's signature")] = None,
) -> None:
    """Erase everything of a user, for good, and print the receipt."""
    logs.quiet()
    if verify is not None:
        try:
            out.print(check(Settings(), verify.read_text(encoding="utf-8")), markup=False, soft_wrap=True)
        except (SignatureBroken, OSError, UnicodeError) as error:
            Console(stderr=True).print(f"casebank: {error}", style="red", markup=False)
            raise typer.Exit(1) from None
        return
    if receipt:
        _print_receipts(erasure.receipts(_patient(), digest or name_digest(_checked(user or ""))), as_json=as_json)
        return
    if user is not None or not scrub:
        _checked(user or "")
    if user is not None and not yes:
        typer.confirm(f"Erase everything of {user!r}? This cannot be undone.", abort=True)
    say = Console(stderr=True, style="dim")
    done = _run(erasure.purge(_patient(), user, scrubs=scrub, progress=say.print))
    if done.receipt is None:
        out.print(f"scrubbed; {done.receipts} receipts say so")
        return
    print_receipt(out, done.receipt, as_json=as_json)
    if not done.receipt["clean"]:
        raise typer.Exit(1)


def _print_receipts(found: Coroutine[object, None, list[dict[str, Any]]], *, as_json: bool) -> None:
    receipts = _run(found)
    for each in receipts:
        print_receipt(out, each, as_json=as_json)
    if not receipts:
        Console(stderr=True).print("casebank: no erasure of that name is known here", style="red")
        raise typer.Exit(1)


@cli.command()
def rotate_key(
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the receipt as JSON")] = False,
) -> None:
    """Wrap every user's key by CASEBANK_MASTER_KEY, beside CASEBANK_MASTER_KEY_OLD; may be broken off and repeated."""
    if not yes:
        typer.confirm("Does every service, worker and job hold both keys by now?", abort=True)

    async def work() -> Rotation:
        async with _parts() as runtime:
            with tqdm(unit=" users", desc="rotate-key", disable=None) as bar:
                return await rotate(runtime.database, runtime.keyring.masters, bar.update)

    done = _run(work())
    if as_json:
        typer.echo(json.dumps(done.as_dict()))
    else:
        _print_rotation(done)
    if done.left:
        raise typer.Exit(1)


def _print_rotation(done: Rotation) -> None:
    if not done.now:
        out.print("nothing was left to do; the receipt of then:", markup=False)
    for name, value in done.as_dict().items():
        out.print(f"{name.replace('_', ' ')}: {', '.join(value) if isinstance(value, list) else value}", markup=False)
    old = "CASEBANK_MASTER_KEY_OLD"
    unopened = f"{done.left} users' keys do not open: add the key that wrapped them to {old}, and repeat"
    out.print(unopened if done.left else f"{old} is needed no more, but for backups of before", markup=False)


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


@cli.command("erase-again")
def again(
    receipts: Annotated[list[Path], typer.Argument(help="of erasures (purge --json) after the backup was made")],
) -> None:
    """Erase again whom a restored database knows of though they were erased; `restore` does so by itself."""
    logs.quiet()

    async def work() -> int:
        async with owner_url(Settings()) as url:
            return await erase_again(url, read_receipts(receipts))

    out.print(f"{_run(work())} users erased again")


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
    words, user = _without_name(context.args)
    command = [*OWN_MODULE, "app.training", *words]
    raise typer.Exit(subprocess.run(command, check=False, text=True, input=user).returncode)  # noqa: S603


def _without_name(words: Sequence[str]) -> tuple[list[str], str | None]:
    """Returns the words with ``-`` in place of the user's name, and the name, or None where there is none to hide."""
    kept, user, is_user_next = [], None, False
    for word in words:
        if is_user_next or word.startswith("--user="):
            user, word = word.removeprefix("--user="), "-" if is_user_next else "--user=-"  # noqa: PLW2901
        is_user_next = word == "--user"
        kept.append(word)
    return kept, None if user in {None, "-"} else f"{user}\n"


@policy.command()
def rollback(user: User, agent: Agent) -> None:
    """Take the serving policy out of service; the untrained default goes on."""

    async def work() -> int:
        async with _parts() as runtime, runtime.database.as_user(_checked(user), datetime.now(UTC)) as connection:
            return await roll_back(connection, user, agent, actor="casebank policy rollback")

    out.print(f"q-{_run(work())} serves no more")


def _why(row: RowMapping) -> str:
    """Returns the gate's reasons; of a trial also how far it is, and what its latest looks said."""
    said = list(row["verdict"]["reasons"]) if row["verdict"] else []
    trial = trial_of(row["verdict"])
    if trial is not None and row["status"] == "candidate":
        said.append(f"{trial.decisions} decisions on trial; {trial.sentence()}")
    for name, course in (trial.courses if trial else {}).items():
        looks = [f"{look.z:.2f} of {look.bound:.2f} at {look.decisions}" for look in course.looks[-LOOKS_SHOWN:]]
        said.append(f"looks at {name}: {', '.join(looks)}")
    return "\n".join(said)


@policy.command()
def show(user: User, agent: Agent) -> None:
    """Show the versions of a profile's policy, and the gate's reasons."""

    async def work() -> tuple[Sequence[RowMapping], int]:
        async with _parts() as runtime, runtime.database.as_user(_checked(user), datetime.now(UTC)) as connection:
            if (await connection.execute(one_profile(user, agent))).one_or_none() is None:
                raise NotFound("no such profile")
            found = (await connection.execute(versions(user, agent))).mappings().all()
            return found, (await connection.execute(rewarded(user, agent))).scalar_one()

    found, decisions = _run(work())
    if not found:
        out.print(f"no policy yet: {decisions} of {Demand().decisions} rewarded decisions")
        return
    table = Table("policy", "status", "decisions", "blend", "trained", "why")
    for row in found:
        said = f"q-{row['version']}", row["status"], str(row["decisions"]), f"{row['blend']:.2f}"
        table.add_row(*said, f"{row['created_at']:%F %R}", _why(row))
    out.print(table)


@cli.command()
def backfill(
    file: Annotated[
        Path | None, typer.Argument(exists=True, dir_okay=False, help="old runs, one JSON object a line")
    ] = None,
    user: MaybeUser = None,
    agent: Annotated[str | None, typer.Option("--agent", help="which assistant")] = None,
    of_memories: Annotated[
        bool, typer.Option("--memories", help="no file: make findable what everybody said before there was recall")
    ] = False,
) -> None:
    """Retain old runs from a file, or make old turns and facts findable; again, it adds only what is missing."""
    if of_memories and file is None and user is None and agent is None:
        _backfill_memories()
    elif not of_memories and file is not None and user is not None and agent is not None:
        _backfill_runs(file, _checked(user), agent)
    else:
        raise typer.BadParameter("FILE --user U --agent A, or --memories alone")


def _backfill_memories() -> None:
    async def work() -> int:
        async with _parts() as runtime:
            with tqdm(unit=" memories", desc="backfill", disable=None) as bar:
                return await remember_all(runtime.database, runtime.keyring, progress=bar.update)

    out.print(f"{_run(work())} turns and facts made findable; a worker makes their vectors")


def _backfill_runs(file: Path, user: str, agent: str) -> None:
    async def work() -> Backfilled:
        author = Author(user, "backfill", datetime.now(UTC))
        with file.open("rb") as lines, tqdm(unit=" runs", desc=file.name, disable=None) as bar:
            async with _parts() as runtime:
                return await backfill_runs(runtime.database, runtime.keyring, lines, author, agent, progress=bar.update)

    done = _run(work())
    out.print(f"{done.read} lines: {done.retained} retained, {done.known} known before, {len(done.refused)} refused")
    if done.passed_over:
        out.print(f"{done.passed_over} rows of an export that are no cases passed over")
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
                done = await reembed_all(runtime.database, runtime.embedder, runtime.keyring, progress=bar.update)
                await embed_shared_too(runtime)
                return done

    out.print(f"{_run(work())} cases embedded")


@cli.command()
def reseal() -> None:
    """Bring what was written before over to CASEBANK_SEAL: words sealed with the users' keys, or in plain."""

    async def work() -> int:
        async with _parts() as runtime:
            with tqdm(unit=" rows", desc="reseal", disable=None) as bar:
                return await reseal_all(runtime.database, runtime.keyring, progress=bar.update)

    out.print(f"{_run(work())} rows resealed")


@cli.command()
def requeue(
    user: Annotated[
        str | None,
        typer.Option("--user", callback=named, help="only this user's; -: from standard input; unset: everybody's"),
    ] = None,
) -> None:
    """Queue the dead cases again, the sessions that could not be read, and the memories without a vector."""

    async def work() -> tuple[int, int]:
        async with _parts() as runtime, runtime.database.as_worker() as connection:
            queues = (cases, sessions, memories)
            dead = [(await connection.execute(queue.requeue_dead(user, of))).all() for of in queues]
        return len(dead[0]), len(dead[1])

    of_cases, of_sessions = _run(work())
    out.print(f"{of_cases} cases queued again" + (f", {of_sessions} sessions" if of_sessions else ""))


@cli.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="print the findings as JSON")] = False,
) -> None:
    """Check everything that a support person would ask about; exits with 1 where something is bad."""
    logs.quiet()
    findings = _run(examine(Settings()))
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        out.print(_as_table(findings))
    if any(finding.ok is False for finding in findings):
        raise typer.Exit(1)


def _as_table(findings: Sequence[Finding]) -> Table:
    table = Table("check", "", "found", "what to do")
    for finding in findings:
        mark = {True: "ok", False: "BAD", None: "-"}[finding.ok]
        table.add_row(finding.name, mark, finding.detail, "" if finding.ok else finding.advice)
    return table


@cli.command()
def demo(
    tasks: Annotated[int, typer.Option(min=10, help="tasks of each house")] = 120,
    seed: Annotated[list[int], typer.Option(help="a house; may be said again")] = [31],  # noqa: B006 (typer's way)
    out_dir: Annotated[Path, typer.Option(help="where the plot and the numbers go")] = Path("out"),
    learn: Annotated[
        bool, typer.Option("--learn", help="also train on what was logged, and try what was learned")
    ] = False,
) -> None:
    """Show what memory changes: a scripted database operator with none, with keywords, and with casebank."""
    logs.quiet()
    _run(run_demo(Settings(), tasks=tasks, seeds=seed, out_dir=out_dir, learn=learn))


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
def bench(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    name: Annotated[
        str,
        typer.Argument(
            help=f"one of {', '.join(BENCHMARKS)}, all of them; or {LEARNING}, {FAULTS}, {RECALL} or {IMPACT}"
        ),
    ],
    json_file: Annotated[Path | None, typer.Option("--json", help="write the numbers here, too")] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            envvar="CASEBANK_DATA",
            help=f"with {LEARNING}, lessons: the folder with banking77 and tau; with {RECALL}: that with conversations",
        ),
    ] = None,
    kills: Annotated[int, typer.Option(min=1, help=f"with {FAULTS}: how many processes are killed")] = 200,
    seed: Annotated[int, typer.Option(help=f"with {FAULTS}: the same seed kills in the same order")] = 1,
    only: Annotated[
        list[str] | None, typer.Option(help=f"with {FAULTS}: kill this alone, may be repeated; {', '.join(VICTIMS)}")
    ] = None,
    tolerance: Annotated[
        float, typer.Option(min=0, help=f"with {COST}: percent by which a size may have grown since the last release")
    ] = cost.TOLERANCE,
    keep: Annotated[bool, typer.Option("--keep", help=f"with {COST}: make these the figures of the release")] = False,
) -> None:
    """Measure speed and memory, as ratios within one run.

    What a case costs is compared with the last release: with `cost` alone the exit status is 1 if it costs more.

    Not part of all, for they take minutes: what the policy learns, and what kill -9 of one process after another loses
    and how long it takes to come back. That one exits with 1 if anything was lost, doubled, stuck or too slow; and so
    does whether the answer to "did memory help?" is true, if it claims too much or its intervals miss too often.
    """
    logs.quiet()
    alone = (LEARNING, FAULTS, RECALL, IMPACT)
    if name not in {"all", *alone, *BENCHMARKS}:
        raise typer.BadParameter(f"no benchmark {name!r}; there are {', '.join((*BENCHMARKS, *alone))}, all")
    if name == RECALL and (data is None or not (data / "conversations.jsonl").is_file()):
        raise typer.BadParameter("recall needs --data: a folder with conversations.jsonl")
    if name == LEARNING:
        raise typer.Exit(run_learning(json_file, data))
    if name == FAULTS:
        measured = _run(run_faults(kills, seed, _victims(only or [])))
    else:
        measured = _run(run_benchmarks(list(BENCHMARKS) if name == "all" else [name], data))
    if name == COST and keep:
        cost.keep(measured, version("casebank"))
    measured = cost.against(measured, cost.figures(), tolerance)
    out.print(as_table(measured))
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(measurement) for measurement in measured], indent=2) + "\n")
    if fails(name, measured):
        raise typer.Exit(1)


def _victims(named: list[str]) -> list[str]:
    if unknown := set(named) - set(VICTIMS):
        raise typer.BadParameter(f"nobody is called {', '.join(sorted(unknown))}", param_hint="--only")
    return named


if __name__ == "__main__":
    cli()
