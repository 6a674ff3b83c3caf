"""The page of a run says what its steps found out, and what of that holds no more."""

import httpx

from tests.app.console.furnish import furnish
from tests.service import User


async def test_what_a_later_step_changed_is_marked_and_the_rest_holds(alice: User, console: httpx.AsyncClient):
    things = await furnish(alice)
    listed = (await console.get("/console/runs", params={"status": "under_way"})).text
    assert f"/console/runs/{things.run_id}?" in listed
    assert things.run_id not in (await console.get("/console/runs", params={"status": "retained"})).text
    text = (await console.get(f"/console/runs/{things.run_id}")).text
    table = text[text.index("<tbody>") : text.index("</tbody>")]
    assert table.count("a later step changed it") == 1
    assert table.index("a search") < table.index("a change") < table.index("a later step changed it")
    assert table.count('class="mark good">holds') == 2
