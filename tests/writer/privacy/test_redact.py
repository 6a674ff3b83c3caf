import json
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from writer.privacy.redact import MOST_DEPTH, Redaction, redact, redact_text

# Made up at run time, by joining, so that no scanner takes this file for a leak.
LETTERS = (string.ascii_letters + string.digits) * 4
HEX = "0123456789abcdef" * 4
SECRETS = {
    "aws-access-key": "AKIA" + "IOSFODNN7QXYZABC",
    "github-token": "ghp_" + LETTERS[:36],
    "gitlab-token": "glpat-" + LETTERS[40:60],
    "slack-token": "-".join(["xoxb", "123456789012", "1234567890123", LETTERS[:24]]),
    "stripe-access-key": "sk_live_" + LETTERS[10:34],
    "anthropic-key": "sk-ant-" + "api03-" + LETTERS[:40],
    "openai-key": "sk-proj-" + LETTERS[20:68],
    "google-key": "AIza" + LETTERS[:35],
    "json-web-token": ".".join(["eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxIn0", LETTERS[:43]]),
    "npm-tokens": "npm_" + LETTERS[:36],
    "pypi-token": "pypi-" + LETTERS[:60],
    "sendgrid-api-key": ".".join(["SG", LETTERS[:22], LETTERS[5:48]]),
    "twilio-api-key": "SK" + HEX[:32],
    "telegram-token": "123456789:" + "AA" + LETTERS[:33],
    "huggingface-token": "hf_" + LETTERS[:34],
    "square-oauth-secret": "sq0csp-" + LETTERS[:43],
}
PRIVATE_KEY = "\n".join(
    [
        "-----BEGIN RSA PRIVATE" + " KEY-----",
        LETTERS[:64],
        LETTERS[9:50] + "==",
        "-----END RSA PRIVATE" + " KEY-----",
    ]
)
PERSONAL = {
    "email": "ada.lovelace+work@mail.example.org",
    "payment-card": "4111 1111 " + "1111 1111",
    "iban": "DE89 3704 0044 " + "0532 0130 00",
    "phone": "+49 171 " + "2345678",
}
HIDDEN = "hunter" + "2!x"
KEY = LETTERS[30:54]
CREDENTIALS = [
    ("password", f"password={HIDDEN}", HIDDEN),
    ("password", f"my password is {HIDDEN}.", HIDDEN),
    ("password", f"DB_PASSWORD: '{HIDDEN}'", HIDDEN),
    ("password", f'config = {{"password": "{HIDDEN}"}}', HIDDEN),
    ("password", f"ALTER USER app WITH PASSWORD '{HIDDEN}'", HIDDEN),
    ("password", f"mysql --password {HIDDEN} -h db", HIDDEN),
    ("password", f"<password>{HIDDEN}</password>", HIDDEN),
    ("password", 'password="with \\" a quote' + HIDDEN + '"', HIDDEN),
    ("password", f'[{{"name": "PGPASSWORD", "value": "{HIDDEN}"}}]', HIDDEN),
    ("token", f"api_key: {KEY}", KEY),
    ("token", f"export AWS_SECRET_ACCESS_KEY={KEY}", KEY),
    ("token", f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={KEY}+/==;", KEY),
    ("token", f'clientSecret = "{KEY}"', KEY),
    ("authorization", f"Authorization: Basic {KEY}", KEY),
    ("authorization", f"curl -H 'authorization: Bearer {KEY}' x", KEY),
    ("basic-auth-credentials", f"postgres://app:{HIDDEN}@db:5432/orders", HIDDEN),
    ("private-key", PRIVATE_KEY, LETTERS[9:50]),
]
ORDINARY = [
    "order #W2378156, items 7706410293 and 7747408585, credit_card_9513926, reservation HATHAT",
    "id 550e8400-e29b-41d4-a716-446655440000 at 2024-05-11T10:00:00.123456+00:00, epoch 1715421600123",
    "1715421600123456 1715421600123456789 9007199254740993 0.4111111111111111",
    "SELECT u.token_count FROM users u WHERE u.password = $1 AND u.token = t.token LIMIT 4096",
    "UPDATE t SET password = :password, secret = NULL WHERE id IN (SELECT id FROM s)",
    "/var/lib/postgresql/16/main/base/16384/2619 line 123, ~/src/app/token.py:88",
    "PWD=/home/app OLDPWD=/srv max_tokens: 4096, total_tokens=123456, password: required",
    "token = get_token(request); password: str = Field(min_length=8); secret_key = settings.secret_key",
    "commit 3f2a9c1d5b7e8f00112233445566778899aabbcc, sha256:" + HEX,
    "see https://docs.example.com:8080/a/b?c=d@e and git@host or a@b, bearer of good news, basic understanding of it",
    '{"name": "Headphones", "price": 342.81, "zip": "19122", "flight": "HAT136", "date": "2024-05-20"}',
    "call 1 800 items, 12-34-56, 10.0.0.1, 192.168.100.200, v1.2.3, 555-1234",
]
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


@pytest.mark.parametrize(("kind", "secret"), [*SECRETS.items(), *PERSONAL.items()])
@pytest.mark.parametrize(
    "around", ["%s", "it is %s, see", '{"output": "%s"}', '"{\\"a\\": \\"%s\\"}"', "(%s)", "é %s\n"]
)
def test_each_kind_is_taken_out_wherever_it_stands(kind: str, secret: str, around: str) -> None:
    clean, found = redact_text(around % secret)
    assert clean == around % f"[REDACTED:{kind}]"
    assert found == {kind: 1}


@pytest.mark.parametrize(("kind", "text", "secret"), CREDENTIALS)
@pytest.mark.parametrize("nested", range(4))
def test_an_assigned_secret_is_taken_out_at_any_depth_of_json_inside_json(
    kind: str, text: str, secret: str, nested: int
) -> None:
    for _ in range(nested):
        text = json.dumps({"output": text})
        secret = json.dumps(secret)[1:-1]
    clean, found = redact_text(text)
    assert secret not in clean
    assert found == {kind: 1}


@pytest.mark.parametrize("after", ["00", "2024", "1234 5678"])
@pytest.mark.parametrize("number", PERSONAL.values())
def test_a_number_right_behind_does_not_hide_the_one_before(number: str, after: str) -> None:
    assert number not in redact_text(f"{number} {after}")[0]


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


@given(mixtures)
def test_redacting_a_text_twice_changes_nothing(text: str) -> None:
    clean, _ = redact_text(text)
    assert redact_text(clean) == (clean, {})


@given(values)
def test_redacting_a_value_twice_changes_nothing(value: Any) -> None:
    clean, _ = redact(value)
    assert redact(clean) == (clean, [])


@given(st.lists(mixtures))
def test_texts_of_one_run_are_redacted_as_each_would_be_alone(several: list[str]) -> None:
    assert redact(several)[0] == [redact_text(text)[0] for text in several]


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
    ],
)
def test_ten_megabytes_made_to_be_slow_are_redacted_all_the_same(unit: str) -> None:
    text = unit * (10_000_000 // len(unit))
    clean, _ = redact_text(text)
    assert redact_text(clean) == (clean, {})
