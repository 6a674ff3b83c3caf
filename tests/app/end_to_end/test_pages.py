"""Every command and program of the pages on the first five minutes and the ideas does what they say."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.conftest import Service as InProcess
from tests.app.processes import Service, new_home, until
from tests.pages import blocks, python, shell
from tests.paths import ROOT

IDEAS = (ROOT / "docs" / "ideas.md").read_text()


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with new_home() as home:
        yield home


def test_five_minutes_by_python_and_by_fetch_end_in_a_case_each(home: Path):
    serve, token, look = blocks("five-minutes.md", "sh")
    (client,), (fetch,) = blocks("five-minutes.md", "python"), blocks("five-minutes.md", "js")
    assert serve == "casebank serve\n"  # which is what is started here, on another port
    with Service(home) as service:
        given = {"TOKEN": shell(home, f"{token}echo $TOKEN").strip()}
        python(home, client, service.url, **given)
        tasks = {"Rename the column price to amount"}
        if shutil.which("node"):
            shell(home, f"node --input-type=module - <<'END'\n{fetch}END", service.url, **given)
            tasks.add("Rename the column name to title")
        until(lambda: {each["task"] for each in json.loads(shell(home, look, service.url, **given))["cases"]} == tasks)


async def test_each_field_and_route_of_the_ideas_is_one_of_the_api(service: InProcess):
    document = service.app.openapi()
    answer, case = (document["components"]["schemas"][name]["properties"] for name in ("RetrieveOut", "SlotOut"))
    table = IDEAS[IDEAS.index("| in the answer") :]
    fields = re.findall(r"`(\w+)`", table)
    assert len(fields) > 8
    assert set(fields) <= answer.keys() | case.keys()
    for method, path in re.findall(r"`(GET|POST) (/\S+?)`", IDEAS):
        assert method.lower() in document["paths"][path], path


@pytest.mark.parametrize("page", ["five-minutes.md", "ideas.md", "watch.md"])
def test_each_file_that_a_page_points_to_is_there(page: str):
    text = (ROOT / "docs" / page).read_text()
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (ROOT / "docs" / target).exists(), target
