"""The tools that read: goals, and memories for a task from runs, facts and conversations."""

from typing import get_args

from app.memory_tools.asking import Asking
from app.memory_tools.known import facts_for
from app.memory_tools.texts import FACTS, FOUND, GOALS, answer, framed, procedure_ids
from app.schemas.memory_tools import GoalsIn, TaskIn
from retrieval.ranking.retrieved import Question
from retrieval.recall.memory import RecallQuestion
from retrieval.recall.quotes import line_of
from retrieval.search.candidates import CaseSearch
from retrieval.tables.kinds import FactKind

BUDGET = 1_500
"""Maximum tokens of runs and procedures in a recall."""
FOUND_BUDGET = 500
"""Maximum tokens of conversations and knowledge in a recall."""
GOAL: tuple[FactKind, ...] = ("goal",)
ALWAYS: tuple[FactKind, ...] = ("goal", "preference")
"""Kinds of facts that belong in every recall."""


async def my_goals(asking: Asking, arguments: GoalsIn) -> str:
    """Returns the current goals, the most relevant to the query first."""
    goals = await facts_for(asking, arguments.query, arguments.top_k, kinds=GOAL, always=GOAL)
    return framed(GOALS, goals) or "The user has not stated a goal yet."


async def recall(asking: Asking, arguments: TaskIn) -> str:
    """Returns cases, procedures, facts, turns and knowledge for the query, and the retrieval's id."""
    author = asking.author
    question = Question(CaseSearch(asking.agent, arguments.query), arguments.top_k, BUDGET, facts=False)
    slate = await asking.parts.reader.retrieve(author.user_sub, author.authorised_at, question)
    known = await facts_for(asking, arguments.query, arguments.top_k, kinds=get_args(FactKind), always=ALWAYS)
    wanted = RecallQuestion(
        asking.agent, arguments.query, arguments.top_k, ("turn", "knowledge"), token_budget=FOUND_BUDGET
    )
    recalled = await asking.parts.reader.recall(author.user_sub, author.authorised_at, wanted)
    memories = answer(
        slate.context.text,
        framed(FACTS, known),
        framed(FOUND, [line_of(each) for each in recalled.memories]),
    )
    return answer(
        memories or "No memory is related to this.",
        procedure_ids(slate.context, slate.procedures),
        f"retrieval_id: {slate.retrieval_id} (pass it to remember once you know the outcome)",
    )
