"""Missions with the plan of BabyAI's own bot, and the stream of its runs."""

import contextlib
import io
import random
import warnings
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from bench.replay.babyai.hands import AROUND, DROP, PICK_UP, PLACES, TOGGLE, Game, Hands, described, name_of
from bench.replay.loops import Plan
from bench.replay.runs import Call, Run, Stream

try:
    import gymnasium
    from minigrid.utils.baby_ai_bot import BabyAIBot
except ImportError:  # not a dependency
    gymnasium = None

LEVELS = (
    "GoToLocal", "GoToSeqS5R2", "ActionObjDoor", "OpenDoorColor", "OpenDoorsOrderN4", "PickupDist", "OneRoomS8",
    "PutNextLocalS6N4", "PutNextS5N2", "MoveTwoAcrossS5N2", "UnlockLocal", "UnlockLocalDist", "UnlockPickup",
    "UnlockPickupDist", "BlockedUnlockPickup", "UnlockToUnlock", "UnblockPickup", "KeyCorridorS3R1", "MiniBossLevel",
)  # fmt: skip
RUNS = 160
A_DAY = 8
"""Number of missions a day."""
LOST, MENDED = 0.08, 0.10
"""Shares of runs with another mission's plan alone, and with such a one before the right one."""
MOST_STEPS = 400
"""Steps after which the bot is taken to be lost."""
MOST_SEARCHES = 2_000
"""Searches after which it is taken to be lost as well."""


@dataclass(frozen=True, slots=True)
class Mission:
    """One mission.

    Attributes:
        text: the mission and the things in the room in which it begins.
        plan: the fewest acts of the bot's plan that solve it.
    """

    level: str
    seed: int
    text: str
    plan: Plan

    def hands(self) -> Hands:
        """Returns a body at the beginning of the mission."""
        return Hands(laid_out(self.level, self.seed))

    def solved_by(self, plan: Plan) -> bool:
        """Returns whether the acts, in this order and without an error, do the mission."""
        hands = self.hands()
        return all(hands.act(call).ok for call in plan) and hands.solved


def missing() -> str:
    """Returns the reason for which this machine cannot play; "" if it can."""
    return "the package minigrid is not installed (pip install minigrid==3.2.0)" if gymnasium is None else ""


@cache
def _game(level: str) -> Game:
    return gymnasium.make(next(name for name in gymnasium.registry if name.startswith(f"BabyAI-{level}-v"))).unwrapped


def laid_out(level: str, seed: int) -> Game:
    """Returns the level's game at the beginning of the mission of a seed; it is the same object each time."""
    game = _game(level)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():  # it prints the layouts that it rejects
        warnings.simplefilter("ignore")
        game.reset(seed=seed)
    return game


def mission(level: str, seed: int) -> Mission | None:
    """Returns the mission of a seed; None if it names more than four things, or if the bot's acts do not solve it."""
    game = laid_out(level, seed)
    if len(described(game.instrs)) > len(PLACES):
        return None
    text = f"{game.mission}. You see {', '.join(sight(game)) or 'nothing'}."
    acts, hands = bots_acts(game), Hands(laid_out(level, seed))
    drawn = Mission(level, seed, text, tuple(call for call in acts if hands.act(call).ok))
    return shortest(drawn) if drawn.solved_by(drawn.plan) else None


def shortest(drawn: Mission) -> Mission:
    """Returns the mission without the acts that it does not need: the bot explores, and moves what is in no way."""
    for number in (2, 1):  # two at once: a key that is fetched and put down again
        for first in range(len(drawn.plan) - number, -1, -1):
            if drawn.solved_by(plan := (*drawn.plan[:first], *drawn.plan[first + number :])):
                return shortest(replace(drawn, plan=plan))
    return drawn


def sight(game: Game) -> list[str]:
    """Returns the things in the agent's room in words, its doors included."""
    room, grid = game.room_from_pos(*game.agent_pos), game.grid
    (left, top), (width, height) = room.top, room.size
    words = []
    for x, y in ((x, y) for y in range(top, top + height) for x in range(left, left + width)):
        thing = grid.get(x, y)
        if thing is None or thing.type == "wall":
            continue
        around = [grid.get(x + dx, y + dy) for dx, dy in AROUND if room.pos_inside(x + dx, y + dy)]
        blocking = thing.type == "door" and any(
            each is not None and each.type not in {"wall", "door"} for each in around
        )
        words.append(name_of(thing) + (" with a thing before it" if blocking else ""))
    return words


