"""Short queries against procedures: which are found, and how many of those found fit.

By tau's runs: a procedure fits a query if its run called one of the tools that do what the query names. By pairs of a
query and a run's name, written beforehand and judged by hand, half of which do not fit though most of those share a
word.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import orjson

from app.postgres.pools import service_database
from app.providers.wordllama import WordLlamaEmbedder
from bench.bank import empty
from bench.measure import Measurement
from bench.real import real_run
from policy.channels import words
from retrieval.database.database import Database
from retrieval.procedures.find import ProcedureSearch, find
from retrieval.procedures.threshold import calibrated, sentences
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.queue.worker import Worker
from writer.retain.retain import retain

BESIDE_THE_REPOSITORY = Path(__file__).parents[2] / ".." / "shared" / "data"
AGENT, MOST = "names", 1_000
WORD_FLOOR = 0.25
"""Least similarity of each word of a query and the nearest word of the name; the best on the first 62 pairs."""
PAIRS = Path(__file__).with_name("pairs.txt")
NAMES: Mapping[str, Mapping[str, str]] = {
    "retail": {
        "return item": "return_delivered_order_items",
        "exchange item": "exchange_delivered_order_items",
        "cancel order": "cancel_pending_order",
        "change address": "modify_pending_order_address modify_user_address",
        "change payment": "modify_pending_order_payment",
        "modify order items": "modify_pending_order_items",
        "send back a purchase": "return_delivered_order_items",
        "swap for another size": "exchange_delivered_order_items modify_pending_order_items",
        "move to new house": "modify_user_address modify_pending_order_address",
        "pay with other card": "modify_pending_order_payment",
    },
    "airline": {
        "cancel flight": "cancel_reservation",
        "cancel reservation": "cancel_reservation",
        "book flight": "book_reservation",
        "add bags": "update_reservation_baggages",
        "more luggage": "update_reservation_baggages",
        "change passenger name": "update_reservation_passengers",
        "change flight": "update_reservation_flights",
        "upgrade cabin": "update_reservation_flights",
        "send certificate": "send_certificate",
        "compensation voucher": "send_certificate",
    },
}
"""Queries of each domain, written before any was tried, and the tools that do what each names."""


async def names(home: Path, data: Path | None) -> list[Measurement]:
    """Measures what short queries find, by similarity alone and also by the names of tools."""
    measured = await _pairs()
    for domain in NAMES:
        file = (data or BESIDE_THE_REPOSITORY) / "tau" / domain / "runs.jsonl"
        if file.is_file():
            lines = [orjson.loads(line) for line in file.read_bytes().splitlines()]
            runs = {line["task_id"]: line for line in lines if line["reward"] == 1}
            async with service_database(await empty(home, f"bench_names_{domain}")) as database:
                tools = await _keep(database, domain, runs.values())
                measured += [await _searched(database, domain, tools, by_tool=by_tool) for by_tool in (False, True)]
    return measured


async def _searched(database: Database, user: str, tools: Mapping[UUID, set[str]], *, by_tool: bool) -> Measurement:
    """Measures the searches for the domain's names, in the bank of the user of its name."""
    embedder = WordLlamaEmbedder()
    floor = calibrated(list(await embedder.embed(sentences()))).similarity
    fitting, found, all_fitting = 0, 0, 0
    for query, named in NAMES[user].items():
        (vector,) = await embedder.embed([query])
        whole = ProcedureSearch(AGENT, None, look=MOST)
        as_asked = replace(
            whole, text=query, vector=vector.tolist(), model=embedder.model, floor=floor, by_tool=by_tool
        )
        async with database.fast(user, datetime.now(UTC)) as connection:
            [procedures] = await find(connection, whole, pgvector=True)
            [matches] = await find(connection, as_asked, pgvector=True)
        fits = {
            each.id for each in procedures if any(tools.get(run, set()) & set(named.split()) for run in each.sources)
        }
        fitting += sum(each.id in fits for each in matches)
        found += len(matches)
        all_fitting += len(fits)
    return _precision(f"{user}, {'or tools' if by_tool else 'by similarity'}", fitting, found, all_fitting)


async def _keep(database: Database, user: str, runs: Iterable[dict[str, Any]]) -> dict[UUID, set[str]]:
    """Retains the runs, makes them ready, and returns the tools that each called with success."""
    keyring, tools = Keyring(os.urandom(32), seals_words=True), dict[UUID, set[str]]()
    for line in runs:
        run = real_run(line).model_copy(update={"agent": AGENT, "turns": [], "reward": 1.0, "reward_source": "metric"})
        kept = await retain(database, keyring, run, Author(user, user, datetime.now(UTC)))
        tools[kept.case_id] = {step["tool"] for step in line["steps"] if not step["error"]}
    worker = Worker(database, WordLlamaEmbedder(), keyring)
    while await worker.run_once():
        pass
    return tools


async def _pairs() -> list[Measurement]:
    """Measures the pairs by similarity, and by the nearest word of the name for each word of the query."""
    embedder = WordLlamaEmbedder()
    floor = calibrated(list(await embedder.embed(sentences()))).similarity
    rows = [line.split("\t") for line in PAIRS.read_text().splitlines()]
    fits = np.array([sign == "+" for sign, _, _ in rows])
    queries = np.array(await embedder.embed([query for _, query, _ in rows]))  # (pairs, dimension)
    titles = np.array(await embedder.embed([title for _, _, title in rows]))
    aligned = []
    for _, query, title in rows:
        of_query, of_title = await embedder.embed(words(query)), await embedder.embed(words(title))
        aligned.append((np.array(of_query) @ np.array(of_title).T).max(1).min())
    rules = {"by similarity": (queries * titles).sum(1) >= floor, "word by word": np.array(aligned) >= WORD_FLOOR}
    return [
        _precision(f"{len(rows)} pairs, {name}", int((told & fits).sum()), int(told.sum()), int(fits.sum()))
        for name, told in rules.items()
    ]


def _precision(name: str, fitting: int, found: int, all_fitting: int) -> Measurement:
    recall = fitting / all_fitting if all_fitting else 0.0
    detail = f"{fitting} of {found} found fit; recall {recall:.2f} of {all_fitting}"
    return Measurement(f"names: {name}, precision", fitting / found if found else 0.0, "", detail)
