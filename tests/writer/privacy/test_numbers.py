"""Cards and phone numbers: as texts, as numbers of JSON, and told from ids."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from writer.privacy.numbers import REGIONS, TEST_CARDS
from writer.privacy.redact import redact, redact_text

CARD, PHONE = 4539578763621486, 4155550123
PHONES = [
    "020 7946 0958",
    "07700 900123",
    "0171 1234567",
    "0171/1234567",
    "030 123456",
    "06 12 34 56 78",
    "06.12.34.56.78",
    "333 123 4567",
    "06 1234 5678",
    "090-1234-5678",
    "03-1234-5678",
    "010-1234-5678",
    "13812345678",
    "138 1234 5678",
    "138-1234-5678",
    "98765 43210",
    "(11) 91234-5678",
    "11 91234-5678",
    "8 (912) 345-67-89",
    "(495) 123-45-67",
    "55 1234 5678",
    "(55) 1234-5678",
    "0412 345 678",
    "0812-3456-7890",
    "0300-1234567",
    "0803 123 4567",
    "01712-345678",
    "0917 123 4567",
    "0049 171 1234567",
    "0044 20 7946 0958",
    "011 44 20 7946 0958",
    "415-555-0123",
    "(415) 555-0123",
    "+49 171 1234567",
    "0207 946 0958",
    "612 34 56 78",
    "91 123 45 67",
    "11 9 1234 5678",
    "11 91234 5678",
    "06\u00a012\u00a034\u00a056\u00a078",
    "415\u2011555\u20110132",
    "\uff10\uff19\uff10\u2212\uff11\uff12\uff13\uff14\u2212\uff15\uff16\uff17\uff18",
]
IN_CONTEXT = [
    "My phone number is 0171 1234567",
    "Call me on 07700900123, please",
    "Ruf mich an: 0171-1234567",
    "mon tél est 0612345678",
    "mi celular es 612 345 678",
    "мой телефон 89123456789",
    "手机号码是 138 1234 5678",
    "携帯は09012345678です",
    "전화번호는 01012345678",
    "tel: 2079460958",
    "WhatsApp 9876543210",
    "07700900123 is my number",
    "0612345678 c'est mon numéro",
    "612345678 es mi teléfono",
    "il mio numero è 3331234567",
    "meu zap é 11912345678",
    "mi cel es 5512345678",
    "मेरा नंबर 9876543210 है",
    "89123456789 звони",
    "081234567890 nomor saya",
    "4155550132 text me",
    "numer telefonu: 601 234 567",
    "telefonum 05321234567",
    "puhelinnumeroni on 0401234567",
    "kännykkäni on 0401234567",
    "số điện thoại của tôi là 0912345678",
    "sđt 0912345678",
    "τηλέφωνο: 2101234567",
    "το κινητό μου είναι 6912345678",
    "הטלפון שלי 0501234567",
]
NO_PHONES = [
    "05-12-2024 10:00",
    "010.020.030.040",
    "978-0-306-40615-7",
    "ISBN 0306406152",
    "06 12 34 56 78 90 12",
    "12 345 678 rows",
    "ports 60000-70000",
    "65536 81920 98304",
    "order 13812345678",
    "0x00 20 30 40 50 60 70",
    "00 12 34 56 78 90 12",
    "id 0049 171 1234567",
    "order no. 0171 1234567",
    "-rw-r--r-- 1 root 0755 1234 56789",
    "microphone: 12345678",
    "epoch 1715421600",
    "1990\u20132020 and 2021\u20132030",
    "12\u00a0345\u00a0678\u00a0901 rows",
    "620 30 40 50 60 70",
    "my number one goal of 12345678",
    "12000000 calls",
    "20260312 call",
]


@pytest.mark.parametrize("number", PHONES)
@pytest.mark.parametrize("around", ["%s", "Please note: %s.", '{"to": "%s"}', "write it down\n%s\nthanks"])
def test_a_national_phone_number_is_taken_out_in_the_groups_of_its_country(number: str, around: str):
    assert redact_text(around % number) == (around % "[REDACTED:phone]", {"phone": 1})


@pytest.mark.parametrize("text", IN_CONTEXT)
def test_a_word_for_phones_tells_that_digits_are_a_phone_number(text: str):
    clean, found = redact_text(text)
    assert (found, sum(map(str.isdigit, clean))) == ({"phone": 1}, 0)


@pytest.mark.parametrize("text", NO_PHONES)
def test_dates_ids_and_tables_are_no_phone_numbers(text: str):
    assert redact_text(text) == (text, {})


def test_the_largest_countries_are_known():
    assert len(set(REGIONS)) >= 20


# Numbers of JSON


@pytest.mark.parametrize(
    "value",
    [
        {"card": CARD},
        {"card": float(CARD)},
        {"cardNumber": str(CARD)},
        {"card": {"number": CARD}},
        {"number": CARD, "cvc_check": "pass"},
        {"kreditkarte": {"nummer": CARD}},
        {"número de tarjeta": CARD},
        {"carte bancaire": CARD},
        {"cvc": 123},
        {"cvv2": "0123"},
        {"card": {"security_code": 123}},
        {"payment": {"number": 4012888888881881}},
        {"brand": "visa", "digits": CARD},
        {"name": "card_number", "value": CARD},
        {"phone": PHONE},
        {"phone": float(PHONE)},
        {"phones": [PHONE]},
        {"customerPhone": PHONE},
        {"type": "mobile", "number": PHONE},
        {"phone": {"work": PHONE}},
        {"ssn": 123456789},
        {"type": "phone", "value": str(PHONE)},
        {"msisdn": PHONE},
        {"numer_telefonu": PHONE},
        {"primaryAccountNumber": CARD},
        {"numer_karty": CARD},
        {"kortnummer": CARD},
        {"numeroCartao": CARD},
        {"pin": 4821},
        {"cardPin": "4821"},
        {"password": 12345678},
        {"api_key": 12345678},
    ],
)
@pytest.mark.parametrize("wrap", [lambda value: value, json.dumps, lambda value: {"arguments": json.dumps(value)}])
def test_a_number_is_taken_out_as_its_text_would_be(value: Any, wrap: Any):
    clean, found = redact(wrap(value))
    assert sum(each.count for each in found) == 1
    digits = json.dumps(clean)
    assert not any(str(secret) in digits for secret in (CARD, PHONE, 123456789, 12345678, 4821))


def test_digits_alone_in_what_somebody_said_are_a_card():
    assert redact({"turns": [{"role": "user", "content": str(CARD)}]})[1][0].kind == "payment-card"


@pytest.mark.parametrize(
    "value",
    [
        {"id": CARD},
        {"id": str(CARD)},
        {"order_id": CARD, "customer": "Ada"},
        {"orderId": CARD},
        {"result": CARD},
        {"output": str(CARD)},
        {"order_id": "13812345678"},
        {"max_tokens": 4096000, "tokens": 123456},
        {"mobile": True, "phone": None, "phone_model": 1234567},
        {"sms": {"id": 12345678, "sent_at": 1715421600}},
        {"ts": 1715421600123, "size": 4155550123},
        {"pin": 4, "pin_code": "560001"},
    ],
)
def test_an_id_is_no_card_and_no_phone_number(value: Any):
    assert redact(value) == (value, [])
    assert redact(json.dumps(value)) == (json.dumps(value), [])


def test_none_of_five_hundred_ids_that_begin_with_4_is_a_card():
    rng = random.Random(1)
    ids = [4 * 10**15 + rng.randrange(10**15) for _ in range(500)]
    for known in (
        {"order_id": ids},
        [f"Refund order {each}" for each in ids],
        json.dumps([{"id": each} for each in ids]),
    ):
        assert redact(known)[1] == []


@pytest.mark.parametrize(
    "text",
    [
        f"my card is {CARD}",
        f"Visa {CARD} exp 12/27",
        f"{CARD} (mastercard)",
        f"Kreditkarte: {CARD}",
        f"Kreditkartennummer: {CARD}",
        f"numer karty {CARD}",
        f"kart numaram {CARD}",
        f"بطاقتي {CARD}",
        f"κάρτα {CARD}",
        f"הכרטיס שלי {CARD}",
        f"luottokorttini {CARD}",
        f"{CARD}",
        "4539.5787.6362.1486",
        "4539\u202f5787\u202f6362\u202f1486",
        "4539 5787 6362 1486",
        "4539-5787-6362-1486",
        *sorted(TEST_CARDS),
    ],
)
def test_a_card_in_context_is_taken_out(text: str):
    assert redact_text(text)[1] == {"payment-card": 1}


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("CVC 314", "CVC [REDACTED:card-code]"),
        ("the cvv is 314.", "the cvv is [REDACTED:card-code]."),
        ("card security code: 0314", "card security code: [REDACTED:card-code]"),
        ("the CVC check passed for 314 cards", "the CVC check passed for 314 cards"),
        ("CVC 5", "CVC 5"),
        ("my PIN is 4821", "my PIN is [REDACTED:pin]"),
        ("Meine PIN ist 4821", "Meine PIN ist [REDACTED:pin]"),
        ("PIN 560001, Delhi", "PIN 560001, Delhi"),
        ("pin: 13", "pin: 13"),
    ],
)
def test_the_code_of_a_card_is_taken_out_where_its_name_stands(text: str, clean: str):
    assert redact_text(text)[0] == clean


# JSON stays JSON


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ('{"id": 4000000000000002}', '{"id": "[REDACTED:payment-card]"}'),
        ('{"card": 4539578763621486, "n": 1}', '{"card": "[REDACTED:payment-card]", "n": 1}'),
        ('{"phone":4155550123}', '{"phone":"[REDACTED:phone]"}'),
        (
            '{"cards": [4000000000000002, 4242424242424242]}',
            '{"cards": ["[REDACTED:payment-card]", "[REDACTED:payment-card]"]}',
        ),
        ('{"password": 12345678}', '{"password": "[REDACTED:password]"}'),
        ('{"card": 4539578763621486.0}', '{"card": "[REDACTED:payment-card]"}'),
        ('{"a": "{\\"phone\\": 4155550123}"}', '{"a": "{\\"phone\\": \\"[REDACTED:phone]\\"}"}'),
        ('result: {"phone": 4155550123}, and', 'result: {"phone": "[REDACTED:phone]"}, and'),
        (
            '{"phone": 4155550123}\n{"phone": 2125552368}',
            '{"phone": "[REDACTED:phone]"}\n{"phone": "[REDACTED:phone]"}',
        ),
    ],
)
def test_what_takes_the_place_of_a_number_leaves_json(text: str, clean: str):
    assert redact_text(text)[0] == clean


names = st.sampled_from(["card", "phone", "ssn", "password", "token", "id", "number", "note", "email", "value"])
leaves = (
    st.sampled_from([CARD, PHONE, 4000000000000002, 123456789, -CARD, float(CARD), None, True, "ada@example.org"])
    | st.sampled_from(
        [str(CARD), "0171 1234567", 'say "password=hunter2!x"', "\\", "é\n", "sk-ant-" + "a1b2c3d4e5f6g7h8"]
    )
    | st.integers()
)
documents = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4), max_leaves=10
)


@given(documents, st.sampled_from([None, 2]), st.integers(0, 2))
def test_redacted_json_is_json_and_redacting_it_again_changes_nothing(document: Any, indent: int | None, depth: int):
    text = json.dumps(document if isinstance(document, list | dict) else [document], indent=indent)
    for _ in range(depth):
        text = json.dumps({"arguments": text})
    clean, _ = redact_text(text)
    json.loads(clean)
    assert redact_text(clean) == (clean, {})
    inner = clean
    for _ in range(depth):
        inner = json.loads(inner)["arguments"]
    json.loads(inner)
