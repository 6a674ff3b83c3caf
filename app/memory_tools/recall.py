"""The tools that look: goals, and what earlier runs, the user and earlier conversations have to say about a task."""

from typing import get_args

from app.memory_tools.asking import Asking
from app.memory_tools.known import facts_for
from app.memory_tools.texts import FACTS, FOUND, GOALS, answer, framed, procedure_ids
from app.schemas.memory_tools import GoalsIn, RecallIn
from retrieval.ranking.question import Question
from retrieval.recall.memory import RecallQuestion
from retrieval.recall.quotes import line_of
from retrieval.search.candidates import Search
from retrieval.tables.kinds import FactKind

BUDGET = 1_500
"""Tokens of what a recall tells of earlier runs and procedures."""
FOUND_BUDGET = 500
"""Tokens of what it tells of conversations and knowledge."""
GOAL: tuple[FactKind, ...] = ("goal",)
ALWAYS: tuple[FactKind, ...] = ("goal", "preference")
"""What is worth knowing of a user whatever the task is."""


async def my_goals(asking: Asking, given: GoalsIn) -> str:
    """Returns the goals that hold, nearest to the query first."""
    found = await facts_for(asking, given.query, given.top_k, kinds=GOAL, always=GOAL)
    return framed(GOALS, [goal.line() for goal in found]) or "The user has told no goal yet."


async def recall(asking: Asking, given: RecallIn) -> str:
    """Returns cases, procedures and all else that is known for the query; the logged decision's id is the receipt."""
    author = asking.author
    question = Question(Search(asking.agent, given.query), given.top_k, BUDGET, facts=False)
    slate = await asking.parts.reader.retrieve(author.user_sub, author.authorised_at, question)
    known = await facts_for(asking, given.query, given.top_k, kinds=get_args(FactKind), always=ALWAYS)
    wanted = RecallQuestion(asking.agent, given.query, given.top_k, ("turn", "knowledge"), token_budget=FOUND_BUDGET)
    found = await asking.parts.reader.recall(author.user_sub, author.authorised_at, wanted)
    told = answer(
        slate.context.text,
        framed(FACTS, [fact.line() for fact in known]),
        framed(FOUND, [line_of(each) for each in found.memories]),
    )
    return answer(
        told or "Nothing is known that has to do with this.",
        procedure_ids(slate.context, slate.procedures),
        f"Receipt: {slate.retrieval_id} (hand it to remember, once you know how it went)",
    )
