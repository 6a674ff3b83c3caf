"""Pages of the other memories (tools, sessions, runs, facts, knowledge), and the deletion of a row from any page."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, HTTPException, Query, Request, Response

from app.console.page import PER_PAGE, ROOT, Form, Looking, Page, back, show
from app.console.routes.bank import be_sure
from app.routes.bank import remove_case
from app.routes.facts import list_facts, remove_fact
from app.routes.findings import findings_in
from app.routes.knowledge import list_knowledge, remove_knowledge
from app.routes.runs import get_run, list_runs
from app.routes.sessions import get_session, list_sessions, remove_session
from app.routes.tools import get_tool_memory, list_tools
from retrieval.database.rows import AnyRow
from retrieval.findings.summary import standings
from retrieval.pages.listing import paged, shown
from retrieval.tables.kinds import FactKind, RunStatus
from retrieval.tables.memories import shared_knowledge
from writer.run import SessionName

router = APIRouter(prefix=ROOT, route_class=Page, include_in_schema=False)

MOST_TOOLS = 200
TURNS_TOKENS = 20_000
"""Maximum tokens of a session on its page; an export has the whole session."""
Cursor = Annotated[UUID | None, Query()]
Name = Annotated[SessionName, Query()]


@router.get("/tools")
async def tools_page(request: Request, looking: Looking) -> Response:
    """Returns the page of the most called tools, with their error rates."""
    found = (
        []
        if looking.agent is None
        else (await list_tools(looking.agent, looking.parts, looking.author, MOST_TOOLS)).tools
    )
    return show(request, "tools.html", looking, tools=found)


@router.get("/tool")
async def tool_page(
    request: Request, looking: Looking, name: Annotated[str, Query(min_length=1, max_length=200)]
) -> Response:
    """Returns the page of one tool: arguments that worked, failures and their fixes."""
    if looking.agent is None:
        raise HTTPException(404, "no such tool")
    tool = await get_tool_memory(name, looking.agent, looking.parts, looking.author)
    return show(request, "tool.html", looking, tool=tool)


@router.get("/sessions")
async def sessions_page(request: Request, looking: Looking, cursor: Cursor = None) -> Response:
    """Returns a page of the newest sessions."""
    page = await list_sessions(looking.parts, looking.author, agent=looking.agent, limit=PER_PAGE, cursor=cursor)
    return show(request, "sessions.html", looking, page=page)


@router.get("/session")
async def session_page(request: Request, looking: Looking, name: Name) -> Response:
    """Returns the page of a session: its newest turns, and a summary of the earlier ones."""
    session = await get_session(name, looking.parts, looking.author, TURNS_TOKENS)
    return show(request, "session.html", looking, session=session)


@router.post("/session/delete")
async def delete_session(looking: Looking, form: Form) -> Response:
    """Deletes a session permanently, if the confirmation box is ticked."""
    be_sure(form)
    await remove_session(form.get("name", ""), looking.parts, looking.author)
    return back(form, f"{ROOT}/sessions", looking)


@router.get("/runs")
async def runs_page(
    request: Request,
    looking: Looking,
    status: RunStatus | Literal[""] = "",
    cursor: Cursor = None,
) -> Response:
    """Returns a page of the newest runs, all or those of one state."""
    page = await list_runs(
        looking.parts, looking.author, agent=looking.agent, status=status or None, limit=PER_PAGE, cursor=cursor
    )
    return show(request, "runs.html", looking, page=page, which=status)


@router.get("/runs/{run_id}")
async def run_page(request: Request, looking: Looking, run_id: UUID) -> Response:
    """Returns the page of one run: its findings with their state, and the steps that are in no case yet."""
    run = await get_run(run_id, looking.parts, looking.author)
    findings = await findings_in(run_id, looking.parts, looking.author)
    found = list(zip(findings, standings(findings), strict=True))
    return show(request, "run.html", looking, run=run, found=found)


@router.get("/facts")
async def facts_page(
    request: Request,
    looking: Looking,
    kind: FactKind | Literal[""] = "",
    history: Literal["yes", ""] = "",
    cursor: Cursor = None,
) -> Response:
    """Returns a page of facts: those that hold, or all."""
    page = await list_facts(
        looking.parts,
        looking.author,
        agent=looking.agent,
        kind=kind or None,
        history=history == "yes",
        limit=PER_PAGE,
        cursor=cursor,
    )
    return show(request, "facts.html", looking, page=page, kind=kind, history=history)


@router.get("/knowledge")
async def knowledge_page(request: Request, looking: Looking, cursor: Cursor = None) -> Response:
    """Returns a page of the user's knowledge for the agent."""
    page = await list_knowledge(looking.parts, looking.author, agent=looking.agent, limit=PER_PAGE, cursor=cursor)
    return show(request, "knowledge.html", looking, page=page)


@router.get("/shared-knowledge")
async def shared_knowledge_page(request: Request, looking: Looking, cursor: Cursor = None) -> Response:
    """Returns a read-only page of the operator's knowledge for all users of the agent."""
    author, entries = looking.author, list[AnyRow]()
    if looking.agent is not None:
        only = {"agent_key": looking.agent}
        wanted = paged(shown(shared_knowledge), shared_knowledge, only, cursor, PER_PAGE)
        async with looking.parts.database.as_user(author.user_sub, author.authorised_at) as connection:
            entries = list((await connection.execute(wanted)).all())
    more = str(entries[-1].id) if len(entries) == PER_PAGE else None
    return show(request, "shared_knowledge.html", looking, entries=entries, next_cursor=more)


REMOVE = {"cases": (remove_case, "bank"), "facts": (remove_fact, "facts"), "knowledge": (remove_knowledge, "knowledge")}
"""The function that deletes a row, and the page to go back to, by kind of row."""


@router.post("/{kind}/{row_id}/delete")
async def delete_row(
    looking: Looking, form: Form, kind: Literal["cases", "facts", "knowledge"], row_id: UUID
) -> Response:
    """Deletes a case, a fact or an entry of knowledge permanently, if the confirmation box is ticked."""
    be_sure(form)
    remove, page = REMOVE[kind]
    await remove(row_id, looking.parts, looking.author)
    return back(form, f"{ROOT}/{page}", looking)
