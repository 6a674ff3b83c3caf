"""Memories inserted into the view by SQL: who may, what is stripped and refused, and what the worker makes of them."""

import ast
import asyncio
import json
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from app.postgres.pools import dsn
from bench.secrets.everyday import disguised, everyday
from bench.secrets.tokens import assigned, bare
from tests.cluster import CITUS_URL, one_postgres
from tests.lessons import LEARNED, RECORD
from tests.pages import blocks
from tests.paths import ROOT
from tests.service import SETTLES_WITHIN_S, Service, User
from tests.writer.secrets_to_redact import CREDENTIALS, ORDINARY, PERSONAL, SECRETS
from writer.privacy.redact import redact_text
from writer.rights.erase import erase

INSERT = "INSERT INTO context_eng_memories (content, metadata) VALUES ($1, $2) RETURNING *"
NO_FAILURE = {"status": "no_failure_detected"}
WAITING = "SELECT id FROM inserted_memories WHERE user_sub = :user_sub"


one_transaction = pytest.mark.skipif(
    CITUS_URL is not None, reason="a cluster lets no other role read what the trigger wrote in the transaction"
)


class Login:
    """A login of a flow's own: its transaction enters as a user and inserts."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self.connection = connection

    async def insert(self, user: str, content: str, metadata: Any = NO_FAILURE, statement: str = INSERT) -> Any:
        async with self.connection.transaction():
            await self.connection.execute("SELECT casebank_enter($1, now())", user)
            return await self.connection.fetchrow(statement, content, json.dumps(metadata))

    async def queued(self, user: str, content: str, metadata: Any = NO_FAILURE, statement: str = INSERT) -> Any:
        """Inserts, and returns the answer and the row of the queue; it is rolled back, so that no worker takes it."""
        transaction = self.connection.transaction()
        await transaction.start()
        try:
            answered = await self.insert(user, content, metadata, statement)
            (waiting,) = await self.connection.fetch("SELECT * FROM inserted_memories")
        finally:
            await transaction.rollback()
        return answered, waiting


@asynccontextmanager
async def login(service: Service, *rights: str) -> AsyncIterator[Login]:
    """Makes a login with the rights, which are statements with a hole for its name."""
    name, url = f"n8n_{uuid4().hex}", dsn(str(service.settings.database_url))
    owner = await asyncpg.connect(url)
    await owner.execute(f"CREATE ROLE {name} LOGIN; {'; '.join(rights).format(name=name)}")
    connection = await asyncpg.connect(url.replace("postgres@", f"{name}@"))
    try:
        yield Login(connection)
    finally:
        await connection.close()
        await owner.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")
        await owner.close()


MEMBER, GRANTED = "GRANT casebank_service TO {name}", "GRANT INSERT ON context_eng_memories TO {name}"


@pytest.fixture
async def flow(service: Service) -> AsyncIterator[Login]:
    async with login(service, MEMBER, GRANTED) as made:
        yield made


async def taken(user: User) -> None:
    """Waits until the worker, woken by the insert's notice alone, has taken what was inserted and has finished it."""
    async with asyncio.timeout(SETTLES_WITHIN_S):
        while await user.rows(WAITING):  # noqa: ASYNC110 - the worker tells nobody
            await asyncio.sleep(0.01)
    await user.settle()


# What becomes of a memory


async def test_an_inserted_record_becomes_a_procedure_of_its_user(alice: User, bob: User, flow: Login):
    row = await flow.insert(alice.name, RECORD["semantic_description"], LEARNED)
    await taken(alice)
    case = await alice.case(str(row["id"]))
    assert (case["agent"], case["task"], case["procedure"]) == (
        "context-eng",
        RECORD["semantic_description"],
        LEARNED | {"data": RECORD},
    )
    assert datetime.fromisoformat(case["created_at"]) == row["created_dt"]
    records = await alice.rows("SELECT record FROM procedures WHERE user_sub = :user_sub")
    assert [each.record for each in records] == [RECORD]
    read = await alice.rows("SELECT id, metadata ->> 'status' AS status FROM context_eng_memories")
    assert [(each.id, each.status) for each in read] == [(row["id"], "procedure_learned")]
    assert await bob.rows("SELECT id FROM context_eng_memories") == []


