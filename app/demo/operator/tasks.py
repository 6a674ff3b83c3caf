"""Tasks drawn from the families; the same seed always gives the same tasks."""

import random
from dataclasses import dataclass

from app.demo.operator.families import Family

BASE = """
CREATE TYPE {one}_status AS ENUM ('new', 'open', 'closed');
CREATE TABLE {p} (id integer PRIMARY KEY, name text NOT NULL DEFAULT 'unnamed');
INSERT INTO {p} (id, name) VALUES (1, 'north'), (2, 'south'), (3, 'west');
CREATE TABLE {t} (id serial PRIMARY KEY, {pone}_id integer NOT NULL DEFAULT 1 REFERENCES {p} (id), {c} text,
    {n} integer NOT NULL DEFAULT 1 CHECK ({n} >= 0), status {one}_status NOT NULL DEFAULT 'new',
    code varchar(12) UNIQUE);
INSERT INTO {t} (code, {c}, {pone}_id) VALUES ('A1', 'alpha', 1), ('B2', 'beta', 2), ('C3', 'gamma', 3);
CREATE VIEW {one}_overview AS SELECT id, {c}, {n} FROM {t};
"""


@dataclass(frozen=True)
class Task:
    """One task: `text` and `naive` are for the operator, the rest is known only to the harness."""

    id: str
    family: str
    text: str
    naive: str
    setup: str
    goal: str


_THINGS = (
    ("products", "product"), ("invoices", "invoice"), ("tickets", "ticket"), ("shipments", "shipment"),
    ("accounts", "account"), ("projects", "project"), ("payments", "payment"), ("devices", "device"),
    ("courses", "course"), ("articles", "article"), ("bookings", "booking"), ("contracts", "contract"),
    ("vehicles", "vehicle"), ("patients", "patient"), ("users", "user"), ("profiles", "profile"),
)  # fmt: skip
_PARENTS = (
    ("customers", "customer"), ("suppliers", "supplier"), ("regions", "region"), ("vendors", "vendor"),
    ("departments", "department"), ("branches", "branch"), ("owners", "owner"), ("campaigns", "campaign"),
)  # fmt: skip
_POOLS = {
    "c": ("nickname", "title", "caption", "contact", "summary", "brand", "colour", "motto"),
    "n": ("quantity", "stock", "points", "rating", "capacity", "mileage", "seats", "weight"),
    "new": ("middle_name", "birth_date", "score", "remarks", "hired_on", "country", "reference", "page_count"),
    "reserved": ("order", "user", "group", "check", "default", "limit", "end", "desc", "offset", "primary"),
    "word": ("amber", "birch", "cobalt", "delta", "ember", "fjord", "garnet", "harbor", "indigo", "juniper"),
    "label": ("archived", "suspended", "refunded", "escalated", "cancelled", "approved", "rejected", "paused"),
    "unit": ("kg", "pcs", "units", "boxes", "km", "litres"),
    "space": ("archive", "reporting", "staging", "legacy", "audit", "finance"),
    "number": ("integer", "bigint", "numeric"),
}


def draw(family: Family, seed: int, variation: int) -> Task:
    """Returns the task of a family for this seed and variation."""
    rng = random.Random(f"{seed}:{family.key}:{variation}")
    (t, one), (p, pone) = rng.choice(_THINGS), rng.choice(_PARENTS)
    names = {key: rng.choice(pool) for key, pool in _POOLS.items()}
    names |= {"t": t, "one": one, "p": p, "pone": pone, "T": t.capitalize(), "N": f"{names['n']}Total"}
    names |= {"big": str(rng.randint(100, 999)), "small": str(rng.randint(1, 3)), "a": "a"}
    names |= {"code": f"{rng.choice('KLMNPQ')}{rng.randint(10, 99)}"}
    wording = rng.choice(family.wordings)
    if variation < len(family.first):
        names |= family.first[variation]
        wording = family.wordings[0]
    return Task(
        id=f"{family.key}-{variation}",
        family=family.key,
        text=wording.format_map(names),
        naive=family.naive.format_map(names),
        setup=(BASE + family.extra).format_map(names),
        goal=family.goal.format_map(names),
    )
