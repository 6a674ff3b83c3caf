"""What is found of generated secrets, and what is left of texts that hold none: the aims, family by family."""

import random
from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from bench.secrets.everyday import FORMS, disguised, everyday
from bench.secrets.harmless import harmless
from bench.secrets.main import is_gone, is_out_of_disguise
from bench.secrets.tokens import TOKENS, assigned, bare
from writer.privacy import engine
from writer.privacy.redact import redact, redact_text
from writer.privacy.rules import LONG_BYTES

SEED = 20
Made = Callable[[random.Random, int], Iterable[tuple[str, str, str]]]
with_engine = pytest.mark.skipif(engine.name() != "betterleaks", reason="the engine has no wheel for this platform")


@with_engine
@pytest.mark.parametrize(("made", "least"), [(bare, 0.97), (assigned, 0.97), (everyday, 0.9)])
def test_so_many_of_the_secrets_are_taken_out(made: Made, least: float) -> None:
    items = list(made(random.Random(SEED), 1))
    missed = [(family, text) for family, text, secret in items if not is_gone(secret, redact_text(text)[0])]
    assert len(missed) <= (1 - least) * len(items), missed


def test_in_a_long_text_the_same_is_found() -> None:
    prose = "and then the tide went out. " * (LONG_BYTES // 50)
    items = list(everyday(random.Random(SEED), 1))[::9]
    short = [redact_text(text)[0] for _, text, _ in items]
    long = [redact_text(f"{prose}\n{text}\n{prose}")[0].removeprefix(prose).removesuffix(prose) for _, text, _ in items]
    assert [text[1:-1] for text in long] == short


def test_tokens_of_more_than_sixty_providers_and_thirty_everyday_forms_are_tried() -> None:
    assert len(TOKENS) >= 60
    assert sum(map(len, FORMS.values())) >= 150


def test_a_token_in_disguise_is_taken_out() -> None:
    items = list(disguised(random.Random(SEED), 4))
    missed = [name for name, text, hidden in items if not is_out_of_disguise(hidden, redact_text(text)[0])]
    assert len(missed) <= 0.1 * len(items), missed


def test_of_texts_that_look_like_secrets_and_are_none_not_one_in_twenty_is_touched() -> None:
    items = list(harmless(random.Random(SEED), 20))
    touched = [(family, text) for family, text in items if redact_text(text)[0] != text]
    assert len(touched) <= 0.05 * len(items), touched
    assert max(Counter(family for family, _ in touched).values(), default=0) <= 2


@pytest.mark.parametrize("comment", ["# gitleaks:allow", "// betterleaks:allow"])
def test_no_comment_makes_the_engine_look_away(comment: str) -> None:
    assert redact_text(f"token: tfp_{'aB3dE5gH7jK' * 4} {comment}")[1]
    assert (
        list(engine.finds(f"ghp_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5 {comment}".encode())) or engine.name() == "rules"
    )


@with_engine
@pytest.mark.parametrize("around", ["\0{}", "é{}é", "\ud800 {}", "[{}, 1]", "{}&x=1"])
def test_what_stands_around_a_token_does_not_hide_it_from_the_engine(around: str) -> None:
    token = "ghp_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
    data = around.format(token).encode("utf-8", "surrogatepass")
    assert [data[start:end] for start, end, _ in engine.finds(data)] == [token.encode()]


def test_after_too_many_tokens_of_the_engine_the_rest_of_a_text_is_cut() -> None:
    token = "ghp_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5 "
    data = token.encode() * 20_000
    finds = list(engine.finds(data))
    assert engine.name() == "rules" or finds[-1][1:] == (len(data), "unread")
    assert len(finds) < 3 * engine.MOST_FINDS


def test_lists_and_tables_keep_their_shape() -> None:
    assert redact({"passwords": ["Tiger2024!", "horse"], "tokens": ["the", "cat"]})[0] == {
        "passwords": ["[REDACTED:password]", "[REDACTED:password]"],
        "tokens": ["the", "cat"],
    }
    assert redact_text("id,login,password\n1,ada,Tiger2024!\n2,bob,falcon77\n")[0] == (
        "id,login,password\n1,ada,[REDACTED:token]\n2,bob,[REDACTED:token]\n"
    )


@pytest.mark.parametrize("text", ["ŞİFRE: Gizli123", "Пароль — Gizli123", "пароль \u2013 Gizli123"])
def test_a_password_is_found_under_a_name_in_turkish_capitals_and_behind_a_russian_dash(text: str) -> None:
    assert "Gizli" not in redact_text(text)[0]
    assert redact({"ŞİFRE": "Gizli123"})[0] == {"ŞİFRE": "[REDACTED:password]"}


@pytest.mark.parametrize(
    "text",
    [
        "salasana: Tiger2024!",
        "salasanani on Tiger2024!",
        "mật khẩu: Tiger2024!",
        "Mật khẩu của tôi là Tiger2024!",
        "הסיסמה שלי היא Tiger2024!",
        "סיסמא: Tiger2024!",
        "κωδικός μου είναι Tiger2024!",
        "ΚΩΔΙΚΟΣ ΠΡΟΣΒΑΣΗΣ: Tiger2024!",
    ],
)
def test_a_password_is_found_under_a_finnish_vietnamese_hebrew_or_greek_name(text: str) -> None:
    clean, found = redact_text(text)
    assert (clean.partition("[")[0], found) == (text.partition("Tiger")[0], {"password": 1})


@pytest.mark.parametrize("name", ["salasana", "mật khẩu", "סיסמה", "κωδικός πρόσβασης"])
def test_a_field_of_such_a_name_holds_a_password(name: str) -> None:
    assert redact({name: "kissa77x"})[0] == {name: "[REDACTED:password]"}


def test_a_greek_word_for_codes_alone_is_no_name_of_a_password() -> None:
    text = "κωδικός προϊόντος: AB12345, κωδικός παραγγελίας: 4711AX"
    assert redact_text(text)[0] == text


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("pay de89370400440532013000 today", "pay [REDACTED:iban] today"),
        ("de89 3704 0044 0532 0130 00 from your bank", "[REDACTED:iban] from your bank"),
        ("gb29 nwbk 6016 1331 9268 19", "[REDACTED:iban]"),
        ("nl91abna0417164300", "[REDACTED:iban]"),
        ("id de89370400440532013001", "id de89370400440532013001"),
    ],
)
def test_an_iban_in_small_letters_is_taken_out_if_its_check_digits_are_right(text: str, clean: str) -> None:
    assert redact_text(text)[0] == clean


@pytest.mark.parametrize("text", ["ssn 123-45-6789", "my social security number is 123 45 6789", '"ssn": "123456789"'])
def test_a_social_security_number_is_personal_data(text: str) -> None:
    clean, found = redact_text(text)
    assert "6789" not in clean
    assert sum(found.values()) == 1


def test_the_password_of_a_command_is_taken_out_and_the_command_stays() -> None:
    assert redact_text("run mysql -u root -psecret123 shop")[0] == "run mysql -u root -p[REDACTED:password] shop"
