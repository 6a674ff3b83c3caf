"""Answers the requests that read memory: retrieve, recall, a session, and a search for procedures."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from policy.fit import FIRST_ORDER
from retrieval.database.database import Database
from retrieval.database.fast_path import FastConnection
from retrieval.database.parameters import vector_text
from retrieval.embedding import embedded
from retrieval.ports import Embedder
from retrieval.procedures.find import PROFILE_TERMS, ProcedureSearch, find, parts_of
from retrieval.procedures.lessons import lessons
from retrieval.procedures.procedure import ProcedureAnswer, ProcedureMatches, as_alternatives
from retrieval.procedures.threshold import Calibrations, Threshold
from retrieval.ranking.answer import compose, entry_of, explain, rank
from retrieval.ranking.decisions import log
from retrieval.ranking.numbers import count_answer
from retrieval.ranking.policies import Fits, Policies
from retrieval.ranking.pool import pool_of
from retrieval.ranking.retrieved import Question, Retrieved, SearchResult
from retrieval.recall.memory import Recalled, RecallQuestion
from retrieval.recall.quotes import QuoteReader
from retrieval.recall.recall import LargeBanks, recall
from retrieval.rewriting.choice import Asker, Rewriting
from retrieval.sealed import Opener, Seals, unreadable
from retrieval.search.candidates import CandidateReader, CaseSearch
from retrieval.search.unrelated import unrelated
from retrieval.sections.quotes import QuotingSection
from retrieval.sections.tools import TROUBLES, lines
from retrieval.sessions.read import SessionReader, View
from retrieval.tasks import started
from retrieval.telemetry import stage
from retrieval.tokens import count_tokens


@dataclass(slots=True)
class Reader:
    """Answers requests that read memory, from the database and with an embedder for queries."""

    database: Database
    embedder: Embedder
    pgvector: bool = True
    """True if the database compares vectors; otherwise this process does."""
    explore: bool = False
    """True if profiles may draw slates at random; otherwise each slate is the serving policy's, and trials wait."""
    rewriting: Rewriting | None = None
    """Rewriters of queries; None: every query is searched for as it is."""
    seals: Seals | None = None
    """Keys that decrypt the words of cases and encrypt those of queries; None: the bank has no sealed words."""
    large: LargeBanks = field(default_factory=LargeBanks)
    """Banks in which a recall is an approximation."""
    policies: Policies = field(default_factory=Policies)
    """Learned policies that serve."""
    first_order: str = FIRST_ORDER
    """Name of the order that serves a profile that was never replayed."""
    _fits: Fits = field(default_factory=Fits)
    _candidates: CandidateReader = field(default_factory=CandidateReader)
    _calibrations: Calibrations = field(default_factory=Calibrations)

    async def retrieve(self, user_sub: str, authorised_at: datetime, question: Question) -> Retrieved:
        """Returns up to k cases that may help with a task, and logs the decision unless the question says not to.

        If a part of the search fails, the others answer: ``mode`` says how cases were searched (hybrid, keyword, off or
        empty), and ``degraded`` names the parts that failed. An unknown agent gets an empty slate.

        Two statements are always sent: the candidates with the profile's settings, and the log of the decision, beside
        which the answer is composed. More are sent where these apply:

        * the profile's rewriter, if no retrieve of this process has read the profile in the last 30 s;
        * the user's key, the fit of the latest replay, and the weights of live policies, if new to this process;
        * procedures, if the profile has any, while this process compares plans: of the task and of its parts, if it has
          several and there are vectors; lessons in their place, if the question asks for them;
        * recall; the session (one statement per 100 turns, one for its summary, one for its first turn); facts;
        * the tools of the slate's cases that fail often, if the question asks for them;
        * vectors of cases and of procedures, if the database has no pgvector.
        """
        with stage("retrieve"):
            question, unwritten = await self._rewrite(user_sub, authorised_at, question)
            parts = parts_of(question.search.query) if question.memory and not question.lessons else []
            search, degraded = await self._embedded(replace(question.search, parts=parts))
            degraded += unwritten
            async with self.database.fast(user_sub, authorised_at) as connection:
                with stage("retrieve.candidates"):
                    settings, found = await self._candidates.read(connection, search, pgvector=self.pgvector)
                    if self.rewriting is not None and settings is not None:
                        self.rewriting.learn(user_sub, search.agent_key, settings.rewrite)
                with stage("retrieve.rank"):
                    question = replace(question, search=search)
                    result = await self._related(connection, question, SearchResult(settings, found, degraded))
                    arms = await self.policies.arms(connection, search.agent_key, result.settings)
                    fit = await self._fits.of(connection, search.agent_key, result.settings)
                    terms = await self._opener.terms(connection, result.cases, search.query)
                    async with started(self._read(connection, question, result)) as reading:
                        pool = pool_of(result.cases, terms, fit, self.first_order)
                    result = reading.result()
                with stage("reuse"):
                    answer = rank(question, result, pool, arms, explore=self.explore)
                    while broken := unreadable([*answer.cases, *answer.others]):
                        result = replace(result, unreadable=result.unreadable | broken)
                        pool = pool_of(result.cases, terms, fit, self.first_order)
                        answer = rank(question, result, pool, arms, explore=self.explore)
                    if question.lessons:
                        answer.lessons = await lessons(connection, answer.case_ids, quarantine=answer.quarantine)
                    tools: Iterable[str] = ()
                    if question.tool_memory and answer.cases:
                        with stage("retrieve.tools"):
                            wanted = {"agent_key": search.agent_key, "case_ids": answer.case_ids}
                            tools = lines(await connection.all(TROUBLES, {**wanted, "quarantine": answer.quarantine}))
                    compose(answer, tools)
                if not question.logged:
                    explain(answer)
                    return answer
                with stage("retrieve.log"):
                    async with started(log(connection, entry_of(answer), answer.context.text, self._opener)):
                        explain(answer)
        count_answer(answer)
        return answer

    async def session(self, user_sub: str, authorised_at: datetime, name: str, token_budget: int) -> View | None:
        """Returns the newest turns of a session that fit the budget, and a summary of earlier ones.

        None: the user has no session of this name.
        """
        async with self.database.fast(user_sub, authorised_at) as connection:
            reading = SessionReader(
                connection, name, self._opener.of_key, lambda turn: count_tokens(turn.text), count_tokens
            )
            return await reading.view(token_budget)

    async def recall(self, user_sub: str, authorised_at: datetime, question: RecallQuestion) -> Recalled:
        """Returns the memories that the question is about, the best first, each with its source.

        An unknown agent has no memories. If a part of the search fails, the others answer, and ``degraded`` names it.
        """
        with stage("recall"):
            search, degraded = await self._embedded(CaseSearch(question.agent_key, question.query))
            async with self.database.fast(user_sub, authorised_at) as connection:
                return replace(await self._recall(connection, question, search), degraded=degraded)

    async def procedures(
        self, user_sub: str, authorised_at: datetime, search: ProcedureSearch, least: float | None = None
    ) -> ProcedureAnswer:
        """Returns the procedures that fit the search; none for an unknown agent, or one whose memory is off.

        ``least`` is the least similarity of trigger and text, in place of the profile's or the embedding model's.
        """
        text, degraded = CaseSearch(search.agent_key, search.text or ""), list[str]()
        if search.text is not None:
            text, degraded = await self._embedded(text)
        async with self.database.fast(user_sub, authorised_at) as connection:
            rows = await connection.all(PROFILE_TERMS, {"agent_key": search.agent_key})
            of_profile = rows[0].procedure_similarity if rows else None
            threshold = self._calibrations.threshold(self.embedder.model, of_profile)
            if least is not None:
                threshold = Threshold(least, "request")
            if not rows or not rows[0].enabled:
                return ProcedureAnswer([], threshold, degraded)
            near = replace(search, floor=threshold.similarity, by_tool=not threshold.is_set)
            near = replace(near, vector=text.vector, model=text.model)
            [procedures] = await find(connection, near, pgvector=self.pgvector)
        return ProcedureAnswer(as_alternatives(procedures), threshold, degraded)

    @property
    def _opener(self) -> Opener:
        return Opener(self.database, self.seals)

    async def _embedded(self, search: CaseSearch) -> tuple[CaseSearch, list[str]]:
        """Returns the search with its vectors, and the entries of ``degraded`` that this gives."""
        search, degraded = await embedded(self.embedder, search, self._calibrations)
        return search, degraded if search.vector is None or self.pgvector else [*degraded, "pgvector"]

    async def _rewrite(self, user_sub: str, authorised_at: datetime, question: Question) -> tuple[Question, list[str]]:
        """Returns the question with the query to search for, and the entry of ``degraded`` if the rewriter failed."""
        if self.rewriting is None or not question.memory:
            return question, []
        search = question.search
        rewritten = await self.rewriting.rewrite(
            Asker(user_sub, authorised_at, search.agent_key), search.query, question.rewrite
        )
        if rewritten.query != search.query:
            question = replace(question, search=replace(search, query=rewritten.query), original_query=search.query)
        return question, ["rewriter"] if rewritten.degraded else []

    async def _related(self, connection: FastConnection, question: Question, result: SearchResult) -> SearchResult:
        """Adds the cases found that are unrelated to the query, and their seal; without any case if memory is off."""
        search, settings = question.search, result.settings
        if not question.memory or (settings is not None and not settings.enabled):
            return replace(result, found=[], is_off=True)
        floor = self._calibrations.floor(search.model, settings.unlike if settings else None, search.vector)
        far = unrelated(result.found, floor)
        return replace(result, floor=floor, unrelated=far, seal=await self._opener.seal_of(connection, result.found))

    async def _read(self, connection: FastConnection, question: Question, result: SearchResult) -> SearchResult:
        """Adds what an answer needs besides the cases: procedures, recalled memories, session and facts."""
        if not question.memory:
            return result
        search, settings = question.search, result.settings
        enabled = bool(settings and settings.enabled)
        threshold = self._calibrations.threshold(
            self.embedder.model, settings.procedure_similarity if settings else None, question.min_similarity
        )
        procedures = ProcedureMatches()
        if enabled and settings and not question.lessons and settings.has_procedures and settings.procedures:
            whole, *of_parts = await find(connection, _wanted(search, result, threshold), pgvector=self.pgvector)
            procedures = ProcedureMatches(whole, threshold, of_parts)
        recalled: Recalled | None = None
        if question.recall and (enabled or not settings):  # memories may be there before the first case makes a profile
            about = RecallQuestion(search.agent_key, search.query, token_budget=question.token_budget)
            with stage("retrieve.recall"):
                recalled = await self._recall(connection, about, search)
            recalled = replace(recalled, degraded=[each for each in result.degraded if each != "rewriter"])
        quotes: Sequence[QuotingSection] = ()
        if enabled or recalled is not None:
            reader = QuoteReader(
                connection,
                search.agent_key,
                settings,
                question.token_budget,
                question.session,
                facts=question.facts and not question.lessons,
                recalled=recalled or Recalled(),
                seal_of=self._opener.of_key,
            )
            quotes = await reader.sections()
        return replace(result, procedures=procedures, threshold=threshold, quotes=quotes, recalled=recalled)

    async def _recall(self, connection: FastConnection, question: RecallQuestion, search: CaseSearch) -> Recalled:
        """Returns the memories that the query is about; only by keywords if the database cannot compare its vector."""
        meaning: dict[str, object] = {}
        if search.vector is not None and self.pgvector:
            floor = self._calibrations.floor(search.model)
            meaning = {"vector": vector_text(search.vector), "model": search.model}
            meaning |= {} if floor is None else {"least": floor.of_model}
        size = self.large.size(connection.user_sub, question)
        recalled = await recall(connection, question, meaning, self._opener.of_key, size)
        self.large.learn(connection.user_sub, question, recalled)
        return recalled


def _wanted(search: CaseSearch, result: SearchResult, threshold: Threshold) -> ProcedureSearch:
    """Returns the search for procedures whose trigger, or a case that taught them, is near the query."""
    least = threshold.similarity
    if not threshold.is_set and result.floor is not None:
        least = max(least, result.floor.of_profile)
    went_well = [(row, row.similarity) for row in result.cases if not row.failed and row.similarity is not None]
    near = [(row, similarity) for row, similarity in went_well if similarity >= least]
    return ProcedureSearch(
        agent_key=search.agent_key,
        text=search.query,
        vector=search.vector,
        parts=search.parts if search.part_vectors else (),  # without vectors not by parts
        part_vectors=search.part_vectors,
        model=search.model,
        floor=least,
        near={row.id: similarity for row, similarity in near},
        near_proven=frozenset(row.id for row, _ in near if row.proven),
        by_tool=not threshold.is_set,
        filters=search.filters,
    )
