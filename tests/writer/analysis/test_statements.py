"""The tokens of SQL and of command lines: what is shown of them, also where they are broken."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from writer.analysis.statements import STATEMENT_CHARS, Language, language_of, tokens, words


def shown(text: str) -> str:
    language = language_of(text)
    assert language is not None
    return " ".join(token.shown for token in tokens(text, language))


@pytest.mark.parametrize(
    ("statement", "form"),
    [
        ("ALTER TABLE users ADD COLUMN last_name text;", "ALTER TABLE <identifier> ADD COLUMN <identifier> text ;"),
        (
            "SELECT u.id, count(*) FROM users u WHERE u.total >= 12.5",
            "SELECT <identifier> , count ( * ) FROM <identifier> <identifier> WHERE <identifier> >= <number>",
        ),
        (
            "INSERT INTO t (a) VALUES ('it''s', 5)",
            "INSERT INTO <identifier> ( <identifier> ) VALUES ( <string> , <number> )",
        ),
        ("SELECT E'it\\'s not all' FROM t", "SELECT <string> FROM <identifier>"),
        (
            "UPDATE t SET a = E'\\\\' WHERE b = 'x'",
            "UPDATE <identifier> SET <identifier> = <string> WHERE <identifier> = <string>",
        ),
        ("SELECT $$it's all for the user$$ FROM t", "SELECT <string> FROM <identifier>"),
        ("CREATE FUNCTION f() AS $fn$ BEGIN x := 'a'; END $fn$", "CREATE FUNCTION <identifier> ( ) AS <string>"),
        ("SELECT 1 -- don't show secret\nFROM t", "SELECT <number> FROM <identifier>"),
        ("SELECT /* it's secret */ a FROM t", "SELECT <identifier> FROM <identifier>"),
        ("-- add it\nALTER TABLE t DROP COLUMN c", "ALTER TABLE <identifier> DROP COLUMN <identifier>"),
        ("/* first */ SELECT a FROM t", "SELECT <identifier> FROM <identifier>"),
        ('SELECT "Mixed Case" FROM "select"', "SELECT <identifier> FROM <identifier>"),
        ('SELECT "a ""b"" c" FROM t', "SELECT <identifier> FROM <identifier>"),
        ('SELECT public."Users".id FROM s.t', "SELECT <identifier> FROM <identifier>"),
        ("SELECT a-b FROM t", "SELECT <identifier> - <identifier> FROM <identifier>"),
        ("SELECT a::text, b->>'k' FROM t", "SELECT <identifier> :: text , <identifier> ->> <string> FROM <identifier>"),
        (
            "SELECT U&'d\\0061t', B'101', x'1F', N'a' FROM t",
            "SELECT <string> , <string> , <string> , <string> FROM <identifier>",
        ),
        ("SELECT .5, 1e10, 0x1F FROM t", "SELECT <number> , <number> , <number> FROM <identifier>"),
        ('INSERT INTO t VALUES (\'{"a": "b"}\'::jsonb)', "INSERT INTO <identifier> VALUES ( <string> :: jsonb )"),
        ("SELECT t.* FROM t", "SELECT <identifier> * FROM <identifier>"),
        ("SELECT '' FROM t", "SELECT <string> FROM <identifier>"),
        ("SELECT 'a\nb' FROM t", "SELECT <string> FROM <identifier>"),
        ("SELECT `a b` FROM t", "SELECT <identifier> FROM <identifier>"),
        ("SELECT größe FROM straße", "SELECT <identifier> FROM <identifier>"),
        ("EXPLAIN ANALYZE SELECT a FROM t", "EXPLAIN ANALYZE SELECT <identifier> FROM <identifier>"),
        ("GRANT SELECT ON t TO bob", "GRANT SELECT ON <identifier> TO <identifier>"),
        ("TRUNCATE t CASCADE", "TRUNCATE <identifier> CASCADE"),
        (
            "SELECT a FROM t ORDER BY a NULLS LAST",
            "SELECT <identifier> FROM <identifier> ORDER BY <identifier> NULLS <identifier>",
        ),
        ("WITH x AS (SELECT 1) SELECT * FROM x", "WITH <identifier> AS ( SELECT <number> ) SELECT * FROM <identifier>"),
        (
            "UPDATE t SET a = $1 WHERE b = $2",
            "UPDATE <identifier> SET <identifier> = $ <number> WHERE <identifier> = $ <number>",
        ),
        (
            "SELECT a FROM t WHERE b = 'open",
            "SELECT <identifier> FROM <identifier> WHERE <identifier> = ' <identifier>",
        ),
        ('SELECT "a FROM t WHERE b = 1', 'SELECT " <identifier> FROM <identifier> WHERE <identifier> = <number>'),
        ("INSERT INTO t VALUES ('it's', 5)", "INSERT INTO <identifier> VALUES ( <string> <identifier> ' , <number> )"),
        ("SELECT a /* open and secret", "SELECT <identifier>"),
        ("CREATE FUNCTION f() AS $$ BEGIN open", "CREATE FUNCTION <identifier> ( ) AS <string>"),
        ("SELECT a FROM t WHERE (b = 1", "SELECT <identifier> FROM <identifier> WHERE ( <identifier> = <number>"),
        ("ALTER TABLE t ADD COLUMN 2x text", "ALTER TABLE <identifier> ADD COLUMN <number> text"),
    ],
)
def test_of_sql_the_languages_words_are_shown_and_types_for_the_rest(statement: str, form: str):
    assert language_of(statement) == "sql"
    assert shown(statement) == form


@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("git push origin main", "git push origin main"),
        (
            "psql -c \"select 'a b' from t\" | grep -v 'x y' > /tmp/out",
            'psql -c "select <string> from <identifier>" | grep -v <string> > /tmp/out',
        ),
        ('echo "she said \\"all of it\\" to test" done', "echo <string> <word>"),
        ("curl -d '{\"a\": \"it'\\''s\"}' https://x.y/z", "curl -d <string> <url>"),
        ('curl -d "{\\"user\\": \\"cat\\"}" https://x.y/z#top', "curl -d <string> <url>"),
        ("grep 'cat' notes.txt", "grep <string> <path>.txt"),
        ("ls -la /etc && wc -l x", "ls -la /etc && wc -l <word>"),
        ("ls # then test the cat\npwd x", "ls ; pwd <word>"),
        ("cat <<EOF > out.txt\nthe test's end\nrm all\nEOF\nls -l", "cat << EOF > out.txt <string> ; ls -l"),
        ("python - <<'EOF'\nprint('a')\nEOF", "python - << 'EOF' <string>"),
        ("cat <<EOF\nopen", "cat << EOF <string>"),
        ("export TOKEN=abc", "export TOKEN=<secret>"),
        ("git log --max-count=3 --author='Jo X'", "git log --max-count=3 --author=<string>"),
        ("docker run -psecret image", "docker run <word> <word>"),
        ("cd /a/b; ls ..", "cd /<path> ; ls .."),
        ("make test 2>&1 | tail -n 5", "make test 2>&1 | tail -n 5"),
        ("ls 2>/dev/null", "ls 2> /dev/null"),
        ("find . -name '*.py' -exec rm {} \\;", "find . -name '*.py' -exec rm {} \\;"),
        ("echo $'it\\'s' x", "echo <string> <word>"),
        ("pip install \\\n  numpy", "pip install numpy"),
        ("echo it\\'s fine", "echo <string> <word>"),
        ("echo 'open and all", "echo ' <word> <word> all"),
        ('echo "open and all', 'echo " <word> <word> all'),
        ("sudo apt install foo", "sudo apt install foo"),
        ("cat a.txt|sort|head -3", "cat <path>.txt | sort | head -3"),
        ("grep -c '' a", "grep -c <string> <word>"),
        ("mysql -psecret", "mysql <word>"),
        ("mysql --password hunter2 -u jo", "mysql --password <secret> -u <word>"),
        ("API_KEY=hunter2 ./run.sh", "API_KEY=<secret> ./run.sh"),
        (".venv/bin/python -m pytest -q", ".venv/bin/python -m pytest -q"),
        ("PYTHONPATH=src python -m acme.sync --dry-run", "PYTHONPATH=src python -m <module> --dry-run"),
        ("ssh jo@db7.corp.example 'uptime'", "ssh <host> <string>"),
        ("scp a.txt jo@10.0.0.7:/srv/x", "scp <path>.txt <host>:<path>"),
        ("gunzip < songs.pack | tar -xf -", "gunzip < <path> | tar -xf -"),
        ("mv model.onnx web.acme.example", "mv <path> <host>"),
        ("curl -s http://localhost:8000/v1/x", "curl -s http://localhost:8000/<path>"),
        ("git checkout -b fix/4711-jo", "git checkout -b <branch>"),
        ("git show 3f2a9c41d0be", "git show <id>"),
        ("docker logs 3f2a9c41d0be --tail 20", "docker logs <id> --tail 20"),
        ("npm install --save-dev @types/node@20", "npm install --save-dev @types/node@20"),
        ("sed -i 's|/usr/jo|/opt|g' conf.ini", "sed -i 's|/<word>/<word>|/<word>|g' conf.ini"),
        ("tar -xzvf jo.tar.gz -C out", "tar -xzvf <path>.tar.gz -C out"),
        ("kubectl get pods -n acme", "kubectl get pods -n <word>"),
        ("chmod +x deploy.sh", "chmod +x deploy.sh"),
        (
            "mvn test -Dtest=Foo#bar -DskipTests -Dmaven.compiler.source=17",
            "mvn test -Dtest=<word> -DskipTests -Dmaven.compiler.source=17",
        ),
        (
            "./gradlew build -x checkstyleMain -PjavaVersion=17 -PsigningPassword=x1",
            "./gradlew build -x checkstyleMain -PjavaVersion=17 -PsigningPassword=<secret>",
        ),
        (
            "git -c user.name=jo -c http.proxyAuthToken=x1 commit -m 'a b'",
            "git -c user.name=<word> -c http.proxyAuthToken=<secret> commit -m <string>",
        ),
        ("MAVEN_OPTS=-Xmx2g mvn test", "MAVEN_OPTS=-Xmx2g mvn test"),
        ("docker pull shop:3.12-slim", "docker pull shop:3.12-slim"),
        ("docker pull registry.acme.org/shop:3.12", "docker pull <path>"),
        ("ssh -p 2222 jo@build.acme.org", "ssh -p 2222 <host>"),
        ("./mvnw verify", "./mvnw verify"),
        ("git config --global --add safe.directory /srv/jo", "git config --global --add safe.directory /<path>"),
        ("npm config set registry.authToken x1y2", "npm config set <word> <word>"),
        ("NODE_OPTIONS=--openssl-legacy-provider npm test", "NODE_OPTIONS=--openssl-legacy-provider npm test"),
        ("docker run -p 8080:80 nginx", "docker run -p 8080:80 <word>"),
        ("bash /home/jo/acme/run.sh now", "bash /home/<path>/run.sh <word>"),
    ],
)
def test_of_a_command_line_programs_flags_packages_and_common_names_are_shown(line: str, form: str):
    assert language_of(line) == "shell"
    assert shown(line) == form


@pytest.mark.parametrize("text", ["", " ", "SELECT", "ls", "A=yes\nB=no", "SELEC a FROM t", "-- SELECT a", "the sea"])
def test_a_text_that_leads_with_no_verb_or_has_one_word_is_no_statement(text: str):
    assert language_of(text) is None


def test_of_broken_sql_all_that_is_not_in_quotes_is_read():
    fixed = tokens("SELECT a FROM t WHERE name = 'Ada' ORDER BY b", "sql")
    broken = tokens("SELECT a FROM t WHERE name = 'Ada ORDER BY b", "sql")
    assert [token for token in fixed if token.shown != "<string>"] == [
        token for token in broken if token.text not in {"'", "Ada"}
    ]


def test_a_long_string_is_one_token():
    body = "all the words of a long letter, it''s not short " * 200
    statement = f"INSERT INTO letters VALUES ('{body}', 5)"  # noqa: S608 - no database reads it
    assert shown(statement) == "INSERT INTO <identifier> VALUES ( <string> , <number> )"
    assert shown(f"cat <<EOF > out\n{body}\nEOF") == "cat << EOF > out <string>"


def test_words_are_those_of_any_language():
    assert words('Find O\'Neill, "red one" 42') == ["Find", "O", "'", "Neill", ",", '"red one"', "42"]


# Each piece, whatever stands beside it

SQL_PIECES = {
    "'a'": "<string>", "'it''s -- all'": "<string>", "E'\\'all'": "<string>", "$$all ' \" --$$": "<string>",
    "$q$ $$ all /* $q$": "<string>", "U&'x'": "<string>", '"a "" all"': "<identifier>", "`a b`": "<identifier>",
    'a."B".c': "<identifier>", "naïve": "<identifier>", "x1": "<identifier>", "12.5": "<number>", ".5": "<number>",
    "1e5": "<number>", "-- it's \" all $$\n": "", "/* it's \" $$ -- all */": "", "/**/": "", "SELECT": "SELECT",
    "group": "group", "::": "::", "->>": "->>", ">=": ">=", "*": "*", "(": "(", ",": ",", "%": "%", ";": ";",
}  # fmt: skip
SHELL_PIECES = {
    "'a \" b'": "<string>", '"a \\" \' b"': "<string>", "'it'\\''s'": "<string>", "$'it\\'s'": "<string>",
    "-psecret": "<word>", "word": "<word>", "a\\ b": "<word>", "/etc/x": "/etc/<path>", "~/x": "<path>",
    "https://x.y/z#top": "<url>", "42": "42", "123456": "<number>",
    "| ls": "| ls", "&& ls": "&& ls", ">": ">", "2>&1": "2>&1", "; ls": "; ls",
    "# it's \" all\nls": "; ls", "\\\n": "", "x#y": "<word>", "*": "*", "..": "..",
}  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(pieces=st.lists(st.sampled_from(sorted(SQL_PIECES)), max_size=20))
def test_pieces_of_sql_are_told_apart_in_any_order(pieces: list[str]):
    expected = [SQL_PIECES[piece] for piece in pieces if SQL_PIECES[piece]]
    assert [token.shown for token in tokens(" ".join(pieces), "sql")] == expected


@settings(max_examples=300, deadline=None)
@given(pieces=st.lists(st.sampled_from(sorted(SHELL_PIECES)), max_size=20))
def test_pieces_of_command_lines_are_told_apart_in_any_order(pieces: list[str]):
    expected = ["ls", *(SHELL_PIECES[piece] for piece in pieces if SHELL_PIECES[piece])]
    assert " ".join(token.shown for token in tokens(" ".join(["ls", *pieces]), "shell")) == " ".join(expected)


# Bad input

PARTS = [
    "'",
    '"',
    "`",
    "$",
    "$a$",
    "-",
    "/*",
    "*/",
    "(",
    "\\",
    "e'\\",
    "''",
    "<<a\n",
    "<<'a' ",
    "#",
    "a.",
    "a=",
    "1e",
    "é",
    " ",
    "\n",
]


@settings(max_examples=300, deadline=None)
@given(text=st.text(max_size=200) | st.lists(st.sampled_from(PARTS), max_size=60).map("".join))
def test_no_text_is_refused_and_no_token_is_made_up(text: str):
    for language in ("sql", "shell"):
        start = 0
        for token in tokens(text, language):
            start = text.index(token.text, start) + len(token.text)
            assert token.shown
    language_of(text)


@pytest.mark.parametrize("first", PARTS)
@pytest.mark.parametrize("language", ["sql", "shell"])
def test_tokens_of_long_hostile_texts_take_a_moment(first: str, language: Language):
    for second in ("", *PARTS):
        text = (first + second) * 40_000
        started = time.process_time()
        found = tokens(text[:40_000], language)
        assert time.process_time() - started < 2
        assert sum(len(token.text) for token in found) <= STATEMENT_CHARS
