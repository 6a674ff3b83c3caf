"""The benchmark of findings: a scripted agent works on a copy of this repository.

Before each look it asks whether its run knows the answer, and takes that; the look is then made in secret, and
compared. A third of the runs knows the hashes of files. In another third files change without a call of the agent,
which only a hash can show; a search has no hash, and is always made there.
"""

import hashlib
import os
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from uuid import UUID, uuid4

import asyncpg

from app.postgres.pools import ANY_LENGTH, service_database
from bench.bank import WARM_UP, empty
from bench.findings.agent import Act, script
from bench.findings.scratch import Scratch, ToolAnswer
from bench.measure import Measurement, interleaved, p50
from retrieval.database.database import Database
from retrieval.findings.statements import IN_THIS_RUN
from writer.author import Author
from writer.findings.extract import extract
from writer.findings.known import KnownAnswer, KnownIn, is_known, parameters
from writer.privacy.keys import Keyring
from writer.retain.steps import StepsTaken, append_steps, prepare_steps

RUNS = 210
ROUNDS = 400
USERS = 10
TAMPERED = 0.08
"""Share of steps before which a file changes without a call of the agent, in runs where files do."""
ALL_OF_IT = 1_000_000
AGENT = "coder"

Sort = Literal["plain", "hashed", "tampered"]
SORTS: tuple[Sort, ...] = ("plain", "hashed", "tampered")


@dataclass(slots=True)
class Tally:
    """Counts over all runs."""

    count: Counter[str] = field(default_factory=Counter)
    stale: list[str] = field(default_factory=list)
    traces: list[dict[str, Any]] = field(default_factory=list)

    def share(self, part: str, whole: str) -> float:
        """Returns the part as a share of the whole; 0 if the whole is empty."""
        return self.count[part] / self.count[whole] if self.count[whole] else 0.0


async def findings(home: Path, runs: int = RUNS) -> list[Measurement]:
    """Measures the reads that findings spare an agent, stale answers, and speed."""
    url = await empty(home, "bench_findings")
    await _do_not_wait_for_the_disk(url)
    scratch = Scratch(home)
    keyring, tally = Keyring(os.urandom(32), seals_words=True), Tally()
    async with service_database(url) as database:
        last = uuid4()
        for seed in range(runs):
            last = uuid4()
            author = Author(f"user-{seed % USERS}", "bench", datetime.now(UTC))
            await _Run(database, keyring, scratch, author, last, SORTS[seed % len(SORTS)], tally).go(seed)
            scratch.restore()
        speed = await _speed(url, database, keyring, author, last, scratch)
    return [*_quality(tally, runs), _extraction(tally), speed]


async def _do_not_wait_for_the_disk(url: str) -> None:
    """Lets commits return before they are on disk: the time to keep a step is not measured here."""
    owner = await asyncpg.connect(url.replace("+asyncpg", ""))
    await owner.execute("ALTER DATABASE bench_findings SET synchronous_commit = off")
    await owner.close()


@dataclass(slots=True)
class _Run:
    """One run of the agent."""

    database: Database
    keyring: Keyring
    scratch: Scratch
    author: Author
    run_id: UUID
    sort: Sort
    tally: Tally
    steps: int = 0
    made: dict[str, str] = field(default_factory=dict)
    """Latest answer of each call, whether made or spared."""
    intents: dict[str, str] = field(default_factory=dict)
    """Intents by the words of the question."""

    async def go(self, seed: int) -> None:
        """Makes the calls of the script whose answers are not known yet."""
        rng = random.Random(seed)
        await self._step("think", {}, ToolAnswer(""))
        for act in script(self.scratch, seed):
            if self.sort == "tampered" and act.file and rng.random() < TAMPERED:
                self.scratch.change(act.file, rng)
            if not act.looks:
                await self._step(act.tool, act.arguments, self.scratch.call(act.tool, act.arguments))
            elif act.intent:
                await self._ask(act)
            else:
                await self._look(act)

    async def _look(self, act: Act) -> None:
        truth = self.scratch.call(act.tool, act.arguments)
        name = repr((act.tool, act.arguments))
        repeated = bool(act.file) and self.made.get(name) == truth.output
        self.tally.count["looks"] += 1
        self.tally.count["repeated reads"] += repeated
        answer = await self._known(act)
        if answer.known:
            self.tally.count["told"] += 1
            self._compare(act, truth, answer)
        else:
            self.tally.count[f"not told: {answer.why}"] += 1
            self.tally.count["repeated reads made"] += repeated
            await self._step(act.tool, act.arguments, truth)
        self.made[name] = truth.output

    async def _known(self, act: Act) -> KnownAnswer:
        if self.sort == "tampered" and not act.file:
            return KnownAnswer("unknown")
        sha = (
            _sha(_plain(self.scratch.call(act.tool, act.arguments).output))
            if act.file and self.sort != "plain"
            else None
        )
        call = KnownIn(tool=act.tool, query=act.arguments, hash=sha, content_chars=ALL_OF_IT)
        return await is_known(self.database, self.keyring, self.author, self.run_id, call)

    def _compare(self, act: Act, truth: ToolAnswer, answer: KnownAnswer) -> None:
        """Notes an answer that is stale; lines count as the same whichever tool shows them."""
        content = answer.content or ""
        if answer.finding is not None and act.file:
            lines = _plain(truth.output)
            other_query = answer.finding["query"] != act.arguments
            same = lines == _plain(content) or (other_query and _within(lines, _plain(content)))
        else:
            same = content == truth.output
        if not same:
            self.tally.stale.append(f"{act.tool} {act.arguments}: {answer.why}")

    async def _ask(self, act: Act) -> None:
        text = act.arguments["query"]
        answer = await self._known_question(act)
        known_intents = set(self.intents.values())
        self.tally.count["questions"] += 1
        near = text not in self.intents
        self.tally.count["near-duplicates"] += near and act.intent in known_intents
        if answer.known and answer.finding is not None:
            right = answer.finding["fact"] == act.intent
            self.tally.count["near-duplicates told"] += near
            self.tally.count["near-duplicates told right"] += near and right
            self.tally.count["wrong answers"] += not right
        else:
            await self._step(act.tool, act.arguments, ToolAnswer(act.intent))
        self.intents[text] = act.intent

    async def _known_question(self, act: Act) -> KnownAnswer:
        call = KnownIn(tool=act.tool, query=act.arguments)
        return await is_known(self.database, self.keyring, self.author, self.run_id, call)

    async def _step(self, tool: str, arguments: Mapping[str, Any], answer: ToolAnswer) -> None:
        self.steps += 1
        step = {
            "number": self.steps,
            "tool": tool,
            "input": arguments,
            "output": answer.output,
            "status": answer.status,
        }
        taken = StepsTaken.model_validate({"agent": AGENT, "task": "mend the repository", "steps": [step]})
        draft = prepare_steps(taken)
        self.tally.traces.append(dict(draft.steps[0].trace))
        await append_steps(self.database, self.keyring, self.run_id, draft, self.author)


