"""docs/watch.md has every metric that a service and a worker export, with its labels, and no other."""

import os
import re
from pathlib import Path

import jwt
from prometheus_client.parser import text_string_to_metric_families

from app.auth.tokens import OPERATOR
from tests.pages import blocks, shell
from tests.paths import ROOT
from tests.service import Service, User

ROWS = re.findall(r"^\| `(casebank_\w+)` \| (.*?) \|", (ROOT / "docs" / "watch.md").read_text(), re.MULTILINE)
DOCUMENTED = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in ROWS}


def exported(page: str) -> dict[str, set[str]]:
    """The labels of each metric that have been met, by the name under which Prometheus keeps it."""
    found = {}
    for family in text_string_to_metric_families(page):
        if family.name.startswith("casebank_") and not family.name.endswith("_created"):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            found[name] = {label for each in family.samples for label in each.labels} - {"le"}
    return found


async def test_each_metric_of_the_service_is_on_the_page_with_its_labels(service: Service, alice: User):
    await alice.retain("feed the cat")
    await alice.settle()
    await alice.retrieve("feed the cat")
    told = exported((await (await service.http(None)).get("/metrics")).text)
    assert told.keys() == DOCUMENTED.keys()
    for name, labels in told.items():
        assert labels <= DOCUMENTED[name], name


def test_the_operators_token_is_renewed_as_the_page_says(tmp_path: Path):
    etc = tmp_path / "etc" / "casebank"
    etc.mkdir(parents=True)
    secret = "s" * 32
    (etc / "environment").write_text(f"CASEBANK_JWT_SECRET={secret}\n")
    (commands,) = blocks("watch.md", "sh")
    token = etc / "operator-token"
    read = []
    for _ in range(2):  # the second time over the first
        shell(tmp_path / "home", commands.replace("/etc/casebank", str(etc)), GROUP=str(os.getgid()))
        read.append(jwt.decode(token.read_text().strip(), secret, ["HS256"], audience="casebank"))
    assert {claims["scope"] for claims in read} == {OPERATOR}
    assert read[0]["jti"] != read[1]["jti"]
    assert token.stat().st_mode & 0o777 == 0o640
