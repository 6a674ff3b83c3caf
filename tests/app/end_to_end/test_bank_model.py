"""A bank of two users against a model of it in plain Python: whatever they do in turn, each sees their own cases."""

import asyncio
import os
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import mean
from typing import Any, TypeVar
from uuid import UUID, uuid4

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import func, select

from app.postgres import EmbeddedPostgres
from app.postgres.pools import service_database
from app.providers.wordllama import WordLlamaEmbedder
from retrieval.database.database import Database
from retrieval.errors import NotFound
from retrieval.pages.listing import page_of
from retrieval.ranking.retrieved import Question
from retrieval.retrieve import Reader
from retrieval.search.candidates import CaseSearch
from retrieval.tables.cases import cases
from retrieval.tables.metadata import USER_TABLES
from tests.conftest import new_database
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.queue.worker import Worker
from writer.retain.retain import retain
from writer.rewards.feedback import Feedback, give_feedback
from writer.rights.edit import delete_case, set_tags
from writer.rights.erase import erase
from writer.run import FinishedRun

T = TypeVar("T")

AGENT = "operator"
# Plans that differ, so that only equal runs are repeats of each other: how near is near is another test's matter.
RUNS = [
    ("tune the piano", ["find the fork"], "success"),
    ("tune the piano", ["find the fork"], "failure"),
    ("water the garden", ["open the tap"], "success"),
    ("restart the web server", ["log in", "restart"], "partial"),
    ("translate the letter", ["read it", "write it"], "success"),
]
TAGS = ["red", "green", "blue"]

people = st.integers(0, 1)
places = st.integers(0, 10**6)
runs = st.sampled_from(RUNS)


@dataclass
class Case:
    """What the model knows of a case."""

    task: str
    plan: list[str]
    outcome: str
    reward: float
    source: str = "heuristic"
    status: str = "pending"
    tags: list[str] = field(default_factory=list)
    occurrences: int = 1
    trusted: dict[UUID, float] = field(default_factory=dict)
    """The trusted rewards of its own run and of its repeats."""

    @property
    def run(self) -> tuple[str, list[str], str]:
        return self.task, self.plan, self.outcome

    def judge(self, trusted: Mapping[UUID, float], source: str) -> None:
        """The mean is over the trusted rewards, if there are any."""
        self.trusted |= trusted
        self.reward = mean(self.trusted.values())
        self.source = source if self.source == "heuristic" else self.source


@dataclass
class Person:
    """One user: the name they have in the bank, and their cases as they should be there, in order of retaining."""

    name: str
    cases: dict[UUID, Case] = field(default_factory=dict)
    keys: dict[str, UUID] = field(default_factory=dict)
    retrievals: list[UUID] = field(default_factory=list)

    def nth(self, place: int) -> UUID | None:
        ids = list(self.cases)
        return ids[place % len(ids)] if ids else None


