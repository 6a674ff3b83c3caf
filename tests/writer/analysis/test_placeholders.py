"""Placeholders in place of concrete values: in prose, and in a call's arguments."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from writer.analysis.placeholders import abstract, clean, form, form_of, kind_of, values_of, without_placeholders


def test_abstract_text_has_placeholders_for_values():
    said = (
        'Refund order #W123 (49.90) of jo@x.org, "the red one", by 2024-05-01, see https://x.y/z and /etc/hosts user_id'
    )
    assert abstract(said) == (
        "Refund order <id> (<number>) of <email>, <string>, by <date>, see <url> and <path> <identifier>"
    )
    assert abstract("rename Users now", {"users"}) == "rename <identifier> now"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Book it for 3 May and June 3rd, 2026", "Book it for <date> and <date>"),
        ("Report of the 3rd of June, of Sept. 2026", "Report of the <date>, of <date>"),
        ("Buche am 12. März um 8", "Buche am <date> um <number>"),
        ("le 1er août, el 3 de mayo de 2026", "le <date>, el <date>"),
        ("You may 5 times march 3 miles", "You may <number> times march <number> miles"),
    ],
)
def test_a_date_by_the_name_of_its_month_is_a_date(said: str, shown: str):
    assert abstract(said, is_task=True) == shown


def test_the_form_of_arguments_has_types_for_values():
    given = {
        "id": "#W1",
        "n": 3,
        "mail": "a@b.co",
        "list": [1, 2],
        "flag": True,
        "what": "some free text",
        "o": {"a": 1},
    }
    assert form(given) == (
        "id=<id>, n=<number>, mail=<email>, list=<list of 2>, flag=<boolean>, what=<text>, o=<object>"
    )


def test_a_statement_among_the_arguments_has_its_form():
    given = {"q": "SELECT a FROM t -- it's all\nWHERE b = $$x$$", "n": 1}
    assert form(given) == "q=`SELECT <identifier> FROM <identifier> WHERE <identifier> = <string>`, n=<number>"
    assert form_of("cat <<EOF\nthe secret\nEOF") == "`cat << EOF <string>`"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("sort -t: -k2,2nr maps.list", "sort -t: -k2,2nr <path>"),
        ("cut -d';' -f2- clients", "cut -d';' -f2- <word>"),
        ("sort -t$'\\t' -k1.2,1 -o clients list", "sort -t$'\\t' -k1.2,1 -o <word> <word>"),
        ("awk -F '|' '{print $2}' clients", "awk -F '|' <string> <word>"),
        ("tail -n+2 clients | paste -sd+ | xargs -P8 -n1 echo", "tail -n+2 <word> | paste -sd+ | xargs -P8 -n1 echo"),
        ("mysql -p'!?' -u7secret", "mysql <word> <word>"),
        ("sort -khunter2", "sort <word>"),
    ],
)
def test_separators_and_numbers_of_fields_are_told_and_other_values_at_flags_are_not(line: str, told: str):
    assert form_of(line) == f"`{told}`"


def test_only_the_first_arguments_are_told():
    assert form({str(n): n for n in range(9)}).endswith("7=<number>, …")
    assert form({}) == form(None) == "no arguments"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "<boolean>"), (1, "<number>"), (None, "<null>"), ([1], "<list of 1>"), ({}, "<object>"),
        (" ", "<empty text>"), ("5", "<number as text>"), ("a@b.co", "<email>"), ("https://x.y", "<url>"),
        ("2024-05-01", "<date>"), ("/etc", "<path>"), ("#W1", "<id>"), ("red", "<word>"), ("a b", "<text>"),
        ("x" * 1_000, "<text>"),
    ],
)  # fmt: skip
def test_a_value_has_the_placeholder_of_its_type(value: object, kind: str):
    assert kind_of(value) == kind


@pytest.mark.parametrize(
    ("task", "shown"),
    [
        ("Send Anna the report", "Send <name> the report"), ("Email Bob Smith", "Email <name>"),
        ("Cancel Anna's order", "Cancel <name>'s order"), ("Ask Tom and Jerry", "Ask <name> and <name>"),
        ("Setze das Passwort von Petra Schmidt zurück", "Setze das Passwort von <name> zurück"),
        ("Überweise Hans Maier die Miete", "Überweise <name> die Miete"),
        ("use One or Two or Three", "use One or Two or Three"),
    ],
)  # fmt: skip
def test_a_short_task_keeps_no_names(task: str, shown: str):
    assert abstract(task, is_task=True) == shown


def test_the_words_of_a_short_error_tell_it_from_others():
    assert abstract("Fehler: keine Berechtigung") != abstract("Fehler: keine Verbindung")


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"q": "ALTER TABLE users ADD COLUMN last_name text"}, {"users", "last_name"}),
        ({"q": "SELECT u.mail FROM public.orders u"}, {"mail", "public", "orders"}),
        ({"q": 'SELECT "Total" FROM "Orders"'}, {"Total", "Orders"}),
        ({"q": "SELECT abc FROM tab -- the user wants all orders\n"}, {"abc", "tab"}),
        ({"q": "SELECT $$the user wants$$, E'it\\'s the user' FROM tab"}, {"tab"}),
        ({"q": "git push origin topic"}, {"topic"}),
        ({"q": "cat <<EOF > totals\nthe user wants\nEOF"}, {"totals"}),
        ({"what": "the sea"}, set()),
        ({"what": "Berlin"}, {"Berlin"}),
        ("a text of four words", set()),
        (None, set()),
    ],
)
def test_the_names_in_a_call_are_those_of_its_statements_and_short_texts(given: object, names: set[str]):
    assert values_of(given) == names


def test_words_of_a_comment_stay_words_in_the_task():
    known = values_of({"q": "UPDATE users SET city = 'Ulm' -- change the city of the customer\n"})
    assert abstract("Change the address of the customer", known) == "Change the address of the customer"


def test_words_of_a_long_string_are_no_names():
    letter = "please change the address of the customer " * 50
    assert values_of({"q": f"INSERT INTO letters VALUES ('{letter}')"}) == {"letters"}  # noqa: S608 - for no database


def test_the_words_around_placeholders_are_what_is_embedded():
    assert without_placeholders("Refund <id> of <list of 2> to <email>") == "Refund of to"
    assert without_placeholders("<id>") == "<id>"


def test_clean_text_is_one_printable_line_of_bounded_length():
    assert clean("a\n b\x00c\ud800", 20) == "a b c?"
    assert clean("x" * 30, 10) == "x" * 9 + "…"


texts = st.text(max_size=200) | st.text(alphabet="'\"`$-/*\\#<>E=ae1\n .", max_size=200)


@settings(max_examples=300, deadline=None)
@given(text=texts, verb=st.sampled_from(["", "select ", "cat "]))
def test_any_text_has_placeholders_in_one_line(text: str, verb: str):
    for said in (abstract(verb + text), form_of(verb + text), form({text: verb + text})):
        assert said.isprintable()
        said.encode()
    assert all(name.isidentifier() for name in values_of(verb + text))


@pytest.mark.parametrize("part", ["'", '"', "$a", "/*", "(", "a ", "1", "<<a\n", "a@", "/a", "_a", "“"])
def test_long_texts_take_a_moment(part: str):
    for text in (part * 40_000, f"SELECT {part * 40_000}", f"cat {part * 40_000}"):
        started = time.process_time()
        assert len(abstract(text)) + len(form({"q": text})) < 5_000
        values_of({"q": text})
        assert time.process_time() - started < 2
