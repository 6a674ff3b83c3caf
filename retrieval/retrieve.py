"""Retrieve: embed the query, find candidates in one statement, order them, and log the decision."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar, cast
from uuid import UUID

import numpy as np
from cachetools import LRUCache

from retrieval.database.database import Database
from retrieval.database.fast_path import FastConnection
from retrieval.errors import EmbedderError, EmbedderMisbehaved, EmbedderRefused, TextNotEmbeddable
from retrieval.pages.listing import Measures
from retrieval.ports import Embedder, Vector
from retrieval.procedures.find import ProcedureSearch, find, profile_terms
from retrieval.procedures.found import Procedure, ProceduresFound, as_alternatives
from retrieval.procedures.lessons import lessons
from retrieval.procedures.threshold import Calibrations, Threshold
from retrieval.ranking.answer import answer
from retrieval.ranking.decisions import LoggedDecision, log_decision, sealed
from retrieval.ranking.numbers import count_answer
from retrieval.ranking.policies import Policies
from retrieval.ranking.pool import Pool, Query, pool
from retrieval.ranking.question import Question
from retrieval.ranking.retrieved import Retrieved
from retrieval.ranking.search_result import SearchResult
from retrieval.ranking.tool_counts import NOT_KNOWN, ToolVectors, tool_counts, words_of
from retrieval.recall.memory import Large, Recalled, RecallQuestion
from retrieval.recall.recall import Meaning, recall
from retrieval.recall.told import Telling
from retrieval.rewriting.choice import Asker, Rewriting
from retrieval.sealed import SealedCase, Seals, UserSeal, is_sealed
from retrieval.search.candidates import (
    BankRow,
    Filters,
    Measured,
    Search,
    candidates,
    vectors,
)
from retrieval.search.reuse_history import Reuse, reuse_history
from retrieval.search.unrelated import unrelated
from retrieval.sections.context import PartName, Quoted, count_tokens, with_tools
from retrieval.sections.tools import lines, troubles
from retrieval.sessions.read import Reading, View
from retrieval.telemetry import stage

Row = TypeVar("Row")
"""A row of one of the statements that read cases."""


@dataclass(frozen=True, slots=True)
class ProcedureQuestion:
    """Which procedures to look for in one profile, at most ``limit``; an attribute of None lets everything through.

    Attributes:
        text: what their triggers are compared with; None: by attributes alone.
        least: similarity, in place of the profile's or the model's threshold.
    """

    agent_key: str
    text: str | None
    task_type: str | None = None
    domain: str | None = None
    measures: Measures = field(default_factory=Measures)
    filters: Filters = field(default_factory=Filters)
    least: float | None = None
    limit: int = 10


@dataclass(frozen=True, slots=True)
class ProcedureAnswer:
    """The procedures found, the best first, from which similarity on, and what was missing."""

    procedures: Sequence[Procedure]
    threshold: Threshold
    degraded: list[str]


@dataclass(frozen=True, slots=True)
class Reader:
    """The read side: where the cases are, and what turns a query into a vector."""

    database: Database
    embedder: Embedder
    pgvector: bool = True
    """Whether the database compares vectors; otherwise the process does."""
    explore: bool = False
    """Whether profiles may try things out; if not, every slate is the policy's own, and trials wait."""
    rewriting: Rewriting | None = None
    """Whether queries may be rewritten; if not, what is searched for is always the query."""
    seals: Seals | None = None
    """Who opens the words of cases, and seals those of queries; without it there must be none that are sealed."""
    large: Large = field(default_factory=Large)
    """From how many texts on a recall is an approximation."""
    policies: Policies = field(default_factory=Policies)
    """The learned policies that serve."""
    _approximate: LRUCache[tuple[str, str], bool] = field(default_factory=lambda: LRUCache(10_000))
    """The profiles last seen in the HNSW index, learnt from each answer: only the first retrieve of one is exact, and
    slow."""
    _texts: LRUCache[tuple[str, str, frozenset[str]], int] = field(default_factory=lambda: LRUCache(10_000))
    """How many texts of those kinds there are, learnt from each recall: only the first one of a large bank is exact."""
    _tools: ToolVectors = field(default_factory=ToolVectors)
    _calibrations: Calibrations = field(default_factory=Calibrations)

    async def retrieve(self, user_sub: str, authorised_at: datetime, question: Question) -> Retrieved:
        """Returns up to k cases that may help, and logs the decision, if it is to be kept, with each place's chance.

        Whatever is missing, the rest answers: ``mode`` says what carried the search (hybrid, keyword, off or
        empty) and ``degraded`` what was missing. An unknown agent has an empty slate.

        Raises:
            UserErased, DatabaseUnavailable: see Database.as_user.
        """
        with stage("retrieve"):
            question, unwritten = await self._rewrite(
                Asker(user_sub, authorised_at, question.search.agent_key), question
            )
            search, degraded = await self._embed(question.search)
            degraded += unwritten
            async with self.database.fast(user_sub, authorised_at) as connection:
                with stage("retrieve.candidates"):
                    rows, search = await self._candidates(connection, search, degraded)
                    rows = await self._to_be_opened(connection, rows)
                with stage("retrieve.rank"):
                    found = await self._found(connection, replace(question, search=search), rows, degraded)
                    seen = await self._pool(connection, search, found)
                    arms = await self.policies.arms(connection, search.agent_key, found.settings)
                with stage("reuse"):
                    asked = replace(question, search=search)
                    answered, entry = answer(asked, found, seen, arms, explore=self.explore)
                    if question.lessons:
                        answered, entry = await _with_lessons(connection, answered, entry)
                    if question.tool_memory and answered.context.text:
                        answered = await _with_tools(connection, answered, question)
                        entry = replace(entry, tokens=answered.context.tokens)
                if not question.logged:
                    return answered
                with stage("retrieve.log"):
                    await self._log(connection, entry, answered.context.text)
        count_answer(answered, entry.arm)
        return answered

    async def _found(
        self, connection: FastConnection, question: Question, rows: Sequence[BankRow], degraded: list[str]
    ) -> SearchResult:
        if not question.memory:
            return SearchResult(rows, degraded, wanted=False)
        search = question.search
        procedures = ProceduresFound()
        if not question.lessons:
            procedures = await self._procedures(connection, search, rows, question.min_similarity)
        floor = self._calibrations.floor(search.model)
        recalled = await self._recalled(connection, question, rows, degraded)
        return SearchResult(
            rows,
            degraded,
            procedures,
            await unrelated(connection, search, rows, floor),
            quotes=await self._quotes(connection, question, rows, recalled),
            recalled=recalled,
        )

    async def session(self, user_sub: str, authorised_at: datetime, name: str, token_budget: int) -> View | None:
        """Returns a session as far as the budget shows it; None: the user has no such session.

        Raises:
            UserErased, DatabaseUnavailable: see Database.as_user.
        """
        async with self.database.fast(user_sub, authorised_at) as connection:
            reading = Reading(connection, name, self._seal_with, lambda turn: count_tokens(turn.text), count_tokens)
            return await reading.view(token_budget)

    async def recall(self, user_sub: str, authorised_at: datetime, question: RecallQuestion) -> Recalled:
        """Returns the memories that the question is about, the best first, each with where it comes from.

        Of an unknown agent there are none. Whatever is missing, the rest answers, and ``degraded`` says what was.

        Raises:
            UserErased, DatabaseUnavailable: see Database.as_user.
            SealBroken: a memory was sealed with another key, or was changed.
        """
        with stage("recall"):
            search, degraded = await self._embed(Search(question.agent_key, question.query))
            if search.vector is not None and not self.pgvector:
                degraded.append("pgvector")
            async with self.database.fast(user_sub, authorised_at) as connection:
                found = await self._found_again(connection, question, search)
                return replace(found, degraded=degraded)

    async def _recalled(
        self, connection: FastConnection, question: Question, rows: Sequence[BankRow], degraded: Sequence[str]
    ) -> Recalled | None:
        """Returns what was said and is known, in one more statement; None where nobody asked, or memory is off."""
        if not question.recall or (rows and not rows[0].enabled):
            return None
        search = question.search
        asked = RecallQuestion(search.agent_key, search.query, token_budget=question.token_budget)
        with stage("retrieve.recall"):
            found = await self._found_again(connection, asked, search)
        return replace(found, degraded=[each for each in degraded if each != "rewriter"])

    async def _found_again(self, connection: FastConnection, question: RecallQuestion, search: Search) -> Recalled:
        """Returns what is recalled, and remembers how large the bank is."""
        bank = connection.user_sub, question.agent_key, frozenset[str](question.kinds)
        texts = self._texts.get(bank, 0)
        sample = self.large.sample_of(texts)
        size = None if sample is None else (texts, sample)
        found = await recall(connection, question, self._meaning(search), self._seal_with, size)
        if found.texts and question.session is None and question.as_of is None:
            self._texts[bank] = found.texts
        return found

    def _meaning(self, search: Search) -> Meaning | None:
        """Returns what the query means; None where nobody could embed it, or the database compares no vectors."""
        if search.vector is None or not self.pgvector:
            return None
        return Meaning(search.vector, search.model, self._calibrations.floor(search.model))

    async def _quotes(
        self, connection: FastConnection, question: Question, rows: Sequence[BankRow], recalled: Recalled | None
    ) -> dict[PartName, Quoted]:
        """Returns what the context says of the session and of the user."""
        if not rows[0].enabled if rows else recalled is None:
            return {}
        telling = Telling(
            connection,
            question.search.agent_key,
            rows[0] if rows else None,
            question.token_budget,
            question.session,
            facts=question.facts and not question.lessons,
            recalled=recalled or Recalled(),
            seal_of=self._seal_with,
        )
        return await telling.quotes()

    async def _to_be_opened(self, connection: FastConnection, rows: Sequence[Row]) -> Sequence[Row]:
        """Returns the rows, those with sealed words as such that open when they are read."""
        keys = {row.key_id for row in rows if is_sealed(row)}
        if not keys:
            return rows
        seal = await self._seal_with(connection, keys.pop())
        return [cast("Row", SealedCase(row, seal)) if is_sealed(row) else row for row in rows]

    async def _seal_with(self, connection: FastConnection, key_id: UUID) -> UserSeal:
        """Returns what opens words that were sealed with this key."""
        if self.seals is None:
            raise AssertionError("these words are sealed, and nobody here can open them")
        seal = await self._seal(connection, self.seals)
        if seal.key_id != key_id:  # the user began anew since this process remembered the key
            self.seals.forget(connection.user_sub)
            seal = await self._seal(connection, self.seals)
        return seal

    async def _seal(self, connection: FastConnection, seals: Seals) -> UserSeal:
        return await seals.of_user(self.database, connection)

    async def _log(self, connection: FastConnection, entry: LoggedDecision, told: str) -> None:
        """Logs the decision with what it told, sealed, and the words of its query, sealed where that is wished."""
        if self.seals is not None:
            seal = await self._seal(connection, self.seals)
            entry = sealed(entry, seal, told, words=self.seals.seals_words)
        if await connection.value(log_decision(), entry.parameters()) is False:
            cast("Seals", self.seals).forget(connection.user_sub)  # too late for this query: its words are not kept

    async def procedures(self, user_sub: str, authorised_at: datetime, question: ProcedureQuestion) -> ProcedureAnswer:
        """Returns the procedures that a caller looks for; none of an unknown agent, or of one whose memory is off.

        Raises:
            UserErased, DatabaseUnavailable: see Database.as_user.
        """
        search, degraded = Search(question.agent_key, question.text or ""), list[str]()
        if question.text is not None:
            search, degraded = await self._embed(search)
        async with self.database.fast(user_sub, authorised_at) as connection:
            rows = await connection.all(*profile_terms(question.agent_key))
            threshold = self._threshold(rows[0].procedure_similarity if rows else None, None)
            if question.least is not None:
                threshold = Threshold(question.least, "request")
            if not rows or not rows[0].enabled:
                return ProcedureAnswer([], threshold, degraded)
            wanted = ProcedureSearch(
                agent_key=search.agent_key,
                text=question.text,
                vector=search.vector,
                model=search.model,
                floor=threshold.similarity,
                filters=question.filters,
                task_type=question.task_type,
                domain=question.domain,
                measures=question.measures,
                look=question.limit,
            )
            found = await find(connection, wanted, pgvector=self.pgvector)
        if search.vector is not None and not self.pgvector:
            degraded.append("pgvector")
        return ProcedureAnswer(as_alternatives(found), threshold, degraded)

    async def _procedures(
        self, connection: FastConnection, search: Search, rows: Sequence[BankRow], min_similarity: float | None
    ) -> ProceduresFound:
        """Returns the procedures for the task, in one more statement, where the profile has any and wants them."""
        if not rows or not (rows[0].enabled and rows[0].has_procedures and rows[0].procedures):
            return ProceduresFound()
        threshold = self._threshold(rows[0].procedure_similarity, min_similarity)
        wanted = ProcedureSearch(
            agent_key=search.agent_key,
            text=search.query,
            vector=search.vector,
            model=search.model,
            floor=threshold.similarity,
            filters=search.filters,
        )
        return ProceduresFound(await find(connection, wanted, pgvector=self.pgvector), threshold)

    def _threshold(self, of_profile: float | None, of_request: float | None) -> Threshold:
        """Returns from which similarity on a procedure is shown; a request may ask for more, and never for less."""
        own = self._calibrations.of(self.embedder.model)
        least = own if of_profile is None else Threshold(of_profile, "profile")
        return least if of_request is None or of_request <= least.similarity else Threshold(of_request, "request")

    async def _rewrite(self, asker: Asker, question: Question) -> tuple[Question, list[str]]:
        """Returns the question with what is to be searched for, and what was missing for it."""
        if self.rewriting is None or not question.memory:
            return question, []
        original = question.search.query
        rewritten = await self.rewriting.rewrite(asker, original, question.rewrite)
        if rewritten.query != original:
            question = replace(
                question, search=replace(question.search, query=rewritten.query), original_query=original
            )
        return question, ["rewriter"] if rewritten.degraded else []

    async def _pool(self, connection: FastConnection, search: Search, found: SearchResult) -> Pool:
        """Returns the candidates, with what came of similar decisions where the profile has any that were rewarded."""
        rows = found.cases
        uses: Sequence[Reuse] = []
        if rows and rows[0].usual_reward is not None and search.vector is not None and self.pgvector:
            uses = await self._to_be_opened(connection, await connection.all(*reuse_history(search)))
        counts = tool_counts([*rows, *uses])
        self._tools.want(counts)
        query = Query(search.query, None if search.vector is None else np.array(search.vector, dtype=np.float32))
        return pool(rows, uses, counts, query, self._tools)

    async def _embed(self, search: Search) -> tuple[Search, list[str]]:
        """Embeds the query, and beside it what else needs vectors: tools' names, and once what calibrates the model."""
        names = self._tools.wanted()
        sentences = self._calibrations.wanted(self.embedder.model)
        with stage("retrieve.embed"):
            try:
                vector, *others = await self._beside(search.query, [*sentences, *map(words_of, names)])
            except TextNotEmbeddable:
                return search, ["query_not_embeddable"]
            except EmbedderError:
                return search, ["embedder"]
        measured = [each for each in others[: len(sentences)] if len(each)]
        if measured or not names:  # or else a name may have spoiled it: another time
            self._calibrations.learn(self.embedder.model, measured)
        self._tools.learn(dict(zip(names, others[len(sentences) :], strict=True)))
        return replace(search, vector=vector.tolist(), model=self.embedder.model), []

    async def _beside(self, query: str, others: Sequence[str]) -> Sequence[Vector]:
        """Returns the vectors of the query and of the others; if they spoil the answer, they have none from now on."""
        try:
            return list(await self.embedder.embed([query, *others]))
        except (EmbedderRefused, EmbedderMisbehaved):
            if not others:
                raise
        # other users' tools may be among them: what is wrong with one must not be the query's fault
        (vector,) = await self.embedder.embed([query])
        return [vector, *[NOT_KNOWN] * len(others)]

    async def _candidates(
        self,
        connection: FastConnection,
        search: Search,
        degraded: list[str],
    ) -> tuple[Sequence[BankRow], Search]:
        profile = connection.user_sub, search.agent_key
        if search.vector is not None and not self.pgvector:
            degraded.append("pgvector")
            search = replace(search, measured=await _measure(connection, search))
        elif profile in self._approximate:
            search = replace(search, approximate=True)
        rows = await connection.all(*candidates(search))
        self._approximate.pop(profile, None)
        if rows and rows[0].approximate:
            self._approximate[profile] = True
        if self.rewriting is not None and rows:
            self.rewriting.learn(*profile, rows[0].rewrite)
        return rows, search


