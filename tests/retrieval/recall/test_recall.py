"""A bank that is large by the reader's setting answers as the exact one does on top, and of nobody else's."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from retrieval.errors import UserErased
from retrieval.recall.memory import KINDS, Recalled, RecallQuestion, TurnSource
from retrieval.recall.recall import LargeBanks
from retrieval.retrieve import Reader
from tests.service import AGENT, Service, User, alice, bob, service  # noqa: F401 - the fixtures
from writer.rights.erase import erase

FILLER = ["We walked along the river", "Lunch was soup and bread", "The train to the coast was late", "Rain again"]
NEEDLES = {
    "Who tunes the harpsichord?": "Ottilie tunes the harpsichord in the chapel.",
    "When does the lighthouse open?": "They open the lighthouse on Sundays in June.",
    "What is the parrot's name?": "My parrot's name is Figaro, he whistles.",
}
SESSIONS, TURNS = 8, 25
SAMPLE = 60


def exact(user: User) -> Reader:
    return user.service.runtime.reader


def sampled(user: User, sample: int = SAMPLE) -> Reader:
    return replace(exact(user), large=LargeBanks(texts=100, sample=sample))


async def filled(user: User, needles: Sequence[str]) -> None:
    """Tells the user's sessions, each needle in one of its own, and waits until all have their vectors."""
    for number in range(SESSIONS):
        said = [f"{FILLER[turn % len(FILLER)]}, the {number} day {turn}." for turn in range(TURNS)]
        if number < len(needles):
            said[number * 7] = needles[number]
        turns = [{"role": "user", "content": text} for text in said]
        answer = await user.http.post(f"/v1/sessions/talk {number}/turns", json={"agent": AGENT, "turns": turns})
        assert answer.status_code == 200, answer.text
    await user.settle("sessions", "memories")


async def ask(reader: Reader, user: User, query: str) -> Recalled:
    """Asks twice: only then does a reader know how large the bank is."""
    question = RecallQuestion(AGENT, query, top_k=5, kinds=KINDS)
    await reader.recall(user.name, datetime.now(UTC), question)
    return await reader.recall(user.name, datetime.now(UTC), question)


def rounded(found: Recalled) -> Recalled:
    """Returns the answer with its numbers to nine places: a sum of floats follows the order of the rows."""
    memories = tuple(
        replace(one, relevance=round(one.relevance, 9), similarity=one.similarity and round(one.similarity, 9))
        for one in found.memories
    )
    sessions = tuple(replace(one, relevance=round(one.relevance, 9)) for one in found.sessions)
    return replace(found, memories=memories, sessions=sessions)


def places(found: Recalled) -> list[tuple[str, int]]:
    return [(m.source.session_id, m.source.number) for m in found.memories if isinstance(m.source, TurnSource)]


async def test_what_is_on_top_of_an_exact_answer_is_on_top_of_a_sampled_one(alice: User):  # noqa: F811
    await filled(alice, list(NEEDLES.values()))
    for query, needle in NEEDLES.items():
        one, other = await ask(exact(alice), alice, query), await ask(sampled(alice), alice, query)
        assert one.memories[0].text == other.memories[0].text == needle
        assert one.memories[0].similarity == pytest.approx(other.memories[0].similarity)
        assert one.sessions[0].session_id == other.sessions[0].session_id


async def test_without_vectors_a_sampled_answer_finds_by_words(alice: User):  # noqa: F811
    await filled(alice, list(NEEDLES.values()))
    for query, needle in NEEDLES.items():
        found = await ask(replace(sampled(alice), pgvector=False), alice, query)
        assert found.memories[0].text == needle


async def test_a_sample_of_all_ranks_turns_by_their_words_as_the_exact_answer_does(alice: User):  # noqa: F811
    await filled(alice, list(NEEDLES.values()))
    for query in NEEDLES:
        one, other = await ask(exact(alice), alice, query), await ask(sampled(alice, 10_000), alice, query)
        assert places(one)[:1] == places(other)[:1]


async def test_a_bank_that_is_not_large_is_answered_exactly(alice: User):  # noqa: F811
    await filled(alice, list(NEEDLES.values()))
    for query in NEEDLES:
        within = replace(exact(alice), large=LargeBanks(texts=100_000, sample=1))
        assert rounded(await ask(within, alice, query)) == rounded(await ask(exact(alice), alice, query))


async def test_a_sampled_answer_has_nothing_of_another_user_nor_of_one_who_was_erased(
    service: Service,  # noqa: F811
    alice: User,  # noqa: F811
    bob: User,  # noqa: F811
):
    secret = "The harpsichord's key is under the stone."
    await filled(alice, [secret])
    await filled(bob, [])
    query = "Where is the harpsichord's key?"
    assert (await ask(sampled(alice), alice, query)).memories[0].text == secret
    before = rounded(await ask(sampled(bob), bob, query))
    assert all(secret != memory.text for memory in before.memories)
    seen = datetime.now(UTC)
    await erase(service.runtime.database, alice.name)
    with pytest.raises(UserErased):
        await sampled(alice).recall(alice.name, seen, RecallQuestion(AGENT, query))
    later = await ask(sampled(alice), alice, query)
    assert later.memories == ()
    assert rounded(await ask(sampled(bob), bob, query)) == before


@pytest.mark.parametrize(
    "query",
    ["it's C:\\path\\to 'quoted' \"words\" & | ! ( :* x\\'", "the of and", "\u4e2d\u6587 \U0001f600"],
)
async def test_a_sampled_answer_takes_any_words(query: str, alice: User):  # noqa: F811
    await filled(alice, [query])
    await ask(sampled(alice), alice, query)
