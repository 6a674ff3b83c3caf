"""Kinds of tasks in SQL that change rows, each with the statements that one would try; several read alike."""

from bench.failures.kinds import Kind, Way


def _status(value: str) -> Way:
    """Returns the way that sets a status, which a CHECK allows where it works."""
    return Way(
        f"set the status {value}",
        f"UPDATE {{t}} SET status = '{value}' WHERE code = '{{code}}'",
        "CREATE TABLE {t} (code TEXT, status TEXT CONSTRAINT {one}_status "
        f"CHECK (status IN ('new', 'open', '{value}'))); INSERT INTO {{t}} VALUES ('{{code}}', 'open');",
        f"[('{value}',)]",
    )


CANCEL = Kind(
    "cancel",
    ("Cancel {one} {code}", "{one} {code} was cancelled; record it", "Mark {one} {code} as cancelled"),
    tuple(map(_status, ("cancelled", "canceled", "CANCELLED", "C", "void", "closed", "X"))),
    goal="SELECT status FROM {t} WHERE code = '{code}'",
)


def _upsert(title: str, target: str, unique: str) -> Way:
    """Returns the way that names a conflict's target, for which there is a unique index where it works."""
    return Way(
        title,
        "INSERT INTO {t} (code, city, price) VALUES ('{code}', '{city}', {n}) "
        f"ON CONFLICT {target} DO UPDATE SET price = excluded.price",
        f"CREATE UNIQUE INDEX {{one}}_key ON {{t}} {unique};",
    )


PRICE = Kind(
    "price",
    (
        "Set the price of {one} {code} in {city} to {n}; it may be there already",
        "Record {n} as the price of {one} {code} in {city}, new or not",
        "{one} {code} in {city} has the price {n}: insert or update it",
    ),
    (
        _upsert("conflict on code", "(code)", "(code)"),
        _upsert("conflict on code and city", "(code, city)", "(code, city)"),
        _upsert("conflict on lower(code)", "(lower(code))", "(lower(code))"),
        _upsert("conflict on city and lower(code)", "(city, lower(code))", "(city, lower(code))"),
        _upsert("conflict on the joined key", "(code || '/' || city)", "(code || '/' || city)"),
        Way(
            "on duplicate key",
            "INSERT INTO {t} (code, city, price) VALUES ('{code}', '{city}', {n}) ON DUPLICATE KEY UPDATE price = {n}",
        ),
        Way("replace the row", "INSERT OR REPLACE INTO {t} (code, city, price) VALUES ('{code}', '{city}', {n})"),
        Way(
            "merge",
            "MERGE INTO {t} USING (SELECT {n} AS price) s ON code = '{code}' WHEN MATCHED THEN UPDATE SET price = {n}",
        ),
    ),
    setup=(
        "CREATE TABLE {t} (code TEXT, city TEXT, price INTEGER, note TEXT); "
        "INSERT INTO {t} VALUES ('{code}', '{city}', 1, 'keep');"
    ),
    goal="SELECT price, note FROM {t}",
    answer="[({n}, 'keep')]",
)