async def _measure(connection: FastConnection, search: Search) -> Measured:
    """Computes the cosine distances that the database cannot."""
    found = await connection.all(*vectors(search))
    rows = [row for row in found if len(row.embedding) == len(search.vector or [])]
    if not rows:
        return Measured([], [])
    bank = np.array([row.embedding for row in rows], dtype=np.float32)  # (cases, dimension)
    distances = 1 - bank @ np.array(search.vector, dtype=np.float32)
    return Measured([row.case_id for row in rows], distances.tolist())


async def _with_lessons(
    connection: FastConnection, answered: Retrieved, entry: LoggedDecision
) -> tuple[Retrieved, LoggedDecision]:
    """Returns the answer with what its cases taught, and the entry with those as the procedures that were shown."""
    found = await lessons(connection, entry.case_ids)
    shown = {each.id: each.version for each in found.values()}
    entry = replace(entry, procedure_ids=list(shown), procedure_versions=list(shown.values()))
    return replace(answered, lessons=found), entry


async def _with_tools(connection: FastConnection, answered: Retrieved, question: Question) -> Retrieved:
    with stage("retrieve.tools"):
        rows = await connection.all(*troubles(question.search.agent_key, [each.row.id for each in answered.choices]))
        return replace(answered, context=with_tools(answered.context, lines(rows), question.token_budget))
