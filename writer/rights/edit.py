"""Changes by hand, noted in the audit: tags of a case, deletion of a case, decision or run, settings of a profile."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping, Select, and_, cast, delete, func, literal_column, or_, select, update
from sqlalchemy.dialects.postgresql import REGCONFIG, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.errors import NotFound
from retrieval.tables.cases import ERRORS, cases
from retrieval.tables.columns import SEARCH_CONFIGURATION
from retrieval.tables.decisions import decisions
from retrieval.tables.failures import advice
from retrieval.tables.memories import facts
from retrieval.tables.profiles import profiles
from retrieval.tables.runs import run_steps, runs
from writer.audit import note
from writer.author import Author
from writer.facts.remove import delete_facts
from writer.findings.record import forget_findings_of_cases
from writer.privacy.contexts import BLANK, forget_advice, forget_contexts
from writer.privacy.keys import Keyring
from writer.privacy.words import Words, readable
from writer.procedures.withdrawal import forget_sources, forget_words
from writer.profiles import lock_loop, lock_profile_of
from writer.references import clear_references
from writer.retain.plan import given_plan
from writer.retain.prepare import search_text
from writer.rewards.credit import credit_slate

AT_ONCE = 1_000
"""Maximum number of a case's repeats that are deleted by a statement, which may name 32,767 values."""


async def set_tags(
    connection: AsyncConnection, keyring: Keyring, author: Author, case_id: UUID, tags: list[str]
) -> None:
    """Replaces the tags of a case, in its row and in the search index."""
    mine = cases.c.user_sub == author.user_sub, cases.c.id == case_id
    columns = (cases.c[name] for name in ("id", "agent_key", "task", "plan", "words", "tools", "payload"))
    row = (await connection.execute(select(*columns).where(*mine).with_for_update())).mappings().one_or_none()
    words = await keyring.find(connection, author.user_sub)
    if row is None or words is None:
        raise NotFound("no such case")
    case = words.opened(row)
    payload = await asyncio.to_thread(words.open, "payload", row["payload"], case_id)  # may be megabytes
    # the arguments of calls are sealed, and the index is not
    plan = given_plan(payload["tool_traces"], case["plan"])
    text = search_text(case["task"], plan, row["tools"], tags)
    searched = func.to_tsvector(cast(SEARCH_CONFIGURATION, REGCONFIG), text)
    errors = func.ts_filter(cases.c.search_vector, literal_column(f"'{{{ERRORS}}}'"))
    values = {"tags": tags, "search_vector": searched.concat(errors)}
    await connection.execute(update(cases).where(*mine).values(values))
    await note(connection, author.change(row["agent_key"], "update_case", case_id, tags=len(tags)))


async def delete_case(connection: AsyncConnection, keyring: Keyring, author: Author, case_id: UUID) -> None:
    """Deletes a case with its repeats, vectors, rewards, facts and findings, and the procedure versions with its words.

    Its texts in the log of decisions and in its run are blanked, see ``forget_texts``.
    """
    # the worker may be about to merge a run into the case, or to learn from it
    await lock_profile_of(connection, author.user_sub, cases.c.id, case_id)
    rows = (await connection.execute(case_and_repeats(author.user_sub, case_id))).mappings().all()
    words = await keyring.find(connection, author.user_sub)
    if words is None or not any(row["id"] == case_id for row in rows):
        raise NotFound("no such case")
    for first in range(0, len(rows), AT_ONCE):
        some = rows[first : first + AT_ONCE]
        await forget_texts(connection, words, some)
        ids = [row["id"] for row in some]
        await forget_findings_of_cases(connection, author.user_sub, ids)
        await delete_facts(connection, author, facts.c.case_id.in_(ids))
        await forget_words(connection, author.user_sub, ids)
        await forget_sources(connection, author.user_sub, ids)
        mine = cases.c.user_sub == author.user_sub, cases.c.id.in_(ids)
        await clear_references(cases, connection, author.user_sub, ids)
        await connection.execute(delete(cases).where(*mine))
        await note(connection, *(author.change(some[0]["agent_key"], "delete_case", each) for each in ids))
    await forget_contexts(connection, author.user_sub, rows[0]["agent_key"], since=rows[0]["id"])


