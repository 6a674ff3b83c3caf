"""Secrets and personal data are taken out of texts and of JSON, however they are wrapped, and nothing else is."""

import json
import time
from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.writer.secrets_to_redact import CREDENTIALS, HIDDEN, ORDINARY, PERSONAL, SECRETS
from writer.privacy.objects import MOST_DEPTH, ValuePlace, walk
from writer.privacy.redact import Redaction, redact, redact_at, redact_text

texts = st.text(st.characters(exclude_categories=()))


GLUE = [
    "=",
    ": ",
    '"',
    "'",
    "\\",
    "\\u0040",
    "@",
    ".",
    "-",
    "--",
    "://",
    " ",
    "\n",
    "\0",
    "\ud800",
    "é",
    "a",
    "7",
    "+1",
]


WORDS = ["[REDACTED:email]", "password", "token"]


fragments = st.sampled_from(
    [*SECRETS.values(), *PERSONAL.values(), *(text for _, text, _ in CREDENTIALS), *WORDS, *GLUE]
)


mixtures = st.lists(fragments | texts, max_size=12).map("".join)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | mixtures,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(mixtures | st.just("password"), inner, max_size=4),
    max_leaves=12,
)


def test_json_escapes_do_not_hide_a_secret() -> None:
    assert redact_text(r'{"to": "ada\u0040example.org"}')[0] == '{"to": "[REDACTED:email]"}'
    assert HIDDEN not in redact_text(rf"postgres:\/\/app:{HIDDEN}\u0040db\/orders")[0]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_traces_are_left_as_they_are(text: str) -> None:
    assert redact_text(text) == (text, {})
    assert redact_text(json.dumps(text)) == (json.dumps(text), {})


def test_text_without_a_find_keeps_its_escapes() -> None:
    assert redact_text(r"a\/b \u0041")[0] == r"a\/b \u0041"


def test_a_value_under_a_telling_key_is_taken_out() -> None:
    headers = {"Authorization": ["Bearer x"], "Accept": "*/*"}
    given = {"password": "horse", "API-Key": "k", "db": {"user_password": 12345}, "headers": headers}
    assert redact(given) == (
        {
            "password": "[REDACTED:password]",
            "API-Key": "[REDACTED:token]",
            "db": {"user_password": "[REDACTED:password]"},
            "headers": {"Authorization": ["[REDACTED:authorization]"], "Accept": "*/*"},
        },
        [Redaction("authorization", 1), Redaction("password", 2), Redaction("token", 1)],
    )
    pair = [{"name": "DB_PASSWORD", "value": "horse"}]
    assert redact(pair)[0] == [{"name": "DB_PASSWORD", "value": "[REDACTED:password]"}]


@pytest.mark.parametrize(
    "key",
    ["API Key", "Secret Key", "Password:", "password ", "API key:", "*Password*", "Password (staging)", "LDAP_PASS:"],
)
def test_a_key_tells_of_a_secret_with_spaces_in_it_and_signs_around_it(key: str) -> None:
    kinds = "[REDACTED:password]", "[REDACTED:token]"
    assert redact({key: HIDDEN})[0][key] in kinds
    assert redact([{"name": key, "value": HIDDEN}])[0][0]["value"] in kinds
    assert redact({"PIN:": 4821})[0] == {"PIN:": "[REDACTED:pin]"}


def test_a_telling_key_with_no_secret_under_it_changes_nothing() -> None:
    value = {
        "password": "",
        "secret": None,
        "token": "${TOKEN}",
        "max_tokens": 5,
        "PWD": "/srv",
        "token_type": "bearer",
    }
    assert redact(value) == (value, [])


def test_keys_are_redacted_and_no_entry_is_lost() -> None:
    clean, found = redact({"ada@example.org": 1, "bob@example.org": 2, "[REDACTED:email]": 3})
    assert sorted(clean.values()) == [1, 2, 3]
    assert "example.org" not in json.dumps(clean)
    assert found == [Redaction("email", 2)]


def test_what_lies_too_deep_is_taken_out() -> None:
    value: Any = PERSONAL["email"]
    for _ in range(MOST_DEPTH + 50):
        value = [value]
    clean, found = redact(value)
    assert found == [Redaction("too-deep", 1)]
    assert redact(clean) == (clean, [])


