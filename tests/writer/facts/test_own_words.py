"""A text that a user pastes into a turn says nothing of the user; what the user says beside it does."""

import time
from datetime import date

import pytest

from tests.writer.facts.stated import stated
from writer.facts.own_words import MOST_READ, own_words

MONDAY = date(2026, 3, 2)
PIERRE = "my name is Pierre. I live in Paris."
PASTED = {
    "mail": f"Please answer this mail:\n\nHi,\n{PIERRE}\nRegards\nPierre",
    "letter": "Can you proofread the letter below?\n\nDear Sir or Madam,\n\nMy name is Pierre.\nI work for Acme.",
    "letter alone": f"Dear Ms. Weber,\n\n{PIERRE} I'm allergic to nuts.\n\nYours sincerely,\nPierre",
    "CV": "Improve this CV\n\nPierre Dupont\nI'm a software engineer.\nI live in Paris.\nI speak French.",
    "CV of three dashes": f"Make this shorter\n---\nI'm a nurse. {PIERRE}\n---",
    "ticket": f"Summarise the ticket.\n\nTicket 4711, opened by Pierre\n{PIERRE} I love hiking.",
    "document": f"What is this about? <document>\n{PIERRE}\n</document>",
    "documents": f"<documents><document index='1'>{PIERRE}</document></documents>\nWhich one is about Paris?",
    "interview": "Here is the interview\n\nReporter: Where do you live?\nPierre: I live in Paris. I love jazz.",
    "chat log": "Pierre: I live in Paris\nMarie: nice\nPierre: I work for Acme.\n\nWho works where?",
    "labelled line": "A customer wrote to us.\nCustomer: I live in Paris and I'm allergic to nuts.",
    "forwarded mail": f"FYI\n\n---------- Forwarded message ---------\nFrom: Pierre\nSubject: hello\n\n{PIERRE}",
    "reply": f"How should I react?\n\nOn Mon, 2 Mar 2026 at 10:00, Pierre <p@example.org> wrote:\n{PIERRE}",
    "mail with headers": f"Any idea?\n\nFrom: Pierre\nTo: me\nSubject: Hello\n\n{PIERRE}",
    "translation in a line": "Translate into German: I live in Paris and my name is Pierre.",
    "translation in lines": "translate to spanish\ni live in Paris\nmy name is Pierre",
    "colon in another language": f"Bitte beantworte diese Mail:\n\nHi,\n{PIERRE}",
    "colon of Chinese": f"请翻译\uff1a\n{PIERRE}",
    "request below": f"{PIERRE}\nI work for Acme.\n\nCan you rewrite the text above?",
    "request below, this": f"Hello,\n{PIERRE}\nBest,\nPierre\n\nReply to this politely please",
    "quotation over lines": "I read “I live in Paris.\nI work for Acme.” today.",
    "three quotes": f'Fix the grammar\n"""\n{PIERRE}\n"""',
    "tilde fence": f"Look:\n~~~\n{PIERRE}\n~~~",
    "essay": "Check my essay for mistakes\n\nI live in a small house. I live in Paris. I love hiking in the Alps.",
    "question about a sentence": "Is this sentence right?\nI live in Paris since two years. I work for Acme.",
    "role play": f"Write a bio for me in the first person, based on these notes:\n{PIERRE}",
    "greeting in a line": f"Answer this mail. Hi, {PIERRE}",
    "review": "What is the sentiment of the following review?\n\nI love hiking, and I bought a tent yesterday.",
    "heading": "CV of the candidate\n\nPierre Dupont\nI'm a nurse. I live in Paris.",
    "what another wrote": f"What do you make of what he wrote?\n\n{PIERRE}",
    "customer": f"What should I tell this customer?\n\n{PIERRE}",
    "labels in other languages": "Kunde: Ich wohne in Paris.\nCliente: Vivo en París.\nClient : J'habite à Paris.",
    "tag without an end": f"<context>\n{PIERRE}",
    "greeting below": f"Here you go\n\nHello team,\n{PIERRE}",
    "mail that came": f"I got this mail today.\n\n{PIERRE}",
    "story": "Continue the story\n\nMy name is Pierre. I live in Paris.",
}
PASTED |= {
    "names and times": "sum up\n\npierre — Today at 3:02 PM\nI live in Paris\nmarie 10:32\nI'm vegan",
    "lines with times": "key points\n\n00:00:12 I live in Paris and I work for Acme.",
    "times and labels": "10:15 Pierre: I live in Paris\n10:16 Marie: I'm vegan",
    "one who texted": f"my brother texted me\n{PIERRE}",
    "patient": "Patient says\nI'm allergic to nuts.",
    "contract": "Is this clause normal?\n\n1. The tenant is Pierre.\n2. I work for Acme.",
    "form": "Explain this form to me\n\nI am pregnant. I live in Paris.",
    "song": f"which song is this?\n\n{PIERRE}",
    "role": f"pretend you're my client\n{PIERRE}",
    "persona": "Persona: Pierre, 34. I live in Paris. I love hiking.",
    "user story": "write acceptance criteria\nI want to save 500 euros a month.",
    "gaps": f"Fill in the gaps\n\n{PIERRE}",
    "grammar": f"Grammar check pls\n\n{PIERRE}",
    "tweet in a line": "is this tweet sarcastic? I live in Paris and I love the smell",
    "other form": f"Turn into bullet points\n\n{PIERRE}",
    "bare request below": f"{PIERRE}\n\ntranslate to German",
    "bare request below a rule": f"{PIERRE}\n---\nproofread",
    "Spanish request below": f"{PIERRE}\n\ntraduce al español",
    "Chinese request below": f"{PIERRE}\n\n翻译成中文",
    "Chinese": f"帮我润色一下\n\n{PIERRE}",
    "Japanese": f"次の文章を日本語に訳してください\n\n{PIERRE}",
    "Korean": f"다음 글을 한국어로 번역해줘\n\n{PIERRE}",
    "Arabic": f"ترجم هذا النص\n\n{PIERRE}",
    "Hindi": f"इसका हिंदी में अनुवाद करो\n\n{PIERRE}",
    "Russian": f"Переведи на русский\n\n{PIERRE}",
    "Polish": f"Popraw ten tekst\n\n{PIERRE}",
    "Swedish": f"Översätt till svenska\n\n{PIERRE}",
    "Turkish": f"Bunu Türkçeye çevir\n\n{PIERRE}",
    "Italian": f"Puoi tradurre in inglese?\n\n{PIERRE}",
}
FOREIGN = {
    "Ich heiße Jürgen und wohne in Bremen.": [
        "Kannst du den folgenden Text verbessern?",
        "Bitte prüfe diese Bewerbung",
        "Was hältst du von diesem Brief?",
        "Formuliere das um",
        "Schreib die Mail höflicher",
        "Antworte dem Kunden",
        "Mach daraus einen kürzeren Text",
        "Das hat mir ein Kunde geschrieben",
        "Ich möchte diesen Brief kürzen",
        "Vertaal deze brief",
    ],
    "Me llamo Pilar y vivo en Bilbao.": [
        "¿Puedes corregir este texto?",
        "¿Me puedes traducir la carta?",
        "Contesta a este mensaje",
        "Revisa mi carta de presentación",
        "¿Qué opinas de este currículum?",
        "Reescribe el texto",
        "Tradúcelo al inglés",
        "¿Cómo respondo a este cliente?",
        "Esto me escribió un cliente",
    ],
    "Je m'appelle Luc et j'habite à Lyon.": [
        "Peux-tu corriger ce texte ?",
        "Relis ma lettre de motivation",
        "Que penses-tu de ce CV ?",
        "Reformule la phrase",
        "Cette phrase est-elle correcte ?",
        "Voici ce qu'un client m'a écrit",
        "Raccourcis le texte suivant",
        "J'aimerais traduire ce message",
    ],
}
"""Requests about a text in the languages in which facts are read, by what is pasted below them."""
OWN_FOREIGN = {
    "Ich heiße Jürgen und wohne in Bremen.": [
        "Kannst du mir helfen?",
        "Ich habe gestern einen Brief geschrieben.",
        "Schreib mir einen Brief an das Finanzamt.",
        "Antworte bitte auf Deutsch.",
    ],
    "Me llamo Pilar y vivo en Bilbao.": ["Reserva una mesa para dos.", "Responde en español, por favor."],
    "Je m'appelle Luc et j'habite à Lyon.": [
        "Peux-tu m'aider ?",
        "Réponds en français.",
        "J'ai écrit une lettre hier.",
    ],
}
OWN = {
    "My name is Anna. I live in Oslo.": ["Anna", "Oslo"],
    "Hi,\nmy name is Anna.\nI live in Oslo.": ["Anna", "Oslo"],
    "A few things about me:\nI live in Oslo.\nI'm vegetarian.": ["Oslo", "vegetarian"],
    "I live in Oslo.\nPlease answer this mail:\n\nHi,\nmy name is Pierre.": ["Oslo"],
    "Please translate this letter for me. I live in Oslo.": ["Oslo"],
    "I'm vegetarian. What can I cook?\nI live in Oslo.": ["vegetarian", "Oslo"],
    "Can you help me?\nI live in Oslo.": ["Oslo"],
    "Book a table for two, please.\nI'm allergic to peanuts.": ["peanuts"],
    "<document>I live in Paris.</document>\nI live in Oslo.": ["Oslo"],
    "My preferences:\n\nI prefer window seats.": ["window seats"],
    "We made it to the beach.\nI live in Oslo.": ["Oslo"],
    "Important: I'm allergic to nuts.": ["nuts"],
    "By the way: I live in Oslo.": ["Oslo"],
    "My situation: I live in Oslo.": ["Oslo"],
    "Über mich: Ich wohne in Bremen.": ["Bremen"],
    "I use vector<int> at work. I live in Oslo.": ["Oslo"],
    "Please remember this: I live in Oslo.": ["Oslo"],
    "Find me a doctor: I live in Oslo": ["Oslo"],
    "recommend a dentist please:\nI live in Oslo": ["Oslo"],
    "Ok, context for later:\nI live in Oslo.": ["Oslo"],
    "Dinner plan at 19:30\nI live in Oslo": ["Oslo"],
    "I live in Oslo.\n\nWrite a cover letter for me.": ["Oslo"],
    "I live in Oslo\n\nmake me a plan": ["Oslo"],
}


