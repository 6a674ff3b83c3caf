"""Chooses the newest turns of a session that fit a budget of tokens.

A call and its results are kept together. A turn that would take most of the budget is shortened to its beginning and
end, so that it drives out no other turn. The user's latest request is always among the turns, even if later turns fill
the budget.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from retrieval.sessions.messages import SessionTurn, shortened_message

SUMMARY_SHARE = 0.25
"""Largest share of the budget for the summary, if not all turns fit."""
LARGE_SHARE = 1 / 2
"""Share of the turns' budget above which a turn, or a call with its results, is shortened."""
SHORT_SHARE = 1 / 4
"""Share of the turns' budget that a shortened turn may take, except the newest."""
FEWEST_CHARS = 80
"""Least number of characters of a shortened text; a turn that fits only with fewer is left out."""
FEWEST_OF_REQUEST = 12
"""Least number of characters of the user's latest request, if it is shortened."""
CHARS_A_TOKEN = 8
"""Largest number of characters of a token in most texts: a first guess of a text's length, which is then reduced."""

Cost = Callable[[SessionTurn], int]


def fit(newest_first: Sequence[SessionTurn], budget: int, cost: Cost) -> list[SessionTurn]:
    """Returns the turns that fit the budget, the oldest first; some are shortened if not all turns fit."""
    if sum(map(cost, newest_first)) <= budget:
        return list(newest_first[::-1])
    room = int(budget * (1 - SUMMARY_SHARE))
    request = next((turn for turn in newest_first if turn.is_the_users), None)
    reserved = 0 if request is None else min(cost(request), int(room * LARGE_SHARE))
    left, chosen = room - reserved, list[SessionTurn]()
    for unit in _units(newest_first):
        if request is not None and unit == [request]:
            continue
        costs = sum(map(cost, unit))
        if costs > room * LARGE_SHARE:
            share = SHORT_SHARE if chosen else LARGE_SHARE
            unit = _shortened(unit, min(left, int(room * share)), cost)  # noqa: PLW2901
            costs = sum(map(cost, unit))
        if costs > left or not unit:
            break
        chosen += unit
        left -= costs
    if request is not None:
        chosen += _shortened([request], left + reserved, cost, FEWEST_OF_REQUEST)
    return sorted(chosen, key=lambda turn: turn.number)


def _units(newest_first: Sequence[SessionTurn]) -> Iterator[list[SessionTurn]]:
    """Yields units, the newest first: a single turn, or a call of tools with its results, the oldest turn first."""
    results: list[SessionTurn] = []
    for turn in newest_first:
        if turn.is_a_result:
            results.append(turn)
        elif results and turn.calls:
            yield [turn, *results[::-1]]
            results = []
        else:
            if results:  # of a call that the session does not have
                yield results[::-1]
                results = []
            yield [turn]


def _shortened(unit: Sequence[SessionTurn], room: int, cost: Cost, fewest: int = FEWEST_CHARS) -> list[SessionTurn]:
    """Returns the turns of a unit, the largest shortened so that all fit ``room``; an empty list if they cannot."""
    fair, costs = room, sorted(map(cost, unit))
    for count, each in enumerate(costs):
        fair = room // (len(costs) - count)
        if each > fair:
            break
        room -= each
    turns = [turn for turn in (_cut(each, fair, cost, fewest) for each in unit) if turn is not None]
    return turns if len(turns) == len(unit) else []


def _cut(turn: SessionTurn, room: int, cost: Cost, fewest: int) -> SessionTurn | None:
    """Returns the turn with its texts shortened until it fits; None if it fits only with less than ``fewest``."""
    longest, cut = max(room * CHARS_A_TOKEN, fewest), turn
    while cost(cut) > room:
        if longest < fewest:
            return None
        cut = replace(turn, message=shortened_message(turn.message, longest))
        longest = longest * 3 // 4
    return cut