def test_the_input_is_not_changed() -> None:
    value = {"to": [PERSONAL["email"]]}
    redact(value)
    assert value == {"to": [PERSONAL["email"]]}


@settings(deadline=None)  # the machine may be busy
@given(mixtures)
def test_redacting_a_text_twice_changes_nothing(text: str) -> None:
    clean, _ = redact_text(text)
    assert redact_text(clean) == (clean, {})


@settings(deadline=None)  # the machine may be busy
@given(values)
@example({"password": {"": "4111 1111 1111 1111ghp_abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"}})  # two marks in a row
@example({"password": {"": 'password="with \\" a quotehunter2!x"'}})  # what is left looks like a token
def test_redacting_a_value_twice_changes_nothing(value: Any) -> None:
    clean, _ = redact(value)
    assert redact(clean) == (clean, [])


@settings(deadline=None)  # the machine may be busy
@given(st.lists(mixtures))
def test_texts_of_one_run_are_redacted_as_each_would_be_alone(several: list[str]) -> None:
    assert redact(several)[0] == [redact_text(text)[0] for text in several]


keys = st.sampled_from(
    ["password", "phone", "number", "value", "name", "card", "ssn", "tokens", "find_user_id_by_name_zip"]
)


traces = st.recursive(
    mixtures
    | st.sampled_from(ORDINARY)
    | st.sampled_from([4111111111111111, 4915123456789, 123456789, 250, 0.5, None]),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(keys | mixtures, inner, max_size=5)
        | st.dictionaries(keys, inner, max_size=5).map(json.dumps)
    ),
    max_leaves=24,
)


@settings(deadline=None, max_examples=300)  # the machine may be busy
@given(traces)
@example(["sent to", "4111111111111111"])  # what stands before a number counts
@example({"label": "visa", "paid with": "4539578763621486"})  # the label tells of a card
@example([{"mail": "a@example.com"}, {"label": "visa", "paid with": 4539578763621486.0}])
def test_the_scan_of_all_strings_together_finds_what_a_scan_of_each_finds(value: Any) -> None:
    counts: Counter[str] = Counter()
    each = walk(value, ValuePlace(), counts, redact_at)
    assert redact(value) == (each, [Redaction(kind, count) for kind, count in sorted(counts.items())])


@settings(deadline=None)  # the machine may be busy
@given(texts, st.sampled_from([*SECRETS.values(), *PERSONAL.values()]), texts)
def test_a_secret_between_spaces_never_stays(before: str, secret: str, after: str) -> None:
    assert secret not in redact_text(f"{before} {secret} {after}")[0]


@pytest.mark.parametrize(
    "unit",
    [
        "a@b.co ",
        "token=",
        'token:\'" \\"',
        'password="',
        'token: \\"',
        "\\",
        "\\u0040",
        "4123456789012345 ",
        "+1 102 056 1111 ",
        "DE89 3704 0044 0532 0130 01 ",
        "x://a:b@",
        "-----BEGIN " + "PRIVATE KEY-----",
        "authorization: ",
        "--password",
        f"password is {'A.' * 30}!x ",
        f"(password) VALUES ({61 * chr(39)}x ",
        f"password{60 * ' '}:{3_900 * ' '}x\n",
    ],
)
def test_a_long_text_made_to_be_slow_is_redacted_all_the_same(unit: str) -> None:
    text = unit * (250_000 // len(unit))  # time that grows with the square would be an hour of it
    clean, _ = redact_text(text)
    assert redact_text(clean) == (clean, {})


def test_a_long_line_below_the_name_of_a_secret_is_cut_between_letters() -> None:
    assert redact_text(f"password:\n  - A12{'é' * 3_000}!")[0].startswith("password:\n  - [REDACTED:")


def test_names_that_come_in_every_run_are_searched_once() -> None:
    def seconds(names: list[str]) -> float:
        begin = time.process_time()
        assert redact(names)[1] == []
        return time.process_time() - begin

    warm, names = ([f"{word}_{a}{b}" for a in "abcdefghijklmnop" for b in "qrstuvwxyz"] for word in ("warm", "name"))
    seconds(warm)
    first = seconds(names)
    assert min(seconds(names) for _ in range(5)) < first / 2
