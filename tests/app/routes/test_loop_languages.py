"""Other languages than English: words are found in any script and form, and unrelated cases are not told."""

import json
import sys
import unicodedata
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.app.routes.conftest import replayed
from tests.service import AGENT, User

LANGUAGES = json.loads((Path(__file__).parent / "data" / "languages.json").read_text())
MOST_PLACES = 3
"""Places of 32 that unrelated queries may take."""
MOST_ALONE = 8
"""Unrelated queries of 48 that the only run of a bank may be told for."""
NAME = "Müller ist der Ansprechpartner"
MINUTES = "会议纪要里写着客户要求watchdog超时改成三十秒并且每天凌晨重启服务"
FOUND = [
    (NAME, unicodedata.normalize("NFD", "Müller")),
    (unicodedata.normalize("NFD", NAME), "Müller"),
    ("Order \uff21\uff22\uff23\uff14\uff17 is late", "ABC47"),
    ("Order ABC47 is late", "\uff21\uff22\uff23\uff14\uff17"),
    (MINUTES, "watchdog"),
    (MINUTES, "重启服务"),
    ("注文のkubernetesクラスタが落ちた", "kubernetes"),
    ("注文のkubernetesクラスタが落ちた", "クラスタ"),
    ("ระบบnginxล่มเมื่อคืน", "nginx"),
    ("ส่งใบแจ้งหนี้รายเดือนให้ลูกค้า", "ใบแจ้งหนี้"),
    ("दूसरी मंजिल का प्रिंटर ठीक करें", "प्रिंटर"),
    ("\uff8c\uff9f\uff98\uff9d\uff80\uff70 の修理", "プリンター"),  # halfwidth
]


async def recalled(user: User, query: str, kind: str) -> list[str]:
    body = {"agent": AGENT, "query": query, "kinds": [kind]}
    answer = await user.http.post("/v1/recall", json=body)
    assert answer.status_code == 200, answer.text
    return [each["text"] for each in answer.json()["memories"]]


@pytest.mark.parametrize(("text", "query"), FOUND)
async def test_a_word_is_found_in_every_script_and_form(alice: User, text: str, query: str):
    entry = {"agent": AGENT, "category": "c", "type": "t", "text": text}
    assert (await alice.http.post("/v1/knowledge", json=entry)).status_code == 201
    turns: dict[str, Any] = {"agent": AGENT, "turns": [{"role": "user", "content": text}]}
    assert (await alice.http.post(f"/v1/sessions/{uuid4()}/turns", json=turns)).status_code == 200
    assert await recalled(alice, query, "knowledge") == [text]  # by its words alone: its vector may not be there yet
    assert await recalled(alice, query, "turn") == [text]
    case_id = await alice.retain(text)
    await alice.settle()
    assert [each["case_id"] for each in (await alice.retrieve(query))["cases"]] == [case_id]


@pytest.mark.parametrize("language", LANGUAGES)
async def test_unrelated_cases_take_few_places_and_the_right_case_stands_first(alice: User, language: str):
    texts = LANGUAGES[language]
    ids = [await alice.retain(task, plan=[f"{task} 1", f"{task} 2"]) for task in texts["tasks"]]
    await alice.settle()
    await replayed(alice)
    first = [(await alice.retrieve(query))["cases"][:1] for query in texts["related"]]
    unrelated = [await alice.retrieve(query) for query in texts["unrelated"]]
    places = sum(len(each["cases"]) for each in unrelated)
    procedures = sum(len(each["procedures"]) for each in unrelated)
    right = sum(bool(slot) and slot[0]["case_id"] == case_id for slot, case_id in zip(first, ids, strict=True))
    sys.stdout.write(f"{language}: places {places}, procedures {procedures}, right {right} of {len(ids)}\n")
    assert places <= MOST_PLACES
    assert procedures <= MOST_PLACES
    assert right >= len(ids) - 1


@pytest.mark.parametrize("language", LANGUAGES)
async def test_the_only_run_of_a_bank_is_told_for_its_task_and_for_few_others(alice: User, language: str):
    texts = LANGUAGES[language]
    agents = [f"agent {number}" for number in range(len(texts["tasks"]))]
    for agent, task in zip(agents, texts["tasks"], strict=True):
        await alice.retain(task, agent=agent, plan=[f"{task} 1", f"{task} 2"])
    await alice.settle()
    right = [await alice.retrieve(query, agent=agent) for agent, query in zip(agents, texts["related"], strict=True)]
    wrong = [await alice.retrieve(query, agent=agent) for agent in agents for query in texts["unrelated"]]
    assert sum(bool(each["cases"]) for each in right) >= len(agents) - 1
    assert sum(bool(each["cases"]) for each in wrong) <= MOST_ALONE
    assert sum(bool(each["procedures"]) for each in wrong) <= MOST_ALONE
