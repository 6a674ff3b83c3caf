"""Facts in German, Spanish and French: few forms, each certain."""

from datetime import date

import pytest

from writer.facts.extract import read

MONDAY = date(2026, 3, 2)


def told(text: str) -> list[tuple[str, str, str]]:
    return [(each.attribute, each.value, each.unit) for each in read(text, MONDAY) if not each.ends]


def ended(text: str) -> list[tuple[str, str]]:
    return [(each.attribute, each.value) for each in read(text, MONDAY) if each.ends]


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Ich heiße Anna und wohne in Köln.", [("name", "Anna", ""), ("home", "Köln", "")]),
        ("Hallo, mein Name ist Jörg Müller.", [("name", "Jörg Müller", "")]),
        ("Ich lebe in Frankfurt am Main.", [("home", "Frankfurt am Main", "")]),
        ("Ich wohne in Einbeck.", [("home", "Einbeck", "")]),
        ("Ich bin nach Hamburg gezogen.", [("home", "Hamburg", "")]),
        ("Ich arbeite bei Siemens.", [("employer", "Siemens", "")]),
        ("Ich arbeite als Lehrerin.", [("role", "Lehrerin", "")]),
        ("Ich liebe Sushi und hasse Koriander.", [("loves", "Sushi", ""), ("hates", "Koriander", "")]),
        ("Ich mag keinen Kaffee.", [("dislikes", "Kaffee", "")]),
        ("Ich bin Vegetarierin.", [("diet", "Vegetarierin", "")]),
        ("Meine Lieblingsfarbe ist Blau.", [("favourite farbe", "Blau", "")]),
        ("Ich möchte 5 kg abnehmen.", [("abnehmen", "5", "kg")]),
        ("Ich will 500 Euro im Monat sparen.", [("sparen", "500", "EUR")]),
        ("Mein Ziel ist es, Spanisch zu lernen.", [("spanisch zu lernen", "Spanisch zu lernen", "")]),
        ("Me llamo Lucía y vivo en Buenos Aires.", [("name", "Lucía", ""), ("home", "Buenos Aires", "")]),
        ("Vivo en Sevilla", [("home", "Sevilla", "")]),
        ("Vivo en La Paz.", [("home", "La Paz", "")]),
        ("Yo soy Ana.", [("name", "Ana", "")]),
        ("Trabajo en Casa Pepe.", [("employer", "Casa Pepe", "")]),
        ("Me mudé a Madrid.", [("home", "Madrid", "")]),
        ("Trabajo en Telefónica.", [("employer", "Telefónica", "")]),
        ("Trabajo en Madrid Digital.", [("employer", "Madrid Digital", "")]),
        ("Tengo 30 años.", [("age", "30", "")]),
        ("Trabajo como enfermera.", [("role", "enfermera", "")]),
        ("Me gusta el café.", [("likes", "café", "")]),
        ("Me encantan los perros", [("loves", "perros", "")]),
        ("No me gusta el café.", [("dislikes", "café", "")]),
        ("Soy vegetariano.", [("diet", "vegetariano", "")]),
        ("Mi color favorito es el azul.", [("favourite color", "azul", "")]),
        ("Quiero ahorrar 300 euros al mes.", [("ahorrar", "300", "EUR")]),
        ("Mi objetivo es correr un maratón.", [("correr un maratón", "correr un maratón", "")]),
        ("Je m'appelle Élodie et j'habite à Lyon.", [("name", "Élodie", ""), ("home", "Lyon", "")]),
        ("J\u2019habite à Aix-en-Provence.", [("home", "Aix-en-Provence", "")]),
        ("Je travaille chez Airbus.", [("employer", "Airbus", "")]),
        ("Je travaille comme infirmière.", [("role", "infirmière", "")]),
        ("J'aime le café.", [("likes", "café", "")]),
        ("J'adore le jazz !", [("loves", "jazz", "")]),
        ("Je n'aime pas le café.", [("dislikes", "café", "")]),
        ("Je suis végétarienne.", [("diet", "végétarienne", "")]),
        ("Ma couleur préférée est le bleu.", [("favourite couleur", "bleu", "")]),
        ("Je veux perdre 5 kg.", [("perdre", "5", "kg")]),
        ("Mon objectif est d'apprendre le piano.", [("apprendre le piano", "apprendre le piano", "")]),
    ],
)
def test_name_home_work_likes_and_goals_are_read(text: str, facts: list[tuple[str, str, str]]):
    assert told(text) == facts


@pytest.mark.parametrize(
    "text",
    [
        "Wohne ich in Köln?",
        "Wenn ich in Köln wohne, heiße ich Anna.",
        "Ich wohne nicht in Köln.",
        "Anna sagte, ich wohne in Köln.",
        "Liebe Grüße aus Köln",
        "Ich wohne in Miete.",
        "Ich lebe in Scheidung.",
        "Ich arbeite für Kunden.",
        "Ich arbeite für Geld.",
        "Ich arbeite bei Nacht.",
        "Ich liebe es.",
        "Ich mag, wie du das sagst.",
        "Trabajo en Madrid.",
        "Trabajo en México desde mayo.",
        "Tengo 5 años con la empresa.",
        "Ich will dir danken.",
        "Ich bin müde.",
        "Er wohnt in Köln.",
        "Bitte beantworte diese Mail:\n\nHallo,\nich heiße Pierre. Ich wohne in Paris.",
        "Übersetze den Brief\n\nIch wohne in Paris.",
        "Liebe Anna,\nich wohne in Paris.",
        "¿Vivo en Sevilla?",
        "Si vivo en Sevilla, me llamo Lucía.",
        "No vivo en Sevilla.",
        "Me gusta eso.",
        "Vivo en Paz.",
        "Yo soy Cliente.",
        "Yo soy Nuevo aquí.",
        "Trabajo en Casa.",
        "Trabajo en Remoto.",
        "Me gustaría el café.",
        "Ella vive en Sevilla.",
        "Soy feliz.",
        "Quiero ver el mapa.",
        "Traduce la carta\n\nMe llamo Pierre.",
        "Est-ce que j'habite à Lyon ?",
        "Si j'habite à Lyon, je m'appelle Élodie.",
        "Je n'habite pas à Lyon.",
        "J'aime ça.",
        "J'habite à Côté.",
        "J'aimerais le café.",
        "Il habite à Lyon.",
        "Je viens de manger.",
        "Je suis fatigué.",
        "Traduis cette lettre\n\nJe m'appelle Pierre.",
    ],
)
def test_questions_conditions_reports_and_pasted_texts_are_no_facts(text: str):
    assert told(text) == []


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("Ich wohne nicht mehr in Köln.", ("home", "Köln")),
        ("Ich mag keinen Kaffee mehr.", ("likes", "Kaffee")),
        ("Ya no vivo en Sevilla.", ("home", "Sevilla")),
        ("Ya no me gusta el café.", ("likes", "café")),
        ("Je n'habite plus à Lyon.", ("home", "Lyon")),
        ("Je n'aime plus le café.", ("likes", "café")),
    ],
)
def test_what_is_no_longer_so_ends_a_fact(text: str, ends: tuple[str, str]):
    assert ended(text) == [ends]
    assert told(text) == []
