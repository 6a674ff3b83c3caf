"""An error in the prompt finds the runs that met it, though their tasks say nothing of it."""

from typing import Any

from tests.app.routes.conftest import ids
from tests.service import User

ERROR = 'ERROR:  syntax error at or near ";"\nLINE 1: ALTER TABLE users ADD COLUMN last_name;'
ASKED = 'ERROR: syntax error at or near ";"'


def met(output: str = ERROR, **more: Any) -> dict[str, Any]:
    calls = [{"tool": "sql", "input": "ALTER TABLE users", "output": output}, {"tool": "sql", "output": "ALTER TABLE"}]
    return {"tool_traces": calls, "plan": ["name the type"], **more}


async def lessons(user: User) -> str:
    case_id = await user.retain("Give everybody a last name", **met())
    await user.retain("water the garden", plan=["open the tap"])
    await user.settle()
    return case_id


async def test_an_error_finds_the_case_that_met_it(alice: User):
    case_id = await lessons(alice)
    answer = await alice.retrieve(ASKED)
    assert ids(answer) == [case_id]
    assert answer["cases"][0]["keyword_rank"] == 1


async def test_an_error_is_found_after_a_change_of_tags(alice: User):
    case_id = await lessons(alice)
    for tags in (["quagga"], ["zebra"], []):
        answer = await alice.http.patch(f"/v1/cases/{case_id}", json={"tags": tags})
        assert answer.status_code == 200, answer.text
    assert ids(await alice.retrieve(ASKED)) == [case_id]
    assert ids(await alice.retrieve("quagga")) == []


async def test_what_is_secret_in_an_error_is_not_searched(alice: User):
    await alice.retain("Give everybody a last name", **met("ERROR: no user ada.lovelace@example.com in the vault"))
    await alice.settle()
    indexed = "SELECT search_vector::text AS words, search_text FROM cases WHERE user_sub = :user_sub"
    (found,) = await alice.rows(indexed)
    assert "vault" in found.words
    assert "lovelace" not in found.words
    assert found.search_text == ""
