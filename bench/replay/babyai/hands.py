"""A body for a BabyAI mission: it walks by itself, and does a few acts on the things that the mission names.

It walks through rooms and unlocked doors, and past no thing and no locked door: what is in its way ends an act with an
error. A plan names things by their place in the mission's text, so that it fits other missions.
"""

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bench.replay.runs import Call

Cell = tuple[int, int]
Game = Any
"""An environment of minigrid, which ships no types; its things are ``WorldObj``."""

PLACES = ("first", "second", "third", "fourth")
"""Names of a mission's things, in the order of its text."""
LEFT, RIGHT, FORWARD, PICK_UP, DROP, TOGGLE = range(6)
MANY_STEPS = 1_000
"""Detour that a walk through a thing or a locked door is worth."""
AROUND = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Steps by direction, as minigrid numbers directions."""


class Refused(Exception):
    """Raised when an act is not possible here; the message says why."""


class Hands:
    """A body in one mission, from its beginning."""

    def __init__(self, game: Game) -> None:
        self._game = game
        self._things: dict[str, list[Any]] = {
            place: list(each.obj_set) for place, each in zip(PLACES, described(game.instrs), strict=False)
        }
        self._over = self.solved = False
        self._acts: dict[str, Callable[[str], None]] = {
            "go_to": lambda place: self._go_to(self._of(place)),
            "pick_up": self._pick_up,
            "open": self._open,
            "put_next_to": self._put_next_to,
            "put_down": lambda _: self._put_down(),
            "clear_way_to": self._clear_way_to,
            "fetch_key_for": self._fetch_key_for,
            "unlock_way_to": self._unlock_way_to,
        }

    def act(self, call: Call) -> Call:
        """Does an act, and returns the call with its result."""
        place = str(call.input.get("thing", "")) if isinstance(call.input, dict) else ""
        if self._over:
            return Call(call.tool, call.input, "error: the mission is over", ok=False)
        try:
            self._acts[call.tool](place)
        except Refused as refusal:
            return Call(call.tool, call.input, f"error: {refusal}", ok=False)
        return Call(call.tool, call.input, "the mission is done" if self.solved else "done", ok=True)

    def _of(self, place: str) -> list[Any]:
        if place not in self._things:
            raise Refused(f"the mission names no {place} thing")
        return self._things[place]

    def _step(self, action: int) -> None:
        if self._over:
            return
        _, reward, ended, cut, _ = self._game.step(action)
        self._over, self.solved = ended or cut, bool(ended and reward > 0)

    def _face(self, cell: Cell) -> None:
        x, y = self._game.agent_pos
        wanted = AROUND.index((cell[0] - x, cell[1] - y))
        turns = (wanted - self._game.agent_dir) % 4
        for action in (LEFT,) if turns == len(AROUND) - 1 else (RIGHT,) * turns:
            self._step(action)

    def _walk(self, path: Sequence[Cell]) -> None:
        for cell in path:
            self._face(cell)
            door = self._game.grid.get(*cell)
            if door is not None and door.type == "door" and not door.is_open:
                self._step(TOGGLE)
            self._step(FORWARD)

    def _path(self, ends: Iterable[Cell], cost: Callable[[Any], int | None]) -> list[Cell] | None:
        """Returns the cells of the cheapest walk to one of the ends, the end included; None without a walk."""
        begin: Cell = (int(self._game.agent_pos[0]), int(self._game.agent_pos[1]))
        goals, came = set(ends), {begin: begin}
        queue, settled = [(0, begin, begin)], set[Cell]()
        while queue:
            spent, cell, before = heapq.heappop(queue)
            if cell in settled:
                continue
            settled.add(cell)
            came[cell] = before
            if cell in goals:
                path = [cell]
                while came[path[-1]] != path[-1]:
                    path.append(came[path[-1]])
                return path[-2::-1]
            for dx, dy in AROUND:
                near = (cell[0] + dx, cell[1] + dy)
                price = 1 if near in goals else cost(self._game.grid.get(*near))
                if price is not None and near not in settled:
                    heapq.heappush(queue, (spent + price, near, cell))
        return None

    def _in_the_way(self, things: Sequence[Any]) -> Any:
        """Returns the first thing or locked door on the way to one of the things; None if the way is free."""
        path = self._path(places_of(things, self._game), through) or []
        return next((thing for cell in path[:-1] if not free(thing := self._game.grid.get(*cell))), None)

    def _go_to(self, things: Sequence[Any]) -> Any:
        """Walks up to the nearest of the things, faces it and returns it.

        Raises:
            Refused: something is in the way.
        """
        cells = places_of(things, self._game)
        path = self._path(cells, around) if cells else []
        if path is None:
            raise Refused(f"{name_of(self._in_the_way(things))} is in the way")
        if path:
            self._walk(path[:-1])
            self._face(path[-1])
        return cells[path[-1]] if path else things[0]

    def _take(self, things: Sequence[Any]) -> None:
        if self._game.carrying is not None:
            raise Refused("the hands are full")
        if any(thing.type == "door" for thing in things):
            raise Refused("a door cannot be picked up")
        self._go_to(things)
        self._step(PICK_UP)

    def _pick_up(self, place: str) -> None:
        self._take(self._of(place))

    def _open(self, place: str) -> None:
        things = self._of(place)
        if any(thing.type != "door" for thing in things):
            raise Refused("only a door can be opened")
        self._toggle(self._go_to(things))

    def _toggle(self, door: Any) -> None:
        carried = self._game.carrying
        if door.is_locked and (carried is None or not fits(carried, door)):
            raise Refused("the door is locked")
        if not door.is_open:
            self._step(TOGGLE)

    def _put_next_to(self, place: str) -> None:
        if self._game.carrying is None:
            raise Refused("the hands are empty")
        beside = [
            (x + dx, y + dy)
            for x, y in places_of(self._of(place), self._game)
            for dx, dy in AROUND
            if self._game.grid.get(x + dx, y + dy) is None
        ]
        self._drop_at(beside)

    def _put_down(self) -> None:
        """Drops what is carried where it blocks no door, or anywhere if there is no such place."""
        if self._game.carrying is None:
            raise Refused("the hands are empty")
        grid = self._game.grid
        floor = [(x, y) for x in range(grid.width) for y in range(grid.height) if grid.get(x, y) is None]
        beside = [[grid.get(x + dx, y + dy) for dx, dy in AROUND] for x, y in floor]
        aside = [
            cell
            for cell, near in zip(floor, beside, strict=True)
            if all(each is None or each.type != "door" for each in near)
        ]
        try:
            self._drop_at(aside)
        except Refused:
            self._drop_at(floor)

    def _drop_at(self, cells: Iterable[Cell]) -> None:
        here = tuple(map(int, self._game.agent_pos))
        path = self._path([cell for cell in cells if cell != here], around)
        if path is None:
            raise Refused("there is no room to put it down")
        self._walk(path[:-1])
        self._face(path[-1])
        self._step(DROP)

    def _clear_way_to(self, place: str) -> None:
        thing = self._in_the_way(self._of(place))
        if thing is None or thing.type == "door":
            raise Refused("nothing movable is in the way" if thing is None else "the door is locked")
        self._take([thing])
        self._put_down()

    def _locked_door_to(self, things: Sequence[Any]) -> Any:
        """Returns the locked door to be opened next on the way to one of the things: one whose key is within reach.

        Raises:
            Refused: no locked door is in the way, or no key opens one.
        """
        seen: list[Any] = []
        while True:
            doors = [thing for thing in things if thing.type == "door" and thing.is_locked]
            path = self._path(places_of(doors or things, self._game), through) or []
            cells = [self._game.grid.get(*cell) for cell in path]
            door = next((cell for cell in cells if cell is not None and cell.type == "door" and cell.is_locked), None)
            if door is None or door in seen:
                raise Refused("no key is within reach" if door else "no locked door is in the way")
            carried, keys = self._game.carrying, self._keys_of(door)
            if (carried is not None and fits(carried, door)) or self._path(places_of(keys, self._game), around):
                return door
            seen.append(door)
            things = keys  # behind another door

    def _keys_of(self, door: Any) -> list[Any]:
        return [cell for cell in self._game.grid.grid if cell is not None and fits(cell, door)]

    def _fetch_key_for(self, place: str) -> None:
        self._take(self._keys_of(self._locked_door_to(self._of(place))))

    def _unlock_way_to(self, place: str) -> None:
        door = self._locked_door_to(self._of(place))
        self._go_to([door])
        self._toggle(door)


def fits(key: Any, door: Any) -> bool:
    """Returns whether a thing is a key to a door."""
    return (key.type, key.color) == ("key", door.color)


def free(cell: Any) -> bool:
    """Returns whether the body walks over a cell: empty floor, or a door that is not locked."""
    return cell is None or (cell.type == "door" and not cell.is_locked)


def around(cell: Any) -> int | None:
    """Returns the price of a step to a cell for a walk around what is in the way; None where it cannot pass."""
    return 1 if free(cell) else None


def through(cell: Any) -> int | None:
    """Returns the price of a step to a cell for a walk through as few things and locked doors as possible."""
    return 1 if free(cell) else None if cell.type == "wall" else MANY_STEPS


def name_of(thing: Any) -> str:
    """Returns a thing in words."""
    if thing is None:
        return "a wall"
    return f"{'a locked' if thing.type == 'door' and thing.is_locked else 'a'} {thing.color} {thing.type}"


def places_of(things: Iterable[Any], game: Game) -> dict[Cell, Any]:
    """Returns the things that lie in the game's rooms by their cells; one that is carried lies nowhere."""
    wanted = {id(thing) for thing in things}
    width = game.grid.width
    return {(index % width, index // width): thing for index, thing in enumerate(game.grid.grid) if id(thing) in wanted}


def described(instruction: Any) -> list[Any]:
    """Returns the descriptions of the things that an instruction names, in the order of its text."""
    if hasattr(instruction, "instr_a"):
        return described(instruction.instr_a) + described(instruction.instr_b)
    if hasattr(instruction, "desc_move"):
        return [instruction.desc_move, instruction.desc_fixed]
    return [instruction.desc]
