"""Kinds of tasks in SQL, each with the statements that one would try; several read alike."""

from bench.failures.kinds import Kind, Names, Way

THINGS: tuple[Names, ...] = tuple(
    {"t": t, "one": one, "T": t.capitalize(), "p": p, "pone": pone}
    for t, one, p, pone in (
        ("parcels", "parcel", "customers", "customer"), ("invoices", "invoice", "suppliers", "supplier"),
        ("tickets", "ticket", "teams", "team"), ("shipments", "shipment", "carriers", "carrier"),
        ("bookings", "booking", "hotels", "hotel"), ("contracts", "contract", "vendors", "vendor"),
        ("courses", "course", "teachers", "teacher"), ("devices", "device", "owners", "owner"),
        ("articles", "article", "authors", "author"), ("patients", "patient", "doctors", "doctor"),
    )
)  # fmt: skip
VALUES = {
    "city": ("Oslo", "Lyon", "Turin", "Gdansk", "Porto", "Ghent", "Basel", "Malmo"),
    "code": ("A17", "B20", "C31", "D48", "E52", "F66", "G73", "H89"),
    "n": ("12", "25", "31", "48", "57", "64", "79", "93"),
    "day": ("2024-03-09", "2024-05-17", "2024-08-22", "2024-11-04"),
    "key": ("colour", "weight", "size", "origin", "brand", "grade"),
}


def _column(title: str, test: str, column: str, kept: str, gone: str) -> Way:
    """Returns the way that counts rows by a column, which is in the table where it works."""
    return Way(
        title,
        "SELECT count(*) FROM {t} WHERE city = '{city}' AND " + test,
        f"CREATE TABLE {{t}} (id INTEGER PRIMARY KEY, city TEXT, {column}); INSERT INTO {{t}} VALUES "
        f"(1, '{{city}}', {kept}), (2, '{{city}}', {gone}), (3, '{{city}}', {kept}), (4, 'Rome', {kept});",
    )


LIVE_ROWS = Kind(
    "live_rows",
    (
        "How many {t} does {city} have, without the deleted ones?",
        "Count the {t} in {city}, but no deleted ones",
        "{city}: number of {t} that are not deleted",
    ),
    (
        _column("test is_deleted", "is_deleted = 0", "is_deleted INTEGER", "0", "1"),
        _column("test deleted_at", "deleted_at IS NULL", "deleted_at TEXT", "NULL", "'2024-01-01'"),
        _column("test active", "active = 1", "active INTEGER", "1", "0"),
        _column("test status", "status <> 'deleted'", "status TEXT", "'open'", "'deleted'"),
        _column("test archived", "NOT archived", "archived INTEGER", "0", "1"),
        _column("test state", "state = 'A'", "state TEXT", "'A'", "'D'"),
        _column("test valid_to", "valid_to = '9999-12-31'", "valid_to TEXT", "'9999-12-31'", "'2024-01-01'"),
        Way("count every row", "SELECT count(*) FROM {t} WHERE city = '{city}'"),
    ),
    answer="[(2,)]",
)


def _named(title: str, table: str) -> Way:
    """Returns the way that counts the rows of a table, which exists where it works."""
    return Way(
        title,
        f"SELECT count(*) FROM {table} WHERE city = '{{city}}'",
        f"CREATE TABLE {table} (city TEXT); INSERT INTO {table} VALUES ('{{city}}'), ('{{city}}'), ('Rome');",
    )


TABLE_NAME = Kind(
    "table_name",
    ("How many {t} does {city} have?", "Count the {t} in {city}", "{city}: number of {t}"),
    (
        _named("read the table of the plain name", "{t}"),
        _named("read the table tbl_NAME", "tbl_{t}"),
        _named("read the table of the singular", "{one}"),
        _named("read the table NAME_v2", "{t}_v2"),
        _named("read the table app_NAME", "app_{t}"),
        _named("read the table dim_NAME", "dim_{one}"),
        _named("read the table NAME List", '"{T} List"'),
    ),
    answer="[(2,)]",
)


def _since(title: str, test: str, stored: str) -> Way:
    """Returns the way that compares days, which are stored in the form that it wants."""
    rows = ", ".join(f"('{{city}}', {stored.format(day=day)})" for day in ("'{day}'", "'2025-01-31'", "'2023-12-05'"))
    return Way(
        title,
        f"SELECT count(*) FROM {{t}} WHERE city = '{{city}}' AND {test}",
        f"CREATE TABLE {{t}} (city TEXT, came); INSERT INTO {{t}} VALUES {rows};",
    )


_DAY, _MONTH, _YEAR = ("substr({day}, " + part + ")" for part in ("9, 2", "6, 2", "1, 4"))
SINCE_DAY = Kind(
    "since_day",
    (
        "How many {t} does {city} have since {day}?",
        "Count the {t} in {city} since {day}",
        "{city}: number of {t} that came on {day} or later",
    ),
    (
        _since("compare with an ISO day", "came >= '{day}'", "{day}"),
        _since("compare with seconds", "came >= unixepoch('{day}')", "unixepoch({day})"),
        _since("compare with milliseconds", "came >= unixepoch('{day}') * 1000", "unixepoch({day}) * 1000"),
        _since(
            "compare with a number YYYYMMDD",
            "came >= CAST(replace('{day}', '-', '') AS INTEGER)",
            "CAST(replace({day}, '-', '') AS INTEGER)",
        ),
        _since(
            "turn DD/MM/YYYY round",
            "came LIKE '%/%' AND substr(came, 7) || substr(came, 3, 4) || substr(came, 1, 2) "
            ">= replace('{day}', '-', '/')",
            f"{_DAY} || '/' || {_MONTH} || '/' || {_YEAR}",
        ),
        _since("compare with a Julian day", "came >= julianday('{day}')", "julianday({day})"),
        Way(
            "subtract an INTERVAL from NOW()",
            "SELECT count(*) FROM {t} WHERE city = '{city}' AND came >= NOW() - INTERVAL '9 days'",
        ),
        Way(
            "use TO_DATE",
            "SELECT count(*) FROM {t} WHERE city = '{city}' AND came >= TO_DATE('{day}', 'YYYY-MM-DD')",
        ),
    ),
    answer="[(2,)]",
)


