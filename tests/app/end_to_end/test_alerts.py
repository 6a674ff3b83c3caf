"""The alerts and the dashboard ask for metrics, labels and values that a running service has, and for nothing else."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from app.admission.backlog import IN_ALL, PER_USER
from app.jobs.records import JobRecords
from tests.paths import ROOT
from tests.service import AGENT, Service, User

TEXT = (ROOT / "deploy" / "alerts.yaml").read_text()
RULES: list[dict[str, Any]] = [rule for group in yaml.safe_load(TEXT)["groups"] for rule in group["rules"]]
PANELS: list[dict[str, Any]] = json.loads((ROOT / "deploy" / "grafana-dashboard.json").read_text())["panels"]
EXPRESSIONS = [(rule["alert"], rule["expr"]) for rule in RULES]
EXPRESSIONS += [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
WATCH = (ROOT / "docs" / "watch.md").read_text()


@dataclass(frozen=True)
class Selector:
    """A metric that an expression asks for, and its matchers: (label, operator, value)."""

    metric: str
    matchers: tuple[tuple[str, str, str], ...]


def selectors(expression: str) -> list[Selector]:
    """Every selector of the expression; the names of the service's metrics all begin alike."""
    found = re.findall(r"(casebank_\w+)(?:\{([^}]*)\})?", expression)
    return [Selector(metric, tuple(re.findall(r'(\w+)(=~|!~|!=|=)"([^"]*)"', matchers))) for metric, matchers in found]


def grouped_by(expression: str) -> set[str]:
    """The labels that the expression keeps."""
    return {label.strip() for names in re.findall(r"\bby \(([^)]*)\)", expression) for label in names.split(",")}


Known = Mapping[str, list[Mapping[str, str]]]
"""The labels of each sample, by the sample's name."""


@pytest.fixture
async def known(service: Service, alice: User) -> Known:
    """What a service tells that was asked, told, and asked by a stranger."""
    await alice.retain("feed the cat")
    await alice.settle()
    asked = await alice.retrieve("feed the cat")
    await alice.retain("feed the cat again", retrieval_id=asked["retrieval_id"], reward=1.0)
    await alice.settle()
    await (await service.http("no token")).get("/v1/cases")
    await alice.http.post("/v1/retrieve", json={"agent": AGENT, "query": "feed the dog"})
    for job in ("upkeep", "training", "worker"):
        await JobRecords(service.runtime.database).succeeded(job)
    page = (await (await service.http(None)).get("/metrics")).text
    samples = [each for family in text_string_to_metric_families(page) for each in family.samples]
    known: dict[str, list[Mapping[str, str]]] = {}
    for each in samples:
        known.setdefault(each.name, []).append(each.labels)
    return known


def test_the_rules_are_named_once_and_say_what_to_do():
    names = [rule["alert"] for rule in RULES]
    assert len(names) == len(set(names)) > 10
    for rule in RULES:
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}, rule["alert"]
        assert rule["annotations"].keys() == {"summary", "action"}, rule["alert"]
        assert selectors(rule["expr"]) or rule["expr"].startswith("up{"), rule["alert"]


def test_one_dead_process_of_those_that_deploy_starts_fires_an_alert():
    head = [line.removeprefix("#   ") for line in TEXT.splitlines() if line.startswith("#   ")]
    (scrape,) = yaml.safe_load("\n".join(head))["scrape_configs"]
    (rule,) = [rule for rule in RULES if rule["expr"] == f'up{{job="{scrape["job_name"]}"}} == 0']
    assert rule["for"] == "2m"
    page = (ROOT / "docs" / "deploy.md").read_text()
    ports = set(re.findall(r"curl -fsS .*", page)[0].replace("/", ":").split(":")) & {"8700", "8701", "8710"}
    targets = scrape["static_configs"][0]["targets"]
    assert {target.split(":")[1] for target in targets} == ports == {"8700", "8701", "8710"}


async def test_each_metric_label_and_value_of_rules_and_panels_is_one_of_a_running_service(known: Known):
    for name, expression in EXPRESSIONS:
        kept = grouped_by(expression)
        for asked in selectors(expression):
            assert asked.metric in known, (name, asked)
            for label, operator, value in asked.matchers:
                values = {labels.get(label) for labels in known[asked.metric]}
                assert None not in values, (name, asked.metric, label)
                if operator == "=":
                    assert value in values, (name, asked.metric, label, value)
        labels = {label for asked in selectors(expression) for of in known[asked.metric] for label in of}
        assert kept <= labels, name


async def test_each_route_that_a_rule_asks_for_is_one_of_the_service(service: Service):
    paths = set(service.app.openapi()["paths"])
    for name, expression in EXPRESSIONS:
        for asked in selectors(expression):
            for label, _, value in asked.matchers:
                if label == "route":
                    assert [path for path in paths if re.fullmatch(value, path)], (name, value)


async def test_of_all_that_waits_in_the_queue_some_rule_tells(known: Known):
    waits = {labels["status"] for labels in known["casebank_queue_cases"]} - {"pending"}  # watched by their age
    asked = [each for rule in RULES for each in selectors(rule["expr"]) if each.metric == "casebank_queue_cases"]
    assert {value for each in asked for _, _, values in each.matchers for value in values.split("|")} == waits


async def test_each_limit_that_a_rule_asks_for_is_one_of_the_service():
    limits = {PER_USER, IN_ALL}
    asked = [each for rule in RULES for each in selectors(rule["expr"]) if each.metric == "casebank_refused_total"]
    assert {value for each in asked for _, _, values in each.matchers for value in values.split("|")} == limits


@pytest.mark.parametrize(
    "alert",
    [
        "CasebankWritesFail",
        "CasebankReadsSlow",
        "CasebankEmbeddingSlow",
        "CasebankQueueOld",
        "CasebankTablesGrow",
    ],
)
def test_a_panel_draws_what_an_alert_watches_with_its_threshold(alert: str):
    (panel,) = [panel for panel in PANELS if panel["description"].startswith(alert)]
    (rule,) = [" ".join(rule["expr"].split()) for rule in RULES if rule["alert"] == alert]
    (target,) = panel["targets"]
    assert rule.startswith(target["expr"])
    assert panel["fieldConfig"]["defaults"]["thresholds"]["steps"][-1]["value"] == float(rule.split()[-1])


def test_alerts_and_dashboard_are_documented():
    assert "deploy/alerts.yaml" in WATCH
    assert "deploy/grafana-dashboard.json" in WATCH