@pytest.mark.parametrize("text", PASTED.values(), ids=PASTED)
def test_a_pasted_text_says_nothing_of_the_user(text: str):
    assert stated(text, MONDAY) == []


@pytest.mark.parametrize(("text", "values"), OWN.items())
def test_the_users_own_words_beside_a_pasted_text_are_read(text: str, values: list[str]):
    assert [each.value for each in stated(text, MONDAY)] == values


@pytest.mark.parametrize(("text", "request_"), [(text, each) for text, some in FOREIGN.items() for each in some])
def test_below_a_request_in_german_spanish_or_french_a_text_is_pasted(text: str, request_: str):
    for between in ("\n\n", "\n", ": "):
        assert stated(f"{request_}{between}{text}", MONDAY) == []


@pytest.mark.parametrize(("text", "before"), [(text, each) for text, some in OWN_FOREIGN.items() for each in some])
def test_below_another_request_in_these_languages_the_user_speaks(text: str, before: str):
    assert len(stated(f"{before}\n{text}", MONDAY)) == 2


@pytest.mark.parametrize("marks", ["-", "- ", "\t"])
def test_a_turn_of_one_mark_is_read_in_no_time(marks: str):
    text = marks * (MOST_READ // len(marks) - 1) + "x"
    started = time.process_time()
    assert own_words(text) == text
    assert stated(text, MONDAY) == []
    assert time.process_time() - started < 2  # a quadratic search of a line takes longer
