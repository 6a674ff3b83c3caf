"""``casebank knowledge``: imports, lists, edits and deletes entries of one user, or shared by all users of an agent."""

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer
from pydantic import ValidationError
from sqlalchemy import RowMapping

from app.commands.tokens import OPERATOR_NAME
from app.runtime import Runtime
from app.terminal.command_line import Agent, MaybeUser, checked, parts
from app.terminal.plain_console import notice, out
from app.terminal.run_to_end import runs_to_end
from retrieval.errors import EmbedderError
from retrieval.pages.listing import page_of, paged, shown
from retrieval.tables.memories import knowledge, shared_knowledge
from writer.author import Author
from writer.knowledge.entry import KnowledgeWritten, reason_of
from writer.knowledge.file import read_entries
from writer.knowledge.own import delete_knowledge, edit_knowledge, write_knowledge
from writer.knowledge.shared import delete_shared, edit_shared, embed_shared, write_shared

commands = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Import, list, edit or delete knowledge: what an agent should know of its domain.",
)


ACTOR = "casebank knowledge"
AT_ONCE = 200

Shared = Annotated[
    bool,
    typer.Option(
        "--shared", help="entries shared by all users of the agent; only the owner of the tables may change them"
    ),
]
Category = Annotated[str | None, typer.Option(help="topic of the entry")]
Type = Annotated[str | None, typer.Option("--type", help="kind of the entry, as rule or term")]
Id = Annotated[UUID, typer.Argument(metavar="ID", help="id of the entry, as `list` prints it")]


@commands.command("import")
@runs_to_end
async def import_file(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="JSON lines (.jsonl) or Markdown (.md)")],
    agent: Agent,
    user: MaybeUser = None,
    shared: Shared = False,
    category: Category = None,
    type_: Type = None,
) -> None:
    """Import every entry of a file, or none if a line is wrong; an entry with a known title is updated.

    A line of JSON has category, type, title and text.

    In Markdown a heading of the first level is the category, a lower one the title of the text below it.

    --category and --type apply where the file has none.
    """
    author = _author(user, shared=shared)
    entries = read_entries(file, agent, category=category, type=type_)
    async with parts() as runtime:
        if shared:
            ids = await write_shared(runtime.database, agent, entries, author)
            await _embed(runtime, author)
        else:
            ids = await write_knowledge(runtime.database, runtime.keyring, agent, entries, author)
    out.print(f"{len(set(ids))} entries kept")


@commands.command("list")
@runs_to_end
async def show(
    agent: Agent,
    user: MaybeUser = None,
    shared: Shared = False,
    category: Category = None,
    type_: Type = None,
) -> None:
    """Print the entries, the newest first, one JSON object a line."""
    author = _author(user, shared=shared)
    only = {"agent_key": agent, "category": category, "entry_type": type_}
    async with parts(only_reads=True) as runtime:
        before: UUID | None = None
        while True:
            rows = await _page(runtime, author, only, before, shared=shared)
            for row in rows:
                typer.echo(json.dumps(row))
            if len(rows) < AT_ONCE:
                return
            before = UUID(rows[-1]["id"])


@commands.command()
@runs_to_end
async def edit(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    entry_id: Id,
    agent: Agent,
    category: Annotated[str, typer.Option(help="topic of the entry")],
    text: Annotated[str, typer.Option(help="text of the entry; -: read it from standard input")],
    user: MaybeUser = None,
    shared: Shared = False,
    type_: Annotated[str, typer.Option("--type", help="kind of the entry, as rule or term")] = "fact",
    title: Annotated[str | None, typer.Option(help="title, by which a later import finds the entry")] = None,
) -> None:
    """Replace an entry by another text."""
    author = _author(user, shared=shared)
    content = sys.stdin.read() if text == "-" else text
    fields = {"agent": agent, "category": category, "type": type_, "title": title, "text": content.strip()}
    try:
        written = KnowledgeWritten.model_validate(fields)
    except ValidationError as error:
        raise typer.BadParameter(reason_of(error)) from None
    async with parts() as runtime:
        if shared:
            await edit_shared(runtime.database, entry_id, written, author)
            await _embed(runtime, author)
        else:
            await edit_knowledge(runtime.database, runtime.keyring, entry_id, written, author)
    out.print("changed")


@commands.command()
@runs_to_end
async def delete(entry_id: Id, agent: Agent, user: MaybeUser = None, shared: Shared = False) -> None:
    """Delete an entry of knowledge for good."""
    author = _author(user, shared=shared)
    async with parts() as runtime:
        if shared:
            await delete_shared(runtime.database, agent, entry_id, author)
        else:
            async with runtime.database.as_user(author.user_sub, author.authorised_at) as connection:
                await delete_knowledge(connection, author, entry_id, agent)
    out.print("deleted")


def _author(user: str | None, *, shared: bool) -> Author:
    if (user is None) != shared:
        raise typer.BadParameter("give either --user or --shared", param_hint="--user")
    return Author(OPERATOR_NAME if user is None else checked(user), ACTOR, datetime.now(UTC))


async def _embed(runtime: Runtime, operator: Author) -> None:
    """Embeds the shared entries; if the embedder fails, keywords alone find them until ``casebank reembed``."""
    try:
        await embed_shared(runtime.database, runtime.embedder, operator)
    except EmbedderError as error:
        notice(f"{error}; `casebank reembed` makes the vectors")


async def _page(
    runtime: Runtime, author: Author, only: Mapping[str, str | None], before: UUID | None, *, shared: bool
) -> Sequence[dict[str, str]]:
    async with runtime.database.as_user(author.user_sub, author.authorised_at) as connection:
        if shared:
            page = paged(shown(shared_knowledge), shared_knowledge, only, before, AT_ONCE)
            rows = (await connection.execute(page)).mappings().all()
            return [_row(row, {"title": row["title"], "text": row["text"]}) for row in rows]
        page = page_of(knowledge, author.user_sub, only, before=before, limit=AT_ONCE)
        rows = (await connection.execute(page)).mappings().all()
        words = await runtime.keyring.find_for_page(connection, author.user_sub)
    return [] if words is None else [_row(row, words.open("knowledge", row["words"], row["id"])) for row in rows]


def _row(row: RowMapping, words: dict[str, str]) -> dict[str, str]:
    return {"id": str(row["id"]), "category": row["category"], "type": row["entry_type"], **words}
