"""The root says what the service is and where to look."""

from tests.service import Service


async def test_the_root_says_what_this_is_and_where_to_look(service: Service):
    anybody = await service.http(None)
    told = (await anybody.get("/")).json()
    assert told["name"] == "casebank"
    for name in ("documentation", "description", "ready"):
        assert (await anybody.get(told[name])).status_code == 200
