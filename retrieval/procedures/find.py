"""Finds procedures: by the similarity of their trigger and by attributes, or by words if there are no vectors."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from uuid import UUID

import numpy as np
import orjson
from sqlalchemy import REAL, Float, Integer, Text, Uuid, and_, case, cast, func, literal_column, or_, select, true
from sqlalchemy.dialects.postgresql import ARRAY

from policy.channels import searchable, words
from retrieval.database.fast_path import FastConnection, FastStatement, Record
from retrieval.database.parameters import AGENT_KEY, MODEL, USER_SUB, may_enter, parameter, vector_text
from retrieval.pages.procedures import Measures
from retrieval.procedures.near import NAMING, active, near
from retrieval.procedures.procedure import Procedure
from retrieval.procedures.quarantine import proven_runs
from retrieval.search.candidates import Filters
from retrieval.tables.procedures import procedures
from retrieval.tables.profiles import profiles

MOST_PARTS = 4
"""Largest number of parts of a task; a task with more is a text, which is not split."""
LEAST_WORDS = 2
"""Least number of words of a part of a task."""
_WORDS = "and|then|after that|afterwards|as well as|und|dann|danach|sowie|et|puis|ensuite|y|luego|después"
_BETWEEN = re.compile(rf"[;\n]+|[.!?]\s+|,\s+|,?\s+(?:{_WORDS})\s+", re.IGNORECASE)
_NUMBER = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")


def parts_of(task: str) -> list[str]:
    """Returns the parts of a task in their order; empty for a task of one part or of more than MOST_PARTS parts."""
    lines = "\n".join(" ".join(_NUMBER.sub("", line).split()) for line in task.split("\n") if line.strip())
    parts = [part.strip() for part in _BETWEEN.split(lines)]
    parts = [part for part in parts if len(part.split()) >= LEAST_WORDS]
    return parts if 1 < len(parts) <= MOST_PARTS else []


LOOK = 16
"""Largest number of procedures, the nearest by their triggers, that are read beside those that near cases taught."""
WHOLE = 1
"""Number of the whole text among the texts of a search; the others are its parts."""
LEAST_SHARE = 0.5
"""Least share of the query's or the procedure's words, whichever are fewer, to be common if there are no vectors."""


@dataclass(frozen=True, slots=True)
class ProcedureSearch:
    """A search for procedures in one profile; a condition of None allows all procedures.

    Attributes:
        text: the task; None: only the conditions on attributes decide.
        vector: vector of the text; None: the text is compared by words.
        parts: parts of a task that asks for several things, for which procedures are searched as well.
        part_vectors: vector of each part.
        floor: least similarity of trigger and text, for procedures that have a vector of the same model.
        near: similarity to the text of each case that reaches the floor, by its id; procedures that such a case taught
            are found, too, whatever their triggers.
        near_proven: ids of those of these cases that are proven; only these count for procedures with a proven run.
        by_tool: true to find, whatever the similarity, procedures with tools whose names have all words of a short
            text.
        look: largest number of procedures to return for each text.
    """

    agent_key: str
    text: str | None
    vector: list[float] | None = None
    parts: Sequence[str] = ()
    part_vectors: Sequence[list[float]] = ()
    model: str = ""
    floor: float = -1.0
    near: Mapping[UUID, float] = field(default_factory=dict)
    near_proven: frozenset[UUID] = frozenset()
    by_tool: bool = False
    filters: Filters = field(default_factory=Filters)
    task_type: str | None = None
    domain: str | None = None
    measures: Measures = field(default_factory=Measures)
    look: int = LOOK


async def find(connection: FastConnection, search: ProcedureSearch, *, pgvector: bool) -> list[list[Procedure]]:
    """Returns the active procedures that fit the text, and those that fit each part, in one statement.

    In each list proven procedures come first, and among equals those with the nearest triggers. Procedures with a
    vector of the search's model are compared by similarity, the others by common words. The similarity of a procedure
    that a near case taught is at least that of the case.
    """
    attributes: dict[str, object] = {"task_type": search.task_type, "domain": search.domain, **asdict(search.measures)}
    attributes |= {name: list(values) for name, values in asdict(search.filters).items()}
    texts = [search.text, *search.parts]
    naming = [search.by_tool and text is not None and len(words(text)) in NAMING for text in texts]
    parameters: dict[str, object] = {
        **attributes,
        "agent_key": search.agent_key,
        "texts": [None if text is None else searchable(text) for text in texts],
        "naming": naming,
        "floor": search.floor,
        "near_cases": list(search.near),
        "near_proven": list(search.near_proven),
        "look": search.look,
    }
    # without attributes a statement without them, or Postgres would plan it anew each time, for longer than it runs
    by_attributes = any(value not in (None, []) for value in attributes.values())
    vectors = [] if search.vector is None else [search.vector, *search.part_vectors]
    pgvector = pgvector and bool(vectors)
    if pgvector:
        parameters |= {"model": search.model, "vectors": [*map(vector_text, vectors)]}
    else:
        parameters |= await _measured(connection, search, vectors)
    statement = _statement(pgvector=pgvector, by_attributes=by_attributes, by_tool=any(naming))
    rows = await connection.all(statement, parameters)
    found: list[list[Procedure]] = [[] for _ in texts]
    for row in rows:
        found[row["number"] - 1].append(_procedure(row, search))
    return found


async def _measured(
    connection: FastConnection, search: ProcedureSearch, vectors: Sequence[list[float]]
) -> dict[str, object]:
    """Returns the statement's parameters for similarities that this process computes; none without vectors."""
    if not vectors:
        return {"numbers": [], "ids": [], "similarities": []}
    rows = await connection.all(_VECTORS, {"agent_key": search.agent_key, "model": search.model})
    usable = [row for row in rows if len(row.embedding) == len(vectors[0])]
    triggers = np.array([row.embedding for row in usable], np.float32).reshape(-1, len(vectors[0]))
    similarities = np.array(vectors, np.float32) @ triggers.T  # (texts, procedures)
    numbers, places = np.indices(similarities.shape)
    return {
        "numbers": (numbers.ravel() + 1).tolist(),
        "ids": [usable[place].id for place in places.ravel()],
        "similarities": similarities.ravel().tolist(),
    }