class BankMachine(RuleBasedStateMachine):
    """Two users retain, work, retrieve, reward, tag, delete and leave, in any order."""

    runner: asyncio.Runner
    database: Database
    embedder: WordLlamaEmbedder

    @initialize()
    def begin(self) -> None:
        self.keyring = Keyring(os.urandom(32))
        self.people = [Person(f"user-{uuid4()}") for _ in range(2)]

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def author(self, person: Person) -> Author:
        return Author(person.name, person.name, datetime.now(UTC))

    async def _as(self, person: Person, act: Any) -> Any:
        async with self.database.as_user(person.name, datetime.now(UTC)) as connection:
            return await act(connection)

    @rule(who=people, run=runs, tags=st.lists(st.sampled_from(TAGS), max_size=2, unique=True))
    def retains(self, who: int, run: tuple[str, list[str], str], tags: list[str]) -> None:
        person = self.people[who]
        kept = self._retain(person, run, tags, None)
        assert kept not in person.cases
        person.cases[kept] = self._case(run, tags)

    @rule(who=people, run=runs, key=st.sampled_from(["monday", "tuesday"]))
    def retains_with_a_key(self, who: int, run: tuple[str, list[str], str], key: str) -> None:
        person = self.people[who]
        name = f"{key} {RUNS.index(run)}"
        kept = self._retain(person, run, [], name)
        if person.keys.get(name) in person.cases:
            assert kept == person.keys[name]
        else:
            person.cases[kept] = self._case(run, [])
            person.keys[name] = kept

    def _retain(self, person: Person, run: tuple[str, list[str], str], tags: list[str], key: str | None) -> UUID:
        task, plan, outcome = run
        finished = FinishedRun.model_validate(
            {"agent": AGENT, "task": task, "plan": plan, "outcome": outcome, "tags": tags},
        )
        return self.do(retain(self.database, self.keyring, finished, self.author(person), key)).case_id

    @staticmethod
    def _case(run: tuple[str, list[str], str], tags: list[str]) -> Case:
        task, plan, outcome = run
        return Case(task, plan, outcome, {"success": 1.0, "partial": 0.5}.get(outcome, 0.0), tags=list(tags))

    @rule()
    def the_worker_works(self) -> None:
        async def drain() -> None:
            while await Worker(self.database, self.embedder, self.keyring).run_once():
                pass

        self.do(drain())
        for person in self.people:
            for case in person.cases.values():
                if case.status == "pending":
                    self._model_finishes(person, case)

    @staticmethod
    def _model_finishes(person: Person, fresh: Case) -> None:
        ready = [case for case in person.cases.values() if case.status == "ready" and case.run == fresh.run]
        if not ready:
            fresh.status = "ready"
            return
        fresh.status = "merged"
        kept = ready[0]
        if fresh.trusted:
            kept.judge(fresh.trusted, fresh.source)
        elif not kept.trusted:
            kept.reward = (kept.reward * kept.occurrences + fresh.reward) / (kept.occurrences + 1)
        kept.occurrences += 1

    @rule(who=people, query=st.sampled_from(["piano", "the garden", "server", "something else"]), k=st.integers(1, 6))
    def retrieves(self, who: int, query: str, k: int) -> None:
        person = self.people[who]
        reader = Reader(self.database, self.embedder, explore=True)
        question = Question(CaseSearch(agent_key=AGENT, query=query), k=k)
        slate = self.do(reader.retrieve(person.name, datetime.now(UTC), question))
        person.retrievals.append(slate.retrieval_id)
        shown = [choice.row.id for choice in slate.choices]
        ready = [case_id for case_id, case in person.cases.items() if case.status == "ready"]
        assert len(set(shown)) == len(shown) <= k
        assert set(shown) <= set(ready)
        related = [case_id for case_id in ready if query.removeprefix("the ") in person.cases[case_id].task]
        assert set(shown) <= set(related)
        assert bool(shown) == bool(related)
        assert sum(person.cases[case_id].outcome == "failure" for case_id in shown) <= 1
        assert all(0 < choice.propensity <= 1 for choice in slate.choices)

    @rule(
        who=people, place=places, reward=st.sampled_from([0.0, 0.25, 1.0]), source=st.sampled_from(["user", "metric"])
    )
    def rewards_a_case(self, who: int, place: int, reward: float, source: Any) -> None:
        person = self.people[who]
        if (case_id := person.nth(place)) is not None:
            counts = self.do(self._feedback(person, Feedback(reward, source, case_id=case_id)))
            assert (counts.reward, counts.source) == (reward, source)
            case = person.cases[case_id]
            case.judge({case_id: reward}, source)
            case.source = source
            if case.status == "merged":
                kept = next(each for each in person.cases.values() if each.status == "ready" and each.run == case.run)
                kept.judge({case_id: reward}, source)

    @rule(who=people, place=places, reward=st.sampled_from([0.0, 0.5, 1.0]))
    def rewards_a_retrieval(self, who: int, place: int, reward: float) -> None:
        person = self.people[who]
        if person.retrievals:
            retrieval_id = person.retrievals[place % len(person.retrievals)]
            self.do(self._feedback(person, Feedback(reward, "user", decision_id=retrieval_id)))

    async def _feedback(self, person: Person, feedback: Feedback) -> Feedback:
        return await self._as(person, lambda c: give_feedback(c, person.name, person.name, feedback))

    @rule(who=people, place=places, tags=st.lists(st.sampled_from(TAGS), max_size=2, unique=True))
    def tags_a_case(self, who: int, place: int, tags: list[str]) -> None:
        person = self.people[who]
        if (case_id := person.nth(place)) is not None:
            self.do(self._as(person, lambda c: set_tags(c, self.keyring, self.author(person), case_id, tags)))
            person.cases[case_id].tags = tags

    @rule(who=people, place=places)
    def deletes_a_case(self, who: int, place: int) -> None:
        person = self.people[who]
        if (case_id := person.nth(place)) is not None:
            self.do(self._as(person, lambda c: delete_case(c, self.keyring, self.author(person), case_id)))
            gone = person.cases.pop(case_id)
            if gone.status == "ready":  # its repeats go with it
                repeats = [each for each, case in person.cases.items() if case.status == "merged"]
                for each in repeats:
                    if person.cases[each].run == gone.run:
                        del person.cases[each]

    @rule(who=people, place=places, how=st.sampled_from(["tag", "delete", "reward", "reward retrieval"]))
    def reaches_for_what_the_other_has(self, who: int, place: int, how: str) -> None:
        thief, victim = self.people[who], self.people[1 - who]
        case_id = victim.nth(place) or uuid4()
        retrieval_id = victim.retrievals[-1] if victim.retrievals else uuid4()
        attempts = {
            "tag": lambda: self._as(
                thief, lambda c: set_tags(c, self.keyring, self.author(thief), case_id, ["stolen"])
            ),
            "delete": lambda: self._as(thief, lambda c: delete_case(c, self.keyring, self.author(thief), case_id)),
            "reward": lambda: self._feedback(thief, Feedback(0.0, "user", case_id=case_id)),
            "reward retrieval": lambda: self._feedback(thief, Feedback(0.0, "user", decision_id=retrieval_id)),
        }
        try:
            self.do(attempts[how]())
        except NotFound:
            return
        raise AssertionError(f"{how}: what the other has was found")

    @rule(who=people)
    def retains_on_what_the_other_retrieved(self, who: int) -> None:
        thief, victim = self.people[who], self.people[1 - who]
        retrieval_id = victim.retrievals[-1] if victim.retrievals else uuid4()
        run = FinishedRun(agent=AGENT, task="steal", outcome="success", retrieval_id=retrieval_id)
        kept = self.do(retain(self.database, self.keyring, run, self.author(thief)))
        assert kept.retrieval_id is None
        self.do(self._as(thief, lambda c: delete_case(c, self.keyring, self.author(thief), kept.case_id)))

    @rule(who=people)
    def leaves(self, who: int) -> None:
        person = self.people[who]
        receipt = self.do(erase(self.database, person.name))
        assert receipt.clean
        assert receipt.rows["cases"] == len(person.cases)
        self.people[who] = Person(person.name)

    @invariant()
    def each_sees_their_own_cases_as_the_model_has_them(self) -> None:
        for person in getattr(self, "people", []):
            rows = self.do(self._as(person, lambda c, name=person.name: self._cases(c, name)))
            assert [row.id for row in rows] == sorted(person.cases, reverse=True)
            for row in rows:
                case = person.cases[row.id]
                seen = (row.task, row.plan, row.outcome, row.status, row.tags, row.occurrences)
                assert seen == (case.task, case.plan, case.outcome, case.status, case.tags, case.occurrences)
                assert abs(row.reward - case.reward) < 1e-5
                assert row.reward_source == case.source

    @invariant()
    def the_bank_holds_no_rows_of_others(self) -> None:
        for person in getattr(self, "people", []):
            names = self.do(self._as(person, self._names))
            assert names <= {person.name}

    @staticmethod
    async def _cases(connection: Any, name: str) -> list[Any]:
        return (await connection.execute(page_of(cases, name, {}, before=None, limit=200))).all()

    @staticmethod
    async def _names(connection: Any) -> set[str]:
        found: set[str] = set()
        for table in USER_TABLES:
            found |= set((await connection.scalars(select(func.distinct(table.c.user_sub)))).all())
        return found


def test_whatever_two_users_do_the_bank_is_what_the_model_says(postgres: EmbeddedPostgres):
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        database = service_database(runner.run(new_database(postgres)))

        class OnThisDatabase(BankMachine):
            pass

        OnThisDatabase.runner = runner
        OnThisDatabase.database = runner.run(stack.enter_async_context(database))
        OnThisDatabase.embedder = WordLlamaEmbedder()
        run_state_machine_as_test(
            OnThisDatabase,
            settings=settings(
                max_examples=15,
                stateful_step_count=15,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
        runner.run(stack.aclose())