async def test_the_statements_of_the_page_grant_it_and_insert_a_memory(service: Service, alice: User):
    _, grants, insert, _, node = blocks("n8n.md", "sql")
    name, url = f"n8n_{uuid4().hex}", dsn(str(service.settings.database_url))
    owner = await asyncpg.connect(url)
    await owner.execute(grants.replace("n8n", name))
    connection = await asyncpg.connect(url.replace("postgres@", f"{name}@"))
    try:
        assert await connection.fetchval("SHOW log_min_error_statement") == "panic"
        await connection.execute(insert.replace("'alice'", f"'{alice.name}'"))
        values = {"$1": f"'{alice.name}'", "$2": "'drop a column'", "$3": f"'{json.dumps(LEARNED)}'"}
        await connection.execute(reduce(lambda text, each: text.replace(*each), values.items(), node))  # as n8n does
        await taken(alice)
        assert {case["task"] for case in await alice.cases()} == {"add a column", "drop a column"}
    finally:
        await connection.close()
        await owner.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")
        await owner.close()


async def test_a_memory_without_a_failure_is_kept_as_such_under_the_agent_that_it_names(alice: User, flow: Login):
    named = INSERT.replace(
        "(content, metadata) VALUES ($1, $2", "(content, metadata, agent) VALUES ($1, $2, 'gardener'"
    )
    row = await flow.insert(alice.name, "water the garden", NO_FAILURE, named)
    await taken(alice)
    case = await alice.case(str(row["id"]))
    assert (case["agent"], case["procedure"]) == ("gardener", NO_FAILURE)
    entries = (await alice.http.get("/v1/audit")).json()["entries"]
    assert [each["actor"] for each in entries if each["subject_id"] == str(row["id"])] == ["sql"]


@one_transaction
async def test_what_the_table_makes_by_itself_is_not_taken_from_the_insert(alice: User, flow: Login):
    given = UUID(int=7)
    row, waiting = await flow.queued(
        alice.name,
        "water the garden",
        NO_FAILURE,
        INSERT.replace(
            "content, metadata) VALUES (",
            f"id, embedding, fts, created_dt, content, metadata) VALUES ('{given}', '[1,2,3]', 'a', '2001-01-01', ",
        ),
    )
    assert row["id"] != given
    assert (row["embedding"], row["fts"]) == (None, None)
    assert row["created_dt"].year > 2001
    assert (waiting["id"], waiting["content"]) == (row["id"], "water the garden")
    assert json.loads(waiting["metadata"]) == NO_FAILURE | {"data": None}


async def test_ids_rise_with_time(alice: User, flow: Login):
    before = UUID(await alice.retain("mow the lawn"))
    ids = [(await flow.insert(alice.name, f"water the {plant}"))["id"] for plant in ("fern", "oak")]
    assert before < ids[0]
    assert {each.version for each in ids} == {7}
    assert ids[0].int >> 80 <= ids[1].int >> 80  # the time; ids of one millisecond come in any order


async def test_a_transaction_that_is_rolled_back_leaves_nothing(alice: User, flow: Login):
    transaction = flow.connection.transaction()
    await transaction.start()
    await flow.connection.execute("SELECT casebank_enter($1, now())", alice.name)
    await flow.connection.execute(INSERT, "water the garden", json.dumps(NO_FAILURE))
    await transaction.rollback()
    assert await alice.rows(WAITING) == []


# What is stripped