def _procedure(row: Record, search: ProcedureSearch) -> Procedure:
    """Returns the procedure of a row; its similarity is that of its trigger, or of the nearest case that taught it."""
    values = dict(row.items())
    record, named, sources = (values.pop(name) for name in ("record", "named", "source_case_ids"))
    near = search.near_proven if row["proven_runs"] else search.near.keys()
    taught = near & set(sources) if values.pop("number") == WHOLE else set()
    similarities = [values.pop("similarity"), *(search.near[source] for source in taught)]
    del values["share"]
    return Procedure(
        **values,
        similarity=max((each for each in similarities if each is not None), default=None),
        record=orjson.loads(record),
        names_tools=named,
        sources=frozenset(sources),
    )


@cache
def _statement(*, pgvector: bool, by_attributes: bool, by_tool: bool) -> FastStatement[Record]:
    nearest = near(pgvector=pgvector, by_attributes=by_attributes, by_tool=by_tool)
    own = {each.name for each in fields(Procedure)} - {"id", "version", "record"} | {"source_case_ids"}
    proven = proven_runs().lateral("proven")
    least = parameter("floor", Float)
    fits = or_(nearest.c.similarity >= least, nearest.c.share >= LEAST_SHARE, nearest.c.named, nearest.c.without_text)
    by_any, by_proven = (
        procedures.c.source_case_ids.overlap(parameter(name, ARRAY(Uuid))) for name in ("near_cases", "near_proven")
    )
    of_near = case((proven.c.proven_runs > 0, by_proven), else_=by_any)
    taught = and_(nearest.c.number == literal_column(str(WHOLE)), of_near)
    order = (
        or_(procedures.c.pinned, proven.c.proven_runs > 0).desc(),
        nearest.c.similarity.desc().nulls_last(),
        nearest.c.share.desc().nulls_last(),
        procedures.c.level.is_(None).desc(),
        nearest.c.id.desc(),
    )
    fitting = (
        select(
            *(column for column in nearest.c if column.name != "without_text"),
            *(column for column in procedures.c if column.name in own),
            proven.c.proven_runs,
            cast(procedures.c.record, Text).label("record"),
            func.row_number().over(partition_by=nearest.c.number, order_by=order).label("place"),
            taught.label("taught"),
        )
        .select_from(
            nearest.join(
                procedures,
                and_(
                    procedures.c.user_sub == USER_SUB,
                    procedures.c.id == nearest.c.id,
                    procedures.c.version == nearest.c.version,
                ),
            ).join(proven, true())
        )
        .where(or_(fits, taught))
        .subquery()
    )
    return FastStatement(
        select(*(column for column in fitting.c if column.name not in {"place", "taught"}))
        .where(may_enter(), or_(fitting.c.taught, fitting.c.place <= parameter("look", Integer)))
        .order_by(fitting.c.number, fitting.c.place)
    )


_VECTORS: FastStatement[Record] = FastStatement(
    select(procedures.c.id, cast(procedures.c.embedding, ARRAY(REAL)).label("embedding"))
    .where(may_enter(), *active(), procedures.c.embedding_model == MODEL)
    .order_by(procedures.c.id)
)
PROFILE_TERMS: FastStatement[Record] = FastStatement(
    select(profiles.c.enabled, profiles.c.procedure_similarity).where(
        may_enter(), profiles.c.user_sub == USER_SUB, profiles.c.agent_key == AGENT_KEY
    )
)
"""Reads whether memory is on for the agent ``agent_key``, and its threshold; no row for an unknown agent."""