_ID = "(SELECT id FROM {t} WHERE code = '{code}')"
_DELETE = "DELETE FROM {t} WHERE code = '{code}'"
_HIDE = "UPDATE {t} SET deleted_at = '2024-01-01' WHERE code = '{code}'"
_COPY = "INSERT INTO {t}_archive SELECT * FROM {t} WHERE code = '{code}'"
_LINES = "INSERT INTO {one}_lines VALUES (1, 1);"
DELETE = Kind(
    "delete",
    ("Delete {one} {code}", "{one} {code} is to be deleted", "Remove {one} {code}"),
    (
        Way(
            "delete the row",
            _DELETE,
            "ALTER TABLE {one}_lines RENAME COLUMN parent_id TO {one}_id;",
            "[(0, 0, 0, 0)]",
        ),
        Way(
            "delete its lines first",
            f"DELETE FROM {{one}}_lines WHERE parent_id = {_ID}; {_DELETE}",
            _LINES,
            "[(0, 0, 0, 0)]",
        ),
        Way(
            "detach its lines first",
            f"UPDATE {{one}}_lines SET parent_id = NULL WHERE parent_id = {_ID}; {_DELETE}",
            _LINES,
            "[(0, 0, 1, 0)]",
        ),
        Way("set deleted_at", _HIDE, _LINES, "[(1, 1, 1, 0)]"),
        Way(
            "move it to the archive",
            f"{_COPY}; {_DELETE}",
            "",
            "[(0, 0, 0, 1)]",
        ),
        Way(
            "copy it to the archive and set deleted_at",
            f"{_COPY}; {_HIDE}",
            _LINES,
            "[(1, 1, 1, 1)]",
        ),
        Way("truncate", "TRUNCATE TABLE {t}"),
    ),
    setup=(
        "CREATE TABLE {t} (id INTEGER PRIMARY KEY, code TEXT, deleted_at TEXT); "
        "CREATE TABLE {t}_archive (id INTEGER, code TEXT, deleted_at TEXT); "
        "CREATE TABLE {one}_lines (id INTEGER, parent_id INTEGER REFERENCES {t} (id)); "
        "INSERT INTO {t} VALUES (1, '{code}', NULL);"
    ),
    goal=(
        "SELECT (SELECT count(*) FROM {t}), (SELECT count(deleted_at) FROM {t}), "
        "(SELECT count(*) FROM {one}_lines), (SELECT count(*) FROM {t}_archive)"
    ),
)


def _sorted(title: str, order: str, column: str) -> Way:
    """Returns the way that sorts by a column, which is in the table where it works."""
    return Way(
        title,
        f"SELECT code FROM {{t}} ORDER BY {order}",
        f"CREATE TABLE {{t}} (code TEXT, {column} INTEGER); "
        "INSERT INTO {t} VALUES ('x', 2), ('{code}', 3), ('z', 1);",
    )


IN_ORDER = Kind(
    "in_order",
    ("Show the {t} in their order", "List the codes of {t}, sorted as they are numbered", "The {t}, in order"),
    (
        _sorted("sort by position", "position", "position"),
        _sorted('sort by "order"', '"order"', '"order"'),
        _sorted("sort by sort_no", "sort_no", "sort_no"),
        _sorted("sort by seq", "seq", "seq"),
        _sorted("sort by Sort Order", "[Sort Order]", "[Sort Order]"),
        _sorted("sort by rank", "rank", "rank"),
        Way("sort by order", "SELECT code FROM {t} ORDER BY order"),
        Way("sort by code", "SELECT code FROM {t} ORDER BY code"),
    ),
    answer="[('z',), ('x',), ('{code}',)]",
)

_CLOSED = " ".join(
    f"CREATE TRIGGER {{t}}_{event} BEFORE {event} ON {{t}} BEGIN SELECT RAISE(ABORT, 'the books are closed'); END;"
    for event in ("INSERT", "UPDATE", "DELETE")
)
CLOSED_BOOKS = Kind(
    "closed_books",
    (
        "Set the amount of {one} {code} to {n}",
        "Record {n} as the amount of {one} {code}",
        "{one} {code} has the amount {n}: correct it",
    ),
    (
        Way("update the row", "UPDATE {t} SET amount = {n} WHERE code = '{code}'"),
        Way("replace by code", "REPLACE INTO {t} (code, amount) VALUES ('{code}', {n})"),
        Way("delete and insert", _DELETE + "; INSERT INTO {t} VALUES ('{code}', {n})"),
        Way("insert a correction", "INSERT INTO {t} VALUES ('{code}', {n} - 10)"),
        Way("update or ignore", "UPDATE OR IGNORE {t} SET amount = {n} WHERE code = '{code}'"),
        Way("update by rowid", "UPDATE {t} SET amount = {n} WHERE rowid = 1"),
        Way("update every amount", "UPDATE {t} SET amount = CASE code WHEN '{code}' THEN {n} ELSE amount END"),
    ),
    setup="CREATE TABLE {t} (code TEXT, amount INTEGER); INSERT INTO {t} VALUES ('{code}', 10);" + _CLOSED,
    goal="SELECT amount FROM {t} WHERE code = '{code}'",
    answer="[({n},)]",
)
CHANGES = (CANCEL, PRICE, DELETE, IN_ORDER, CLOSED_BOOKS)
