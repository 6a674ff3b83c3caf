"""The tool that suggests procedures for a task, with statistics of the agent's tools."""

from sqlalchemy.ext.asyncio import AsyncConnection

from app.memory_tools.asking import Asking
from app.memory_tools.known import relevance
from app.memory_tools.texts import ADVICE, TOOLS, answer, framed, procedure_ids
from app.schemas.memory_tools import SuggestionsIn
from retrieval.pages.listing import one_profile
from retrieval.procedures.find import ProcedureSearch
from retrieval.sections import tools
from retrieval.sections.context import memory_context
from retrieval.sections.procedures import ProceduresSection
from retrieval.sections.quoting import quoted
from writer.advice.answer import FailedCall
from writer.analysis.calls import calls_in

BUDGET = 1_000
"""Maximum tokens of the procedures."""
LOOK = 100
"""Number of the agent's most called tools that the suggestions are chosen from."""


async def suggestions(asking: Asking, given: SuggestionsIn) -> str:
    """Returns advice for the failed call, if there is any; else procedures, their tools, and the most called tools."""
    author, parts = asking.author, asking.parts
    if given.tool is not None:
        trace = {"tool": given.tool, "input": given.input, "output": given.error, "status": "error"}
        failed = FailedCall(asking.agent, calls_in([trace])[0], given.query)
        if text := (await parts.adviser.advise(author, failed)).text:
            return framed(ADVICE, [text])
    search = ProcedureSearch(asking.agent, given.query, look=given.top_k)
    procedures = (await parts.reader.procedures(author.user_sub, author.authorised_at, search)).procedures
    context = memory_context(BUDGET, ProceduresSection([each.guidance() for each in procedures]))
    named = " ".join([given.query, *(step for each in procedures for step in each.steps)])
    async with parts.database.as_user(author.user_sub, author.authorised_at) as connection:
        lines = await _tools(connection, asking, named, given.top_k)
    text = answer(context.text, framed(TOOLS, lines), procedure_ids(context, procedures))
    return text or "No procedure fits, and the agent has not used a tool yet."


async def _tools(connection: AsyncConnection, asking: Asking, named: str, limit: int) -> list[str]:
    """Returns a line for each tool: calls, error rate, arguments that worked, and fixes; empty if memory is off."""
    user_sub = asking.author.user_sub
    profile = (await connection.execute(one_profile(user_sub, asking.agent))).mappings().one_or_none()
    if profile is None or not profile["enabled"]:
        return []
    rows = (await connection.execute(tools.tools_of(user_sub, asking.agent, LOOK))).all()
    fitting = relevance(named, [row.tool.replace("_", " ") for row in rows])
    chosen = [row for _, row in sorted(zip(fitting, rows, strict=True), key=lambda pair: -pair[0])[:limit]]
    which = user_sub, asking.agent, [row.tool for row in chosen]
    forms = (await connection.execute(tools.forms_of(*which, most=1))).all()
    fixes = (await connection.execute(tools.failures_of(*which, most=tools.SHOWN_FIXES, fixed=True))).all()
    lines = []
    for row in chosen:
        parts = [
            f"{quoted(row.tool)}: {row.calls} call{'s' * (row.calls != 1)}, {row.errors / row.calls:.0%} errors",
            *(f"worked with {quoted(each.form)}" for each in forms if each.tool == row.tool),
            *(f"after {quoted(each.cause)}: {quoted(each.fix)}" for each in fixes if each.tool == row.tool),
        ]
        lines.append("; ".join(parts))
    return lines