def _sha(lines: list[str]) -> str:
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def _plain(output: str) -> list[str]:
    """Returns the lines that an output shows, without their numbers."""
    lines = output.splitlines()
    numbered = lines and all(line[:6].strip().isdigit() and line[6:7] == "\t" for line in lines)
    return [line[7:] for line in lines] if numbered else lines


def _within(lines: list[str], whole: list[str]) -> bool:
    """Returns whether the whole contains the lines in sequence."""
    return any(whole[at : at + len(lines)] == lines for at in range(len(whole) - len(lines) + 1))


def _quality(tally: Tally, runs: int) -> Iterator[Measurement]:
    count = tally.count
    spared = 1 - tally.share("repeated reads made", "repeated reads")
    missed = {name.removeprefix("not told: "): n for name, n in sorted(count.items()) if "not told" in name}
    why = ", ".join(f"{name} {n:,}" for name, n in missed.items())
    made = f"{count['repeated reads made']:,} of {count['repeated reads']:,} made"
    detail = f"{made}; {runs} runs, {len(tally.traces):,} steps"
    yield Measurement("findings: repeated reads spared", spared, "", detail, aim=0.8, at_least=True)
    looks = f"of {count['told']:,} told, {count['looks']:,} looks; not told: {why}"
    if tally.stale:
        looks += f"; first: {tally.stale[0][:200]}"
    yield Measurement("findings: stale answers", len(tally.stale), "", looks, aim=0)
    precision = tally.share("near-duplicates told right", "near-duplicates told")
    recall = tally.share("near-duplicates told right", "near-duplicates")
    detail = f"{count['near-duplicates told']:,} told, recall {recall:.2f}, {count['questions']:,} questions"
    yield Measurement("findings: near-duplicates, precision", precision, "", detail, aim=0.95, at_least=True)


def _extraction(tally: Tally) -> Measurement:
    started = time.process_time()
    for trace in tally.traces:
        extract(trace, {})
    rate = len(tally.traces) / (time.process_time() - started)
    size = sum(len(trace["output"]) for trace in tally.traces) / len(tally.traces)
    detail = f"one core, {len(tally.traces):,} steps of {size:,.0f} characters"
    return Measurement("findings: extraction", rate, "steps/s", detail, aim=500, at_least=True)


async def _speed(  # noqa: PLR0913, PLR0917 - the parts of one question
    url: str, database: Database, keyring: Keyring, author: Author, run_id: UUID, scratch: Scratch
) -> Measurement:
    """Measures a question in the process against its bare statement, in a run with some hundred steps."""
    tally = Tally()
    for seed in (1, 4, 7, 10):
        run = _Run(database, keyring, scratch, author, run_id, "plain", tally, steps=100 * seed)
        await run.go(seed)
    scratch.restore()
    acts = [act for act in script(scratch, 10) if act.looks]
    calls = [KnownIn(tool=act.tool, query=act.arguments) for act in acts]
    async with database.as_user(author.user_sub, author.authorised_at) as connection:
        words = await keyring.find_or_make(connection, author.user_sub)
    bare = await asyncpg.connect(url.replace("+asyncpg", ""), server_settings={"jit": "off"}, **ANY_LENGTH)
    who = {"user_sub": author.user_sub, "authorised_at": author.authorised_at}
    queries = [{**parameters(words, run_id, call, {}), **who} for call in calls]

    async def whole(number: int) -> None:
        await is_known(database, keyring, author, run_id, calls[number % len(calls)])

    async def statement(number: int) -> None:
        await bare.fetch(IN_THIS_RUN.sql, *IN_THIS_RUN.arguments(queries[number % len(queries)]))

    try:
        await interleaved(WARM_UP, whole, statement)
        ours, plain = await interleaved(ROUNDS, whole, statement)
    finally:
        await bare.close()
    detail = f"p50 {p50(ours):.2f} ms against {p50(plain):.2f} ms, a run of {len(tally.traces)} steps"
    return Measurement("findings: known / its bare statement", p50(ours) / p50(plain), "x", detail, aim=2)
