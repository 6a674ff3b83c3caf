"""Time of advice at a failed call, against a retrieve in the same bank."""

import os
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from app.postgres.pools import service_database
from app.providers.wordllama import WordLlamaEmbedder
from bench.advice import measure, measure_shell
from bench.bank import WARM_UP, empty
from bench.measure import Measurement, interleaved, p50
from bench.real import real_runs
from retrieval.ranking.retrieved import Question
from retrieval.retrieve import Reader
from retrieval.search.candidates import CaseSearch
from writer.advice.answer import FailedCall
from writer.advice.ask import Adviser
from writer.analysis.calls import calls_in
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.queue.worker import Worker
from writer.retain.retain import retain

RUNS, ROUNDS, MOST_PLANS = 200, 200, 4


async def advice(home: Path, data: Path | None) -> list[Measurement]:
    """Measures which fixes are told and right, and the time of an answer."""
    return [*measure(data), *measure_shell(), *await _speed(home, data)]


async def _speed(home: Path, data: Path | None) -> list[Measurement]:
    """Measures advice against a retrieve, both in the process, in one profile of real runs."""
    runs = list(real_runs(data))[:RUNS]
    if not runs:
        return []
    calls = calls_in([trace.model_dump() for run in runs for trace in run.tool_traces])
    failed = [call for call in calls if call.failed]
    user = Author("user", "user", datetime.now(UTC))
    async with service_database(await empty(home, "bench_advice")) as database:
        keyring, embedder = Keyring(os.urandom(32), seals_words=True), WordLlamaEmbedder()
        worker = Worker(database, embedder, keyring)
        for run in runs:
            await retain(database, keyring, run, user)
        while await worker.run_once():
            pass
        reader = Reader(database, embedder, seals=keyring)
        adviser = Adviser(database, keyring)

        async def retrieving(number: int) -> None:
            query = Question(CaseSearch(runs[0].agent, runs[number % RUNS].task))
            await reader.retrieve(user.user_sub, datetime.now(UTC), query)

        async def advising(number: int, plans: int = 0) -> None:
            run = runs[number % RUNS]
            await adviser.advise(user, FailedCall(run.agent, failed[number % len(failed)], run.task, plans=plans))

        with_plans = partial(advising, plans=MOST_PLANS)
        await interleaved(WARM_UP, retrieving, advising, with_plans)
        retrieved, *advised = await interleaved(ROUNDS, retrieving, advising, with_plans)
    return [
        Measurement(
            f"advice{what} / retrieve, in the process",
            p50(times) / p50(retrieved),
            "x",
            f"p50 {p50(times):.2f} ms against {p50(retrieved):.2f} ms, {len(failed)} failed calls of {RUNS} runs",
            aim=1.5,
        )
        for what, times in zip(("", " with plans"), advised, strict=True)
    ]