def corpus() -> list[str]:
    """Returns every text of the redactor's own tests, and generated ones."""
    texts = [*SECRETS.values(), *PERSONAL.values(), *(text for _, text, _ in CREDENTIALS), *ORDINARY]
    for made in (bare, assigned, everyday, disguised):
        texts += [text for _, text, _ in made(random.Random(20), 2)]
    for page in sorted((ROOT / "tests" / "writer" / "privacy").glob("*.py")):
        nodes = ast.walk(ast.parse(page.read_text()))
        texts += [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [text for text in dict.fromkeys(texts) if text.strip() and not re.search("[\0\ud800-\udfff]", text)]


def removed(text: str) -> list[str]:
    """Returns the pieces of the text that the redactor takes out."""
    clean, counts = redact_text(text)
    if not counts:
        return []
    kept = map(re.escape, re.split(r"\[REDACTED:[a-z-]+\]", clean))
    match = re.fullmatch("(.*?)".join(kept), text, re.DOTALL)
    return [piece for piece in match.groups() if piece] if match else []


async def stripped(alice: User, texts: list[str]) -> list[str]:
    statement = (
        "SELECT casebank_strip(given) AS text FROM unnest(CAST(:texts AS text[])) WITH ORDINALITY AS t(given, n)"
    )
    return [row.text for row in await alice.rows(f"{statement} ORDER BY n", texts=texts)]


async def test_all_that_the_redactor_takes_out_is_stripped(alice: User):
    texts = corpus()
    left, tried = [], 0
    for text, clean in zip(texts, await stripped(alice, texts), strict=True):
        tried += bool(redact_text(text)[1])
        if redact_text(clean)[1] or any(piece in clean for piece in removed(text) if len(piece) > 2):
            left.append((text, clean))
    assert left == []
    assert tried > 1_000


async def test_ordinary_texts_come_through_unchanged(alice: User):
    texts = [text for value in RECORD.values() for text in (value if isinstance(value, list) else [value])] + [
        "Refresh the token and try again, the session hasn't expired!",
        "The user's passport is not authorized at this machine.",
        "The search found no file; list the folder first, then open the newest report.",
        "Call create_invoice with the customer's id, 2 items and no discount (retry once).",
        "If the answer is 404, ask for the order's number.",
        "Käse für Zoë kaufen, dann die Straße überqueren.",
        "先打开文件 然后保存。",
    ]
    assert await stripped(alice, texts) == texts


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("the password is banana-split, ask Ann", "the password is [REDACTED:sql]"),
        ("write to ada@example.org soon", "write to [REDACTED:sql] soon"),
        ("order 20513 came", "order [REDACTED:sql]came"),
        ("run mysql -pbanana shop", "run mysql[REDACTED:sql]"),
        ("p%61ssword=banana", "[REDACTED:sql]"),
        ("мой ПАРОЛЬ: банан", "мой [REDACTED:sql]"),
    ],
)
async def test_of_a_text_with_a_secret_what_stands_before_it_is_kept(alice: User, text: str, kept: str):
    assert await stripped(alice, [text]) == [kept]


@one_transaction
async def test_secrets_in_any_part_of_a_record_are_not_in_the_queue(alice: User, flow: Login):
    secret = SECRETS["github-token"]
    record = {name: [f"use {secret}"] if isinstance(value, list) else f"use {secret}" for name, value in RECORD.items()}
    row, waiting = await flow.queued(alice.name, f"use {secret}", LEARNED | {"data": record})
    for place in (row["content"], row["metadata"], waiting["content"], waiting["metadata"]):
        assert secret not in place
        assert "use [REDACTED:sql]" in place
    assert json.loads(waiting["metadata"])["data"].keys() == record.keys()
    odd = RECORD | {"procedure_name": 4111111111111111, "learned_procedure_steps": [[secret], {"password": "banana"}]}
    _, waiting = await flow.queued(alice.name, "pay", LEARNED | {"data": odd})
    for hidden in ("4111", secret, "banana"):
        assert hidden not in waiting["metadata"]


@one_postgres
async def test_a_secret_reaches_neither_the_data_files_nor_the_write_ahead_log(
    service: Service, alice: User, flow: Login
):
    secret = f"ghp_{uuid4().hex}"
    plain = "".join(random.Random(secret).choices("abcdefghijklmnop", k=16))
    row = await flow.insert(alice.name, f"{plain} with {secret}", {"data": RECORD | {"procedure_name": secret}})
    await taken(alice)
    owner = await asyncpg.connect(dsn(str(service.settings.database_url)))
    try:
        folder = Path(await owner.fetchval("SHOW data_directory"))
        base = await owner.fetchval("SELECT oid FROM pg_database WHERE datname = current_database()")
        logged = (found(folder / "pg_wal", plain), found(folder / "pg_wal", secret))
        await owner.execute("CHECKPOINT")
    finally:
        await owner.close()
    assert (await alice.case(str(row["id"])))["task"] == f"{plain} with [REDACTED:sql]"
    assert logged == (True, False)
    assert not found(folder / "base" / str(base), secret)


def found(folder: Path, text: str) -> bool:
    """Returns whether the text stands in a file of the folder."""
    return any(text.encode() in file.read_bytes() for file in folder.iterdir() if file.is_file())


