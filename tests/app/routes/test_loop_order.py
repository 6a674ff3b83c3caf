"""The order before anything is learned: what similar successes agree on goes before what is merely near."""

from tests.app.routes.conftest import ids
from tests.service import User

REFUNDS = (
    "Refund a broken parcel that came late to Cleo",
    "Pay back the broken parcel which Dov sent home",
    "Refund the parcel that arrived broken at the door of Esi",
    "Refund Finn: his parcel was broken on the way",
    "Gita wants a refund for a broken parcel",
)
ODD = "Bo wants his broken parcel refunded"
ASKED = "Refund the broken parcel for Ada today"


def calls(*tools: str) -> list[dict[str, str]]:
    return [{"tool": tool, "input": "number=1", "output": "done", "status": "ok"} for tool in tools]


async def test_a_case_as_near_as_others_that_did_what_none_of_them_did_gives_way(alice: User):
    shared = [await alice.retain(task, tool_traces=calls("refund_payment", "send_note")) for task in REFUNDS]
    odd = await alice.retain(ODD, tool_traces=calls("close_account"))
    await alice.settle()
    first, second = ids(await alice.retrieve(ASKED, k=4))  # a place for each plan
    assert first in shared
    assert second == odd
