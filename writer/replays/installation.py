"""Sums the results of the replays of all profiles, for the operator: the success of each order, without names.

An order is a way of ranking cases, such as by words in common.
"""

from collections import Counter
from dataclasses import dataclass

from policy.replay import CHOICE
from retrieval.database.database import Database
from retrieval.errors import UserErased
from writer.profiles import each_profile
from writer.replays.profile_replay import SPOKEN, StoredReplay, stored_replay


@dataclass(frozen=True, slots=True)
class OrderTotal:
    """The success of one order of cases in the replays of several profiles.

    Attributes:
        order: name of the order, or CHOICE for the orders that the profiles' replays chose.
        serves: number of profiles whose cases are ranked in this order.
        first: share of all questions for which a plan that worked stood first, 0 to 1.
        charges: sum of the order's charges over the profiles, see ``policy.replay.Tally``.
    """

    order: str
    serves: int
    first: float
    charges: float


async def totals(database: Database, least: int) -> tuple[int, int, list[OrderTotal]]:
    """Returns the numbers of profiles and of their questions, and the sums of these profiles' latest replays.

    A profile counts if at least ``least`` of its runs were searched for.
    """
    known: list[StoredReplay] = []
    async for profile in each_profile(database):
        try:
            async with database.as_user(profile.user_sub, profile.seen_at) as connection:
                found = await stored_replay(connection, profile.user_sub, profile.agent_key)
        except UserErased:
            continue
        if found is not None and found.questions >= max(least, 1):
            known.append(found)
    questions = sum(each.questions for each in known)
    serves = Counter(each.serves for each in known) + Counter({CHOICE: len(known)})
    orders = [
        OrderTotal(
            name,
            serves[name],
            sum(each.tallies[name].first * each.questions for each in known) / max(questions, 1),
            sum(each.tallies[name].charges for each in known),
        )
        for name in SPOKEN
    ]
    return len(known), questions, orders