async def test_no_setting_of_the_session_and_no_object_of_its_own_weakens_the_trigger(alice: User, flow: Login):
    await flow.connection.execute(
        "SET standard_conforming_strings = off; SET search_path = pg_temp, public; CREATE TEMP TABLE profiles ();"
        " CREATE FUNCTION pg_temp.casebank_strip(text) RETURNS text LANGUAGE sql AS 'SELECT $1';"
        " SELECT public.casebank_strip('a')"
    )
    row = await flow.insert(alice.name, "write to ada@example.org soon")
    assert row["content"] == "write to [REDACTED:sql] soon"
    await flow.connection.execute("SET row_security = off")
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
        await flow.insert(alice.name, "water the garden")


# Who may


@pytest.mark.parametrize(("rights", "refused"), [((MEMBER,), "context_eng_memories"), ((GRANTED,), "erasures")])
async def test_a_login_needs_both_the_role_and_the_grant(
    service: Service, alice: User, rights: tuple[str, ...], refused: str
):
    async with login(service, *rights) as flow:
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match=f"permission denied for .* {refused}"):
            await flow.insert(alice.name, "water the garden")


BORROWED = """
CREATE TEMP VIEW mine AS SELECT * FROM context_eng_memories;
CREATE TRIGGER keep INSTEAD OF INSERT ON mine FOR EACH ROW EXECUTE FUNCTION casebank_insert_memory()
"""
FORBIDDEN = [
    "SET LOCAL ROLE casebank_service; INSERT INTO context_eng_memories (content) VALUES ('c')",
    "INSERT INTO inserted_memories (user_sub, id, content) VALUES ('u', gen_random_uuid(), 'c')",
    "UPDATE inserted_memories SET content = 'c'",
    BORROWED,
]


async def test_the_role_of_the_service_may_not_insert_and_nobody_may_write_the_queue_or_borrow_the_trigger(
    alice: User, flow: Login
):
    for statement in FORBIDDEN:
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="permission denied"):
            async with flow.connection.transaction():
                await flow.connection.execute(statement)


@one_transaction
async def test_a_memory_is_the_users_whom_the_transaction_entered_as(alice: User, bob: User, flow: Login):
    named = INSERT.replace("content, ", "user_sub, content, ").replace("$1, ", f"'{bob.name}', $1, ")
    with pytest.raises(asyncpg.UndefinedColumnError):
        await flow.insert(alice.name, "water the garden", NO_FAILURE, named)
    _, waiting = await flow.queued(alice.name, "water the garden")
    assert waiting["user_sub"] == alice.name
    with pytest.raises(asyncpg.RaiseError, match="first SELECT casebank_enter"):
        await flow.connection.execute(INSERT, "water the garden", json.dumps(NO_FAILURE))
    async with flow.connection.transaction(isolation="repeatable_read"):  # which would not see an erasure
        await flow.connection.execute("SELECT casebank_enter($1, now())", alice.name)
        with pytest.raises(asyncpg.RaiseError, match="must be READ COMMITTED"):
            await flow.connection.execute(INSERT, "water the garden", json.dumps(NO_FAILURE))


async def test_without_row_level_security_the_memory_is_the_entered_users_as_well(
    service: Service, alice: User, bob: User
):
    owner = await asyncpg.connect(dsn(str(service.settings.database_url)))  # a superuser, whom no policy binds
    try:
        row = await Login(owner).insert(alice.name, "water the garden")
    finally:
        await owner.close()
    await taken(alice)
    assert (await alice.case(str(row["id"])))["task"] == "water the garden"
    assert await bob.cases() == []


# What is refused