def _sum(title: str, amount: str, columns: str, values: str) -> Way:
    """Returns the way that adds up an amount, whose columns are in the table where it works."""
    return Way(
        title,
        f"SELECT round(sum({amount}), 2) FROM {{t}} WHERE city = '{{city}}'",
        f"CREATE TABLE {{t}} (city TEXT, {columns}); "
        f"INSERT INTO {{t}} VALUES ('{{city}}', {values}), ('Rome', {values});",
    )


REVENUE = Kind(
    "revenue",
    (
        "What did {city} pay for {t}?",
        "Add up the {t} in {city}, in euros",
        "{city}: total of {t}",
    ),
    (
        _sum("sum amount", "amount", "amount REAL", "{n}.5"),
        _sum("sum amount_cents", "amount_cents / 100.0", "amount_cents INTEGER", "{n}50"),
        _sum("sum price times quantity", "price * quantity", "price REAL, quantity INTEGER", "{n}.5, 1"),
        _sum("sum total", "total", "total REAL", "{n}.5"),
        _sum("sum net and tax", "net + tax", "net REAL, tax REAL", "{n}, 0.5"),
        _sum("sum value_eur", "value_eur", "value_eur REAL", "{n}.5"),
        _sum("sum paid less refunded", "paid - refunded", "paid REAL, refunded REAL", "{n}.75, 0.25"),
    ),
    answer="[({n}.5,)]",
)


def _linked(title: str, join: str, column: str, value: str, more: str = "") -> Way:
    """Returns the way that joins a parent, which has its columns where it works."""
    return Way(
        title,
        f"SELECT p.name FROM {{t}} t {join} WHERE t.code = '{{code}}'",
        "CREATE TABLE {p} (id INTEGER, code TEXT, uuid TEXT, name TEXT); "
        "INSERT INTO {p} VALUES (1, 'k1', 'u-1', 'North'), (2, 'k2', 'u-2', 'South'); "
        f"CREATE TABLE {{t}} (id INTEGER, code TEXT, {column}); INSERT INTO {{t}} VALUES (7, '{{code}}', {value}); "
        + more,
    )


PARENT = Kind(
    "parent",
    ("Which {pone} does {one} {code} have?", "Name the {pone} of {one} {code}", "{one} {code}: what is its {pone}?"),
    (
        _linked("join by NAME_id", "JOIN {p} p ON t.{pone}_id = p.id", "{pone}_id INTEGER", "2"),
        _linked("join by NAME_code", "JOIN {p} p ON t.{pone}_code = p.code", "{pone}_code TEXT", "'k2'"),
        _linked("join by NAME_uuid", "JOIN {p} p ON t.{pone}_uuid = p.uuid", "{pone}_uuid TEXT", "'u-2'"),
        _linked("join by fk_NAME", "JOIN {p} p ON t.fk_{pone} = p.id", "fk_{pone} INTEGER", "2"),
        _linked("join by id_NAME", "JOIN {p} p ON t.id_{pone} = p.id", "id_{pone} INTEGER", "2"),
        _linked("join by parent_id", "JOIN {p} p ON t.parent_id = p.id", "parent_id INTEGER", "2"),
        _linked(
            "join by a table of links",
            "JOIN {p}_{t} l ON l.{one}_id = t.id JOIN {p} p ON p.id = l.{pone}_id",
            "note TEXT",
            "''",
            "CREATE TABLE {p}_{t} ({one}_id INTEGER, {pone}_id INTEGER); INSERT INTO {p}_{t} VALUES (7, 2);",
        ),
    ),
    answer="[('South',)]",
)


def _json(title: str, path: str, document: str) -> Way:
    """Returns the way that reads a key at a path, where the document has it there."""
    return Way(
        title,
        f"SELECT payload ->> '{path}' FROM {{t}} WHERE code = '{{code}}'",
        f"CREATE TABLE {{t}} (code TEXT, payload TEXT); INSERT INTO {{t}} VALUES ('{{code}}', '{document}');",
    )


DOCUMENT = Kind(
    "document",
    (
        "Which {key} does {one} {code} have?",
        "Name the {key} of {one} {code}",
        "{one} {code}: what is its {key}?",
    ),
    (
        _json("read the key at the top", "$.{key}", '{{"{key}": {n}}}'),
        _json("read the key under data", "$.data.{key}", '{{"data": {{"{key}": {n}}}}}'),
        _json("read the key under attributes", "$.attributes.{key}", '{{"attributes": {{"{key}": {n}}}}}'),
        _json("read the key of the first element", "$[0].{key}", '[{{"{key}": {n}}}]'),
        _json("read the key under the thing's name", "$.{one}.{key}", '{{"{one}": {{"{key}": {n}}}}}'),
        _json("read the value of the key", "$.{key}.value", '{{"{key}": {{"value": {n}}}}}'),
        Way("use JSON_VALUE", "SELECT JSON_VALUE(payload, '$.{key}') FROM {t} WHERE code = '{code}'"),
        Way("cast to json", "SELECT payload::json ->> '{key}' FROM {t} WHERE code = '{code}'"),
    ),
    answer="[({n},)]",
)
READS = (LIVE_ROWS, TABLE_NAME, SINCE_DAY, REVENUE, PARENT, DOCUMENT)
