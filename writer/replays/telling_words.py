"""Finds the telling words of an agent: words of tasks whose runs have plans that agree more than usual."""

import numpy as np
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from policy.agreement import looked_up
from policy.channels import words
from policy.fit import Fit
from retrieval.sealed import TERMS
from retrieval.tables.cases import cases
from writer.privacy.keys import Keyring
from writer.privacy.words import readable

READ = 100
"""Number of the agent's newest cases whose tasks are decrypted and read."""
MOST = 12
"""Maximum number of words that are returned."""


async def telling_words(
    connection: AsyncConnection, keyring: Keyring, user_sub: str, agent_key: str, fit: Fit
) -> list[str]:
    """Returns at most MOST words of the agent's newest tasks, the most telling words first."""
    seal = await keyring.find(connection, user_sub)
    if seal is None:
        return []
    newest = (
        select(cases.c.id, cases.c.task, cases.c.plan, cases.c.words)
        .where(cases.c.user_sub == user_sub, cases.c.agent_key == agent_key, cases.c.status == "ready")
        .order_by(cases.c.created_at.desc(), cases.c.id.desc())
        .limit(READ)
    )
    opened = readable(seal.opened, (await connection.execute(newest)).mappings())
    spoken = list(dict.fromkeys(word for case in opened for word in words(case["task"])))
    numbers = np.array(seal.numbers(TERMS, spoken), dtype=np.int32)
    gains = looked_up(fit.terms, fit.gains, 0.0, numbers)
    return [spoken[place] for place in np.argsort(-gains, kind="stable")[:MOST] if gains[place] > 0]
