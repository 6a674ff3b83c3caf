"""Profiles' own policies that began at a shared prior which an erasure took: trained again, they go on serving.

Such a policy has seen, through where it began, numbers of the user who was erased. It does not serve from the erasure
on; its profile follows its fleet's. Trained from the new prior on the profile's own log it serves again, with the
verdict that it was promoted on. A candidate is not restored: the night begins a new trial.
"""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from policy import features
from policy.weights import pack
from retrieval.database.database import Database
from retrieval.errors import UserErased
from retrieval.search.fleet import takes_part
from retrieval.tables.kinds import Fleet
from retrieval.tables.profiles import profiles
from writer.profiles import Profile, each_profile
from writer.training import lifecycle
from writer.training.candidates import Recipe, seed_of
from writer.training.decision_log import read
from writer.training.lifecycle import NewPolicy, PolicyRow
from writer.training.result import TrainingResult
from writer.training.shared_prior import Starts
from writer.training.training_data import examples


async def restore(database: Database, fleet: Fleet, recipe: Recipe, starts: Starts) -> list[TrainingResult]:
    """Trains again every serving policy whose shared prior is gone, and returns what became of them."""
    results = []
    async for profile in each_profile(database):
        try:
            result = await _restored(database, profile, fleet, recipe, starts)
        except UserErased:
            continue
        if result is not None:
            results.append(result)
    return results


async def _restored(
    database: Database, profile: Profile, fleet: Fleet, recipe: Recipe, starts: Starts
) -> TrainingResult | None:
    user_sub, agent_key = profile.user_sub, profile.agent_key
    async with database.as_user(user_sub, profile.seen_at) as connection:
        lost = await _lost(connection, profile, fleet)
        if lost is None:
            return None
        known = examples(await read(connection, user_sub, agent_key))
    if len(known) < recipe.demand.decisions:
        return None
    start = starts.of(agent_key)
    (head,) = recipe.fit([known], [seed_of(profile, recipe.seed)], start.head)
    if not head.is_finite:
        return None
    weights, checksum = pack(head, features.VERSION)
    blend = len(known) / (len(known) + recipe.demand.half)
    new = NewPolicy(
        "serving",
        features.VERSION,
        weights,
        checksum,
        blend,
        len(known),
        lost.metrics,
        start.version,
        lost.verdict,
        lost.promoted_at,
    )
    async with database.as_user(user_sub, profile.seen_at) as connection:
        again = await _lost(connection, profile, fleet, lock=True)
        if again is None or again.version != lost.version:
            return None
        await lifecycle.set_status(connection, lost, "failed")
        version = await lifecycle.add(connection, user_sub, agent_key, new)
    return TrainingResult(user_sub, agent_key, "trained again", version, len(known))


async def _lost(connection: AsyncConnection, profile: Profile, fleet: Fleet, *, lock: bool = False) -> PolicyRow | None:
    """Returns the serving policy of a profile that receives, if its shared prior is gone."""
    wish = select(profiles.c.receive).where(
        profiles.c.user_sub == profile.user_sub, profiles.c.agent_key == profile.agent_key, profiles.c.learning
    )
    row = (await connection.execute(wish)).one_or_none()
    if row is None or not takes_part(fleet, row.receive):
        return None
    live = await lifecycle.live_policies(connection, profile.user_sub, profile.agent_key, lock=lock)
    return next((each for each in live if each.status == "serving" and not each.stands), None)
