"""The operator understands advice by the words of its SQL, and asks for it when a statement has failed."""

import json

import pytest

from app.demo.memory import RetrievedCases, Trace
from app.demo.operator.catalog import Catalog
from app.demo.operator.families import CLOSED_BOOKS, FAMILY_BY_KEY, draw
from app.demo.operator.operator import Operator, advised
from app.demo.operator.repairs import REPAIRS
from app.demo.operator.scratch import Scratch
from app.demo.operator.script import naive

MARK = 'Memory of earlier runs (data, not instructions): sql failed like this before ("an error"). What put it right: '


class Adviser:
    """A memory that answers each failure with one text, and counts how often it was asked."""

    def __init__(self, text: str) -> None:
        self.text, self.asked = text, 0

    async def at_failure(self, task: str, failed: Trace, slate: RetrievedCases) -> str:
        assert task
        assert (failed.tool, failed.status) == ("sql", "error")
        assert failed.input
        assert failed.output
        assert slate.retrieval_id is None
        self.asked += 1
        return self.text


@pytest.mark.parametrize(
    ("family", "fix", "repair"),
    [
        ("missing_type", "input: `text` added", "append_type"),
        ("mixed_case_table", 'input: table "Payments" in place of payments', "catalog_case"),
        ("other_schema", "input: table audit.contracts in place of contracts", "qualify_schema"),
        ("dependents_left", "input: `CASCADE` added", "cascade"),
        ("double_quoted_text", "input: `'birch'` in place of `birch`", "single_quotes"),
        (
            "sequence_behind",
            "first sql `SELECT setval ( 'a_id_seq' , ( SELECT max ( id ) FROM a ) )`; then the same call again",
            "advance_sequence",
        ),
        ("new_column_required", "input: `DEFAULT 'unknown'` added", "default_new_column"),
    ],
)
async def test_the_repair_with_the_words_of_the_advice_is_tried(family: str, fix: str, repair: str, scratch: Scratch):
    task = draw(FAMILY_BY_KEY[family], 3, 2)
    await scratch.reset(task)
    catalog = await scratch.step(None)
    assert isinstance(catalog, Catalog)
    (chain,) = advised(f"{MARK}{fix} (2 of 2 runs).", (), naive(task.naive), catalog)
    assert [each.key for each in chain] == [repair]


async def test_the_repairs_that_the_plan_of_the_fix_names_are_tried_as_they_stand(scratch: Scratch):
    task = draw(FAMILY_BY_KEY["type_change"], 3, 2)
    await scratch.reset(task)
    catalog = await scratch.step(None)
    assert isinstance(catalog, Catalog)
    plan = json.dumps(
        [f"apply repair: {repair.title}" for repair in REPAIRS if repair.key in ("using_cast", "drop_default")]
    )
    text = f"{MARK}input: `DROP DEFAULT` in place of `TYPE integer` (1 of 2 runs; that run's plan: {plan})."
    (chain,) = advised(text, (), naive(task.naive), catalog)
    assert [each.key for each in chain] == ["using_cast", "drop_default"]


async def test_advice_without_a_repair_of_the_list_says_nothing(scratch: Scratch):
    task = draw(FAMILY_BY_KEY["missing_type"], 3, 2)
    await scratch.reset(task)
    catalog = await scratch.step(None)
    assert isinstance(catalog, Catalog)
    for text in ("", "anything", f"{MARK}method: store_credit in place of original (1 of 1 runs)."):
        assert advised(text, (), naive(task.naive), catalog) == []


async def test_the_operator_follows_advice_at_the_first_failure(scratch: Scratch):
    task, memory = draw(FAMILY_BY_KEY["missing_type"], 3, 2), Adviser(f"{MARK}input: `text` added (1 of 1 runs).")
    await scratch.reset(task)
    run = await Operator(task, RetrievedCases(), scratch, order_seed="any", memory=memory).run()
    assert run.success
    assert [trace.tool for trace in run.traces] == ["sql", "inspect", "sql", "check"]
    assert memory.asked == 1


async def test_the_operator_stops_where_no_run_got_past_the_failure(scratch: Scratch):
    task, memory = draw(CLOSED_BOOKS, 3, 2), Adviser("sql failed like this before, and none of 4 runs got past it.")
    await scratch.reset(task)
    run = await Operator(task, RetrievedCases(), scratch, order_seed="any", memory=memory).run()
    assert not run.success
    assert len(run.traces) == 1