def bots_acts(game: Game) -> Plan:
    """Returns the acts of BabyAI's bot in the mission that the game has laid out."""
    places = {id(each): place for place, each in zip(PLACES, described(game.instrs), strict=False)}
    bot, acts, action, ended, clearing = BabyAIBot(game), [], None, False, False
    _limit(bot)
    steps = 0
    while not ended and steps < MOST_STEPS:
        part = _part(game.instrs)
        goals = [places[id(each)] for each in described(part)]
        try:
            action = bot.replan(action)
        except AssertionError:  # it is at a loss
            break
        before, front = game.carrying, game.grid.get(*game.front_pos)
        locked = front is not None and front.type == "door" and front.is_locked
        _, _, ended, cut, _ = game.step(action)
        ended, steps = ended or cut, steps + 1
        finished = ended or _part(game.instrs) is not part
        goal = goals[-1] if before is not None and len(goals) > 1 else goals[0]
        if action == TOGGLE and locked and not front.is_locked:
            acts.append(act("unlock_way_to", goal))
        elif finished:
            acts.append(act(_LAST[type(part).__name__], goals[-1]))
        elif action == PICK_UP and before is None and game.carrying is not None:
            own = len(goals) > 1 and any(game.carrying is each for each in part.desc_move.obj_set)
            fits = game.carrying.type == "key" and game.carrying.color in _locked(game)
            clearing = not own and not fits
            tool = "pick_up" if own else "clear_way_to" if clearing else "fetch_key_for"
            acts.append(act(tool, goal))
        elif action == DROP and game.carrying is None and before is not None and not clearing:
            acts.append(act("put_down"))
    return tuple(acts)


def _limit(bot: Any) -> None:
    """Lets the bot assert that it is at a loss, where in some missions it would search for ever."""
    search = bot._breadth_first_search  # noqa: SLF001 - it has no other limit

    def limited(*given: Any, **options: Any) -> Any:
        assert bot.bfs_counter < MOST_SEARCHES  # noqa: S101 - as the bot does
        return search(*given, **options)

    bot._breadth_first_search = limited  # noqa: SLF001


def _locked(game: Game) -> set[str]:
    """Returns the colours of the locked doors."""
    return {each.color for each in game.grid.grid if each is not None and each.type == "door" and each.is_locked}


_LAST = {"GoToInstr": "go_to", "PickupInstr": "pick_up", "OpenInstr": "open", "PutNextInstr": "put_next_to"}
"""The act that ends a part of a mission, by the part's type."""


def _part(instruction: Any) -> Any:
    """Returns the part of a mission that is to be done next."""
    if not hasattr(instruction, "instr_a"):
        return instruction
    parts = [(instruction.a_done, instruction.instr_a), (instruction.b_done, instruction.instr_b)]
    if type(instruction).__name__ == "AfterInstr":
        parts.reverse()
    return next((_part(part) for done, part in parts if done != "success"), None)


def act(tool: str, place: str = "") -> Call:
    """Returns an act that went well."""
    return Call(tool, {"thing": place} if place else {}, "done", ok=True)


@cache
def missions(seed: str, number: int) -> tuple[Mission, ...]:
    """Returns missions drawn by a seed."""
    rng = random.Random(seed)
    drawn: list[Mission] = []
    while len(drawn) < number:
        if (one := mission(rng.choice(LEVELS), rng.randrange(1_000_000))) is not None:
            drawn.append(one)
    return tuple(drawn)


def babyai(seed: int) -> Stream:
    """Returns missions with the bot's plans; some runs begin with another mission's plan, or end with it."""
    if reason := missing():
        return Stream("babyai", (), reason)
    rng, drawn = random.Random(f"{seed}:babyai:runs"), missions(f"{seed}:babyai", RUNS)
    runs = []
    for place, each in enumerate(drawn):
        lot, wrong = rng.random(), rng.choice(drawn).plan
        calls: tuple[Call, ...] = each.plan
        if lot < LOST + MENDED and not each.solved_by(wrong):
            hands = each.hands()
            tried = tuple(replace(hands.act(call), ok=False) for call in wrong)  # the mission begins again after them
            calls = tried if lot < LOST else (*tried, *each.plan)
        runs.append(Run(each.text, calls, calls[-len(each.plan) :] == each.plan, place // A_DAY, each.level))
    return Stream("babyai", tuple(runs))
