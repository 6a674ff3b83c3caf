"""An entry of knowledge: a secret that only its title or category tells of is taken out, and prose stays."""

import pytest

from writer.knowledge.entry import KnowledgeWritten

SECRET = "S3cretPw9x"


def text_of(text: str, title: str | None, category: str = "ops") -> str:
    return KnowledgeWritten.model_validate({"agent": "a", "category": category, "title": title, "text": text}).text


@pytest.mark.parametrize("title", ["Staging DB password", "Password:", "Password (staging)", "Password for staging"])
@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "`{}`",
        "{} (rotated monthly)",
        "\n\n{}, since May",
        "ada / {}",
        "```\n{}\n```",
        "Rotated monthly, ask Ada:\n\n- {}\n- then restart the pooler",
    ],
)
def test_a_secret_below_a_title_that_tells_of_it_is_taken_out(text: str, title: str):
    clean = text_of(text.format(SECRET), title)
    assert SECRET not in clean
    assert clean == text_of(clean, title)
    assert "[REDACTED:password]" in clean


def test_a_text_of_one_word_is_the_secret_whatever_word_it_is():
    assert text_of("sunshine", "Wifi password") == "[REDACTED:password]"
    assert text_of("4821", "Door PIN") == "[REDACTED:pin]"
    assert text_of(SECRET, "Staging", category="Passwords") == "[REDACTED:password]"
    assert text_of(SECRET, None, category="API keys") == "[REDACTED:token]"


@pytest.mark.parametrize(
    "title", ["How to reset a password", "Forgotten password", "Rotating an API key", "Lost token"]
)
@pytest.mark.parametrize(
    "text",
    [
        "Open the settings, click Reset and follow the mail.",
        "https://example.org/reset-2fa has the form; step-2 asks for the old one.",
        "- https://example.org/reset2\n- see reset_user2",
        "Steps:\n\n1. Open settings\n2. Run `reset_user2`\n\n```\ncasebank reset --user ada\n```\n",
        "It is rotated on 2024-05-01 by v2.1 of the tool.",
    ],
)
def test_prose_about_passwords_stays(text: str, title: str):
    assert text_of(text, title) == text
