"""The tools that look: goals, and what earlier runs, the user and earlier conversations have to say about a task."""

from typing import get_args

from app.memory_tools.asking import Asking
from app.memory_tools.known import facts_for
from app.memory_tools.texts import FACTS, GOALS, TURNS, answer, framed, procedure_ids
from app.schemas.memory_tools import GoalsIn, RecallIn
from retrieval.kinds import FactKind
from retrieval.quoting import quoted, unquoted
from retrieval.ranking.slate import Question
from retrieval.recall.memory import Memory, RecallQuestion, TurnSource
from retrieval.search.candidates import Search

BUDGET = 1_500
"""Tokens of what a recall tells of earlier runs and procedures."""
TURNS_BUDGET = 500
"""Tokens of what it tells of conversations."""
GOAL: tuple[FactKind, ...] = ("goal",)
ALWAYS: tuple[FactKind, ...] = ("goal", "preference")
"""What is worth knowing of a user whatever the task is."""


async def my_goals(asking: Asking, given: GoalsIn) -> str:
    """Returns the goals that hold, nearest to the query first."""
    found = await facts_for(asking, given.query, given.top_k, kinds=GOAL, always=GOAL)
    return framed(GOALS, [goal.line() for goal in found]) or "The user has told no goal yet."


async def recall(asking: Asking, given: RecallIn) -> str:
    """Returns cases, procedures, facts and turns for the query; the decision is logged, and its id is the receipt."""
    author = asking.author
    question = Question(Search(asking.agent, given.query), given.top_k, BUDGET, facts=False)
    slate = await asking.parts.reader.retrieve(author.user_sub, author.authorised_at, question)
    known = await facts_for(asking, given.query, given.top_k, kinds=get_args(FactKind), always=ALWAYS)
    turns = RecallQuestion(asking.agent, given.query, given.top_k, kinds=("turn",), token_budget=TURNS_BUDGET)
    said = await asking.parts.reader.recall(author.user_sub, author.authorised_at, turns)
    told = answer(
        slate.context.text,
        framed(FACTS, [fact.line() for fact in known]),
        framed(TURNS, [_line(turn, turn.source) for turn in said.memories if isinstance(turn.source, TurnSource)]),
    )
    return answer(
        told or "Nothing is known that has to do with this.",
        procedure_ids(slate.context, slate.procedures),
        f"Receipt: {slate.retrieval_id} (hand it to remember, once you know how it went)",
    )


def _line(turn: Memory, source: TurnSource) -> str:
    """Returns the turn as one line: where and when it was said and by whom, and what was said as data."""
    day = source.said_at.date().isoformat()
    return f"[{unquoted(source.role)} in {quoted(source.session_id)}, {day}] {quoted(turn.text)}"