async def delete_decision(connection: AsyncConnection, author: Author, decision_id: UUID) -> None:
    """Deletes a logged retrieval with its slate and its own rewards; its runs stay, without a retrieval.

    What cases and procedures earned by it is taken away from them.
    """
    mine = decisions.c.user_sub == author.user_sub, decisions.c.id == decision_id
    # whoever rewards the retrieval locks its runs before it
    decided_for = await connection.scalar(select(decisions.c.agent_key).where(*mine))
    await lock_loop(connection, author.user_sub, {decided_for or ""}, {decision_id})
    await clear_references(decisions, connection, author.user_sub, [decision_id])
    await connection.execute(update(decisions).where(*mine).values(reward=None, reward_source=None))
    await credit_slate(connection, author.user_sub, decision_id)
    agent_key = await connection.scalar(delete(decisions).where(*mine).returning(decisions.c.agent_key))
    if agent_key is None:
        raise NotFound("no such decision")
    await note(connection, author.change(agent_key, "delete_decision", decision_id))


async def delete_run(connection: AsyncConnection, author: Author, run_id: UUID) -> None:
    """Deletes a run with its steps and findings; the case that it became stays."""
    await forget_advice(connection, author.user_sub, advice.c.run_id == run_id)
    mine = runs.c.user_sub == author.user_sub, runs.c.id == run_id
    agent_key = await connection.scalar(delete(runs).where(*mine).returning(runs.c.agent_key))
    if agent_key is None:
        raise NotFound("no such run")
    await note(connection, author.change(agent_key, "delete_run", run_id))


async def set_profile(
    connection: AsyncConnection, author: Author, agent_key: str, settings: Mapping[str, object]
) -> None:
    """Changes settings of a user's profile for an agent; a new profile gets default values for the other settings."""
    key = {"user_sub": author.user_sub, "agent_key": agent_key}
    fresh = insert(profiles).values({**key, **settings})
    if settings:
        fresh = fresh.on_conflict_do_update(index_elements=["user_sub", "agent_key"], set_=settings)
    else:
        fresh = fresh.on_conflict_do_nothing()
    await connection.execute(fresh)
    await note(connection, author.change(agent_key, "update_profile", None, **settings))


def case_and_repeats(user_sub: str, case_id: UUID) -> Select[*tuple[Any, ...]]:
    """Returns a statement that selects a case, and the repeats that were merged into it: they have the same words."""
    names = ("id", "agent_key", "task", "plan", "words", "retrieval_id", "session_id")
    theirs = or_(cases.c.id == case_id, cases.c.merged_into == case_id)
    return select(*(cases.c[name] for name in names)).where(cases.c.user_sub == user_sub, theirs).order_by(cases.c.id)


async def forget_texts(connection: AsyncConnection, words: Words, rows: Sequence[RowMapping]) -> None:
    """Blanks the texts of these cases in decisions and runs; call it before the cases are deleted.

    The rows stay. Decisions, because policies learned from them: the retrievals that the cases' runs began with, those
    with the same query or with the task as query (not found if it does not decrypt), and the advice in these runs.
    Runs, so that a late step begins no new run.
    """
    user_sub = words.user_sub
    became = runs.c.user_sub == user_sub, runs.c.case_id.in_([row["id"] for row in rows])
    run_ids = list((await connection.scalars(select(runs.c.id).where(*became))).all())
    retrieval_ids = [row["retrieval_id"] for row in rows if row["retrieval_id"] is not None]
    names = ("id", "query", "words", "query_group")
    theirs = decisions.c.user_sub == user_sub, decisions.c.id.in_(retrieval_ids)
    asked = (await connection.execute(select(*(decisions.c[name] for name in names)).where(*theirs))).mappings().all()
    queries = {case["task"] for case in readable(words.opened, rows)}
    queries |= {row["query"] for row in readable(words.open_query, asked)} - {""}
    groups = {words.group_of(query) for query in queries} | {row["query_group"] for row in asked} - {None}
    session_ids = [row["session_id"] for row in rows if row["session_id"] is not None]
    given = (
        advice.c.run_id.in_(run_ids),
        advice.c.retrieval_id.in_(retrieval_ids),
        advice.c.session_id.in_(session_ids),
    )
    await forget_advice(connection, user_sub, or_(*given))
    same = or_(
        decisions.c.id.in_(retrieval_ids),
        and_(decisions.c.words.is_(None), decisions.c.query.in_(queries)),
        decisions.c.query_group.in_(groups),
    )
    await connection.execute(update(decisions).where(decisions.c.user_sub == user_sub, same).values(BLANK))
    await connection.execute(update(runs).where(*became).values(words=b""))
    await connection.execute(delete(run_steps).where(run_steps.c.user_sub == user_sub, run_steps.c.run_id.in_(run_ids)))