@pytest.mark.parametrize(
    ("content", "metadata", "says"),
    [
        (" ", NO_FAILURE, "content must have"),
        ("w" * 20_001, NO_FAILURE, "content must have"),
        ("w" * 10_000_000, NO_FAILURE, "content must have"),
        ("water", None, "metadata must be an object"),
        ("water", "hunter2!x", "metadata must be an object"),
        ("water", NO_FAILURE | {"ghp_secret": 1}, "metadata must be an object with status and data"),
        ("water", {"status": "hunter2!x"}, "status must be"),
        ("water", {"status": "failure_lesson", "data": RECORD}, "status must be"),
        ("water", {"status": ["no_failure_detected"]}, "status must be"),
        ("water", {"status": "procedure_learned"}, "data is the record"),
        ("water", NO_FAILURE | {"data": RECORD}, "data is the record"),
        ("water", {"data": RECORD | {"hunter2!x": "y"}}, "data must have"),
        ("water", {"data": ["hunter2!x"]}, "data must have"),
        ("water", {"data": {"procedure_name": "hunter2!x"}}, "data must have"),
        ("water", {"data": RECORD | {"procedure_name": "w" * 10_000_000}}, "at most 300000"),
    ],
)
async def test_a_wrong_memory_is_refused_with_a_plain_message_that_quotes_nothing(
    alice: User, flow: Login, content: str, metadata: Any, says: str
):
    with pytest.raises(asyncpg.CheckViolationError, match=says) as refused:
        await flow.insert(alice.name, content, metadata)
    told = f"{refused.value} {refused.value.detail} {refused.value.context}"
    assert "hunter2" not in told
    assert "ghp_" not in told


async def test_a_nul_an_on_conflict_and_a_change_are_refused_by_postgres(alice: User, flow: Login):
    for statement, values in (
        (INSERT, ("a\0b", json.dumps(NO_FAILURE))),
        (INSERT, ("a", '{"status": "\\u0000"}')),
        (INSERT.replace("RETURNING *", "ON CONFLICT (id) DO NOTHING"), ("a", json.dumps(NO_FAILURE))),
        ("UPDATE context_eng_memories SET content = $1", ("a",)),
        ("DELETE FROM context_eng_memories", ()),
    ):
        async with flow.connection.transaction():
            await flow.connection.execute("SELECT casebank_enter($1, now())", alice.name)
            with pytest.raises(asyncpg.PostgresError):
                await flow.connection.execute(statement, *values)


@pytest.mark.parametrize("agent", ["", "a" * 201, "a\nb", "a\x7f"])
async def test_a_name_that_no_agent_has_is_refused(alice: User, flow: Login, agent: str):
    named = INSERT.replace(
        "(content, metadata) VALUES ($1, $2", f"(content, metadata, agent) VALUES ($1, $2, '{agent}'"
    )
    with pytest.raises(asyncpg.CheckViolationError, match="agent must have"):
        await flow.insert(alice.name, "water", NO_FAILURE, named)


@one_transaction
async def test_a_new_agent_whose_name_may_hold_a_secret_is_refused_and_one_that_is_there_is_not(
    alice: User, flow: Login
):
    named = INSERT.replace("(content, metadata) VALUES ($1, $2", "(content, metadata, agent) VALUES ($1, $2, 'gpt4o'")
    with pytest.raises(asyncpg.CheckViolationError, match="agent must have"):
        await flow.insert(alice.name, "water", NO_FAILURE, named)
    await alice.retain("water", agent="gpt4o")
    _, waiting = await flow.queued(alice.name, "water", NO_FAILURE, named)
    assert waiting["agent_key"] == "gpt4o"


async def test_an_agent_whose_memory_is_off_gets_none(alice: User, flow: Login):
    await alice.http.put("/v1/profiles/context-eng", json={"enabled": False})
    with pytest.raises(asyncpg.CheckViolationError, match="memory of this agent is off"):
        await flow.insert(alice.name, "water")


async def test_an_erased_user_gets_none(service: Service, alice: User, flow: Login):
    assert "inserted_memories" in (await erase(service.runtime.database, alice.name)).rows
    with pytest.raises(asyncpg.CheckViolationError, match="the user was erased"):
        await flow.insert(alice.name, "water the garden")
    async with flow.connection.transaction():  # without casebank_enter, which refuses whoever was authorised before
        await flow.connection.execute("SELECT set_config('app.user_sub', $1, true)", alice.name)
        with pytest.raises(asyncpg.CheckViolationError, match="the user was erased"):
            await flow.connection.execute(INSERT, "water the garden", json.dumps(NO_FAILURE))


async def test_a_user_has_at_most_a_thousand_that_wait(alice: User, flow: Login):
    many = "INSERT INTO context_eng_memories (content, metadata) SELECT $1, $2 FROM generate_series(1, 1001)"
    with pytest.raises(asyncpg.CheckViolationError, match="1000 memories of this user wait"):
        await flow.insert(alice.name, "water", NO_FAILURE, many)
