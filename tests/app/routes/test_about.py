"""The root says what this is, and the page of the API works without the internet."""

import re

import pytest

from tests.service import Service


async def test_the_root_says_what_this_is_and_where_to_look(service: Service):
    anybody = await service.http(None)
    told = (await anybody.get("/")).json()
    assert told["name"] == "casebank"
    for name in ("documentation", "description", "ready"):
        assert (await anybody.get(told[name])).status_code == 200


async def test_the_page_of_the_api_asks_nobody_but_this_service(service: Service):
    anybody = await service.http(None)
    page = (await anybody.get("/docs")).text
    wanted = re.findall(r"""(?:src|href)=["']([^"']+)["']""", page)
    assert len(wanted) >= 3
    assert "://" not in page
    for each in wanted:
        answer = await anybody.get(each)
        assert (answer.status_code, len(answer.content) > 1000) == (200, True), each
    assert '"validatorUrl": null' in page


@pytest.mark.parametrize("path", ["/redoc", "/static-offline-docs/../main.py", "/static-offline-docs/%2e%2e/core.py"])
async def test_there_is_no_page_that_asks_others_and_no_way_out_of_the_folder(service: Service, path: str):
    assert (await (await service.http(None)).get(path)).status_code == 404
