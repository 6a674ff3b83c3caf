"""Turns: a place for everybody, one after the other, and none for all of one user's requests at once."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from app.admission.errors import TooManyAtOnce
from app.admission.turns import (
    ALLOWANCE_S,
    HERE_S,
    IN_A_GAP_S,
    KEPT_S,
    MOST_OWED_S,
    NEW_S,
    AdmittedRequest,
    Places,
    Turns,
)
from tests.clock import Clock


@dataclass
class Passing(Clock):
    """A clock that goes on by itself, and that a test sets forward."""

    def __call__(self) -> float:
        return self.now + asyncio.get_running_loop().time()


@dataclass
class Process:
    """Turns whose requests last as long as the test says, and the order in which they began."""

    turns: Turns
    clock: Clock
    processor: Clock
    began: list[str] = field(default_factory=list)
    under_way: list[tuple[str, AdmittedRequest]] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def ask(self, *users: str) -> None:
        self.tasks += [asyncio.create_task(self._one(user)) for user in users]
        await settle()

    async def _one(self, user: str) -> None:
        turn = await self.turns.enter(user)
        self.began.append(user)
        self.under_way.append((user, turn))

    async def end(self, user: str, *, seconds: float = 0.0) -> None:
        """Ends the user's first request, which took so much of the processor's time."""
        self.processor.now += seconds
        place = next(place for place, (whose, _) in enumerate(self.under_way) if whose == user)
        self.turns.leave(self.under_way.pop(place)[1])
        await settle()

    async def look(self) -> None:
        self.turns._let_in()  # noqa: SLF001 - as the timer does
        await settle()

    def running(self) -> list[str]:
        return sorted(user for user, _ in self.under_way)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


MakeProcess = Callable[..., Process]


@pytest.fixture
def process() -> MakeProcess:
    def make(**places: float) -> Process:
        clock, processor = Clock(100.0), Clock(100.0)
        given = {"wait_s": 30.0, "share": 0.5} | places
        return Process(Turns(Places(**given), clock, processor), clock, processor)

    return make


async def test_one_user_has_no_more_than_their_places(process: MakeProcess):
    here = process(per_user=2)
    await here.ask(*["a"] * 5, "b")
    assert here.running() == ["a", "a", "b"]
    await here.end("a")
    assert here.running() == ["a", "a", "b"]
    assert here.began == ["a", "a", "b", "a"]


async def test_free_places_go_to_the_users_in_turn(process: MakeProcess):
    here = process(in_all=1, per_user=1)
    await here.ask(*["a"] * 4, "b", "b", "c")
    for user in "abcaba":
        assert here.running() == [user]
        await here.end(user)
    assert "".join(here.began) == "abcabaa"


async def test_who_does_not_come_to_their_turn_in_time_is_refused_and_takes_no_place(process: MakeProcess):
    here = process(per_user=1, wait_s=0.01)
    await here.ask("a", "a")
    with pytest.raises(TooManyAtOnce) as refused:
        await here.tasks[1]
    assert refused.value.retry_s >= 1
    await here.end("a")
    await here.ask("a")
    assert here.running() == ["a"]
    assert here.turns.running == 1


async def test_a_line_that_is_too_long_is_refused_at_once(process: MakeProcess):
    here = process(per_user=1, line=2)
    await here.ask(*["a"] * 4, "b")
    with pytest.raises(TooManyAtOnce):
        here.tasks[3].result()
    assert here.running() == ["a", "b"]


async def test_a_client_that_hangs_up_in_the_line_leaves_it(process: MakeProcess):
    here = process(per_user=1)
    await here.ask("a", "a", "a")
    here.tasks[1].cancel()
    await settle()
    await here.end("a")
    assert here.running() == ["a"]
    assert here.tasks[2].done()
    await here.end("a")
    assert here.turns.running == 0


async def test_who_gave_up_while_nothing_moved_gets_a_turn_when_they_come_back(process: MakeProcess):
    here = process(in_all=1)
    await here.ask("a", "b")
    here.tasks[1].cancel()
    await settle()
    here.clock.now += KEPT_S + 1  # a's request hangs for so long that b is forgotten
    await here.ask("c", "b")
    await here.end("a")
    await here.end("c")
    assert here.running() == ["b"]


async def test_a_client_that_hangs_up_just_as_its_turn_comes_leaves_its_place(process: MakeProcess):
    here = process(per_user=1)
    await here.ask("a", "a", "a")
    here.turns.leave(here.under_way.pop()[1])  # which gives the place to the second
    here.tasks[1].cancel()
    await settle()
    assert here.running() == ["a"]
    assert (here.tasks[1].cancelled(), here.tasks[2].done(), here.turns.running) == (True, True, 1)


async def crowd(here: Process) -> None:
    """Lets "flood" use far more than its share while "guest" is active, who is not new."""
    for _ in range(2):
        here.clock.now += NEW_S
        await here.ask("guest")
        await here.end("guest", seconds=0.001)
    await here.ask(*["flood"] * 8)
    while here.under_way:
        await here.end("flood", seconds=12 * ALLOWANCE_S)


async def test_who_crowds_pauses_while_somebody_else_is_active(process: MakeProcess):
    here = process()
    await crowd(here)
    assert here.running() == []
    await here.ask("guest")
    assert here.running() == ["guest"]


async def test_who_crowds_is_held_to_their_share_and_no_less(process: MakeProcess):
    here = process()
    await crowd(here)
    here.clock.now += 0.4  # in which a fifth of a second of the processor's time is the flood's
    await here.look()
    assert here.running() == ["flood"]  # and the next one is reckoned to take as long as the last
    await here.end("flood", seconds=12 * ALLOWANCE_S)
    assert here.running() == []


async def test_who_crowds_uses_the_share_in_a_gap_between_the_requests_of_others(process: MakeProcess):
    here = process()
    await crowd(here)
    await here.ask("guest")
    here.clock.now += (MOST_OWED_S - IN_A_GAP_S) / here.turns.places.share + 0.01
    await here.look()
    assert here.running() == ["guest"]
    await here.end("guest")
    assert here.running() == ["flood"]


async def test_who_crowds_gets_the_share_where_others_leave_no_gap(process: MakeProcess):
    here = process()
    await crowd(here)
    await here.ask("guest")
    here.clock.now += (MOST_OWED_S - ALLOWANCE_S) / here.turns.places.share + 0.01
    await here.look()
    assert here.running() == ["flood", "guest"]


async def test_a_pause_ends_by_itself(process: MakeProcess):
    here = process(share=1.0)
    here.turns.clock = here.clock = Passing(100.0)
    await crowd(here)
    async with asyncio.timeout(60):
        while not here.under_way:  # noqa: ASYNC110 - the turns tell nobody
            await asyncio.sleep(0.01)
    assert "flood" in here.running()


async def test_a_pause_ends_once_the_others_have_gone(process: MakeProcess):
    here = process(share=1e-6)  # the debt alone would last for days
    here.turns.clock = here.clock = Passing(100.0)
    await crowd(here)
    async with asyncio.timeout(60):
        while not here.under_way:  # noqa: ASYNC110 - the turns tell nobody
            await asyncio.sleep(0.01)
    assert here.running() == ["flood"] * 4


async def test_who_is_alone_is_not_held_up(process: MakeProcess):
    here = process()
    await here.ask(*["flood"] * 8)
    for _ in range(4):
        await here.end("flood", seconds=1)
    assert here.running() == ["flood"] * 4


async def test_who_has_gone_holds_up_nobody(process: MakeProcess):
    here = process()
    await crowd(here)
    here.clock.now += HERE_S + 0.01
    await here.look()
    assert here.running() == ["flood"] * 4


async def test_who_leaves_in_debt_holds_up_nobody(process: MakeProcess):
    here = process()
    await here.ask(*["first"] * 4)
    for _ in range(4):
        await here.end("first", seconds=1)
    await here.ask(*["second"] * 8)
    for _ in range(4):
        await here.end("second", seconds=1)
    assert here.running() == ["second"] * 4


async def test_who_came_with_several_requests_holds_nobody_up_once_they_have_ended(process: MakeProcess):
    here = process()
    await here.ask(*["first"] * 4)
    for _ in range(4):
        await here.end("first", seconds=0.001)
    await here.ask(*["second"] * 8)
    for _ in range(4):
        await here.end("second", seconds=1)
    assert here.running() == ["second"] * 4


async def test_who_has_several_requests_under_way_is_not_crowded_out(process: MakeProcess):
    here = process()
    await here.ask("first")
    here.clock.now += NEW_S
    await here.ask("first", *["second"] * 8)
    for _ in range(4):
        await here.end("second", seconds=1)
    assert here.running() == ["first"] * 2
    await here.end("first")
    await here.end("first")
    assert here.running() == ["second"] * 4


async def test_a_new_user_holds_up_a_crowd_by_the_first_request_alone(process: MakeProcess):
    here = process()
    await here.ask(*["flood"] * 12)
    await here.ask("new")
    for _ in range(4):
        await here.end("flood", seconds=1)
    assert here.running() == ["new"]
    here.clock.now += 0.01
    await here.end("new")
    await here.ask("new")
    assert here.running() == ["flood"] * 4 + ["new"]


async def test_a_user_who_has_been_here_for_a_while_holds_up_a_crowd_by_each_request(process: MakeProcess):
    here = process()
    await here.ask("known")
    await here.end("known")
    here.clock.now += NEW_S
    await here.ask("known", *["flood"] * 12)
    for _ in range(4):
        await here.end("flood", seconds=1)
    assert here.running() == ["known"]


async def test_floods_among_themselves_are_equals(process: MakeProcess):
    here = process()
    await here.ask(*["a"] * 8, *["b"] * 8)
    for user in "abababab":
        await here.end(user, seconds=1)
    assert here.running() == ["a"] * 4 + ["b"] * 4


async def test_one_request_at_a_time_is_never_a_crowd(process: MakeProcess):
    here = process()
    await here.ask("guest")
    here.clock.now += NEW_S
    for _ in range(5):
        await here.ask("busy")
        await here.end("busy", seconds=1)
    await here.ask("busy")
    assert here.running() == ["busy", "guest"]


async def test_the_processors_time_is_divided_among_those_under_way(process: MakeProcess):
    here = process()
    await here.ask("a", "b")
    await here.end("a", seconds=1)  # half a second each
    await here.end("b", seconds=1)  # and one more of b
    used = {user: seat.usual_s for user, seat in here.turns._seats.items()}  # noqa: SLF001 - what it is about
    assert used == {"a": pytest.approx(0.5), "b": pytest.approx(1.5)}


async def test_users_who_are_gone_are_forgotten(process: MakeProcess):
    here = process()
    for number in range(50):
        await here.ask(f"user-{number}")
        await here.end(f"user-{number}")
    here.clock.now += 60
    for _ in range(60):
        await here.ask("late")
        await here.end("late")
    assert list(here.turns._seats) == ["late"]  # noqa: SLF001 - nothing else tells
