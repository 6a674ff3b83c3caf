"""Moves of plans: what counts as the same way of doing a task, and what does not."""

import hashlib
import json
import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policy.agreement import SAME, agreement
from tests.paths import DATA
from tests.writer.analysis.plan_pairs import AGENTS, Agent, Verdict, acted, call, failed, planned, queried, ran, typed
from writer.analysis.calls import StoredRun
from writer.analysis.commands import commands
from writer.analysis.moves import MOST_MOVES, moves_of
from writer.analysis.value_differences import told

BOUNDS: dict[Verdict, tuple[float, float]] = {"same": (0.9, 1.0), "partly": (0.2, 0.9), "different": (0.0, 0.35)}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40) | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)


def numbers(moves: list[str]) -> np.ndarray[Any, np.dtype[np.int32]]:
    digests = (hashlib.sha256(move.encode("utf-8", "surrogatepass")).digest()[:4] for move in moves)
    return np.array([int.from_bytes(digest, "big", signed=True) for digest in digests], dtype=np.int32)


def of_pairs(agent: Agent) -> dict[tuple[str, str], float]:
    """Returns the agreement of each two runs of an agent, in a bank of all its runs."""
    names = list(agent.runs)
    table = agreement([numbers(moves_of(run)) for run in agent.runs.values()])
    return {(a, b): float(table[i, j]) for i, a in enumerate(names) for j, b in enumerate(names)}


@pytest.mark.parametrize("verdict", BOUNDS)
@pytest.mark.parametrize("agent", AGENTS)
def test_agreement_is_near_what_a_person_says_of_each_pair(agent: str, verdict: Verdict):
    measured = of_pairs(AGENTS[agent])
    least, most = BOUNDS[verdict]
    outside = {
        pair: measured[pair] for pair in AGENTS[agent].pairs[verdict] if not least <= measured[pair] <= most + 1e-6
    }
    assert outside == {}


@pytest.mark.parametrize("agent", AGENTS)
def test_pairs_stand_in_the_order_of_their_verdicts(agent: str):
    measured, pairs = of_pairs(AGENTS[agent]), AGENTS[agent].pairs
    same, partly, different = ([measured[pair] for pair in pairs[verdict]] for verdict in BOUNDS)
    assert min(same) > max(partly)
    assert min(partly) > max(different)


def test_there_are_enough_pairs_of_enough_agents():
    assert sum(len(pairs) for agent in AGENTS.values() for pairs in agent.pairs.values()) >= 100
    assert all(len(agent.pairs[verdict]) >= 3 for agent in AGENTS.values() for verdict in BOUNDS)


def test_two_refunds_stay_apart_when_another_run_of_the_bank_shipped_something():
    credit, again, card = (
        ran(call("refund_order", order_id=number, method=method))
        for number, method in (("W1", "store_credit"), ("W2", "store_credit"), ("W3", "original_payment"))
    )
    shipped = ran(call("ship_order", order_id="W4", speed="express"))
    for bank in ([credit, again, card], [credit, again, card, shipped]):
        table = agreement([numbers(moves_of(run)) for run in bank])
        assert table[0, 1] >= SAME
        assert table[0, 2] < SAME


def test_a_failed_call_is_no_move_whatever_the_client_called_its_status():
    good = call("refund_order", order_id="W1", method="store_credit")
    assert moves_of(ran(failed("refund_order", order_id="W1", method="card"), good)) == moves_of(ran(good))
    assert moves_of(ran({**good, "status": "error"})) == []


def test_a_run_whose_calls_all_failed_has_no_plan_even_if_it_wrote_one():
    run = StoredRun("a task", "success", [failed("refund_order", order_id="W1")], plan=["Refund the order"])
    assert moves_of(run) == []


def test_a_call_that_is_sent_again_is_one_call():
    good = call("refund_order", order_id="W1", method="store_credit")
    assert moves_of(ran(good, good, good)) == moves_of(ran(good))


def test_what_changes_something_weighs_more_than_what_looks_something_up():
    moves = moves_of(ran(call("get_order", order_id="W1"), call("cancel_order", order_id="W1")))
    assert (moves.count("tool:get_order"), moves.count("tool:cancel_order")) == (1, 4)


@pytest.mark.parametrize(
    ("arguments", "move"),
    [
        ({"method": "store_credit"}, "method=store_credit"),
        ({"approved": True}, "approved=true"),
        ({"days": 30}, "days=30"),
        ({"days": "30"}, "days=30"),
        ({"days": 30.0}, "days=30"),
        ({"priority": "High"}, "priority=high"),
        ({"reason": "No longer needed"}, "reason=no_longer_needed"),
        ({"status": "退款"}, "status=退款"),
        ({"estado": "Pagado"}, "estado=pagado"),
        ({"Priorität": "Hoch"}, "Priorität=hoch"),
        ({"plan": "Premium"}, "plan=premium"),
        ({"discount": 0.25}, "discount=0.25"),
        ({"object": "mug 2"}, "object=mug"),
        ({"new": {"color": "red"}}, "new.color=red"),
        ({"items": [{"new": {"size": "XL"}}]}, "items.new.size=xl"),
        ({"tags": ["urgent"]}, "tags=urgent"),
        ({"tags": []}, "tags=<empty>"),
        ({"order_id": "W1001"}, "order_id=<id>"),
        ({"order_id": 1001}, "order_id=<id>"),
        ({"amount": 20}, "amount=<number>"),
        ({"score": 123456}, "score=<number>"),
        ({"score": math.nan}, "score=<number>"),
        ({"score": 10**400}, "score=<number>"),
        ({"first_name": "mia"}, "first_name=<name>"),
        ({"userName": "mia"}, "userName=<name>"),
        ({"greeting": "Mia"}, "greeting=<text>"),
        ({"to": "mia@example.com"}, "to=<email>"),
        ({"link": "https://example.com/x"}, "link=<url>"),
        ({"path": "src/a.py"}, "path=<path>"),
        ({"start": "2024-05-01T10:00"}, "start=<date>"),
        ({"start": "tomorrow"}, "start=<date>"),
        ({"city": "Bonn"}, "city=<place>"),
        ({"body": "thanks"}, "body=<text>"),
        ({"remark": "the customer was angry today"}, "remark=<text>"),
        ({"W1001": 2}, "<key>=<id>"),
        ({"a": {"b": {"c": {"d": 1}}}}, "a.b.c.d=1"),
        ({"a": {"b": {"c": {"d": {"e": {"f": 1}}}}}}, "a.b.c.d.e=<object>"),
        ({"side": "BUY"}, "side=buy"),
        ({"note": "Yes"}, "note=<text>"),
        ({"muted": "OFF"}, "muted=off"),
        ({"key": "Control+C"}, "key=control_c"),
        ({"key": "report.pdf"}, "key=<id>"),
        ({"api_key": "Secret"}, "api_key=<id>"),
        ('{"days": 14}', "days=14"),
    ],
)
def test_a_value_is_shown_if_it_tells_plans_apart_and_its_type_otherwise(arguments: object, move: str):
    run = ran({**call("change"), "input": arguments})
    assert set(moves_of(run)) == {"tool:change", f"change.{move}"}


@pytest.mark.parametrize("left_out", [None, {}, "", "  ", {"comment": None}, {"comment": ""}])
def test_an_argument_that_was_not_passed_is_no_move(left_out: object):
    assert set(moves_of(ran({**call("change"), "input": left_out}))) == {"tool:change"}


@pytest.mark.parametrize(
    ("run", "move"),
    [
        (acted("heat mug 1 with microwave 1"), "act:heat microwave"),
        (acted("put mug 1 in/on shelf 2"), "act:put shelf"),
        (acted("go to the kitchen"), "act:go kitchen"),
        (acted("drop the red ball"), "act:drop ball"),
        (acted("click[Buy Now]"), "act:click buy"),
        (ran({**call("step"), "input": "pick_up(mug_1)"}), "act:pick up mug"),
        (ran(call("robot", command="cut tomato 1 with knife 2")), "act:cut tomato"),
        (queried("update orders set status = 'paid' where id = 7"), "sql:update orders"),
        (queried("update orders set status = 'paid' where id = 7"), "sql.status=paid"),
        (queried("with a as (select 1) delete from carts using a"), "sql:delete carts"),
        (queried("CREATE UNIQUE INDEX i ON orders (total)"), "sql:create index"),
        (queried("alter table only users rename to people"), "sql:alter table rename"),
        (queried("insert into staff (role, active) values ('admin', false)"), "sql.role=admin"),
        (queried("insert into staff (role, active) values (coalesce('a', 'b'), false)"), "sql.active=false"),
        (queried("update tickets set type = 'bug' where ticket_id = 1"), "sql.type=bug"),
        (typed("sudo systemctl restart nginx && sleep 1"), "shell:systemctl restart=nginx"),
        (typed("git -C /srv/x pull"), "shell:git pull"),
        (typed("bash -c 'npm run build'"), "shell:npm run=build"),
        (typed("pip install 'httpx==0.27'"), "shell:pip install=httpx"),
        (typed("./scripts/deploy.sh prod"), "shell:run=deploy"),
        (typed("./scripts/deploy.sh prod"), "shell:run=deploy prod"),
        (typed("curl -sXDELETE https://a.com/v1/users/7"), "shell:curl delete:/users"),
        (typed("""curl https://a.com/orders --json '{"a": 1}'"""), "shell:curl post:/orders"),
        (typed("curl -sG https://a.com/orders -d state=open"), "shell:curl get:/orders"),
        (typed("curl https://a.com/orders --get --data state=open"), "shell:curl get:/orders"),
        (typed("curl https://a.com/-G -d state=open"), "shell:curl post"),
        (typed("curl"), "shell:curl get"),
        (typed("ssh -p 22 web1 'cd /srv && git pull'"), "shell:git pull"),
        (typed("kubectl exec -n shop web -- redis-cli flushall"), "shell:redis-cli=flushall"),
        (typed("terraform destroy --target=web --parallelism 5"), "shell:terraform destroy --parallelism=5"),
        (typed("""psql shop -c "delete from carts where id = 3" """), "sql:delete carts"),
        (ran(call("run", command=["git", "push", "origin"])), "shell:git push"),
        (ran(call("run", command="make test")), "shell:make=test"),
        (ran(call("python", code="import pandas as pd\npd.read_csv('a.csv').mean()")), "code:read_csv"),
        (ran(call("http", method="POST", url="https://a.com/v1/orders/7/refunds?x=1")), "http:/orders/refunds"),
        (ran(call("gql", query="query A { me { id } all: orders(first: 5) { total } }")), "gql:orders"),
        (ran(call("invoke", functionName="get_order", input={"size": "XL"})), "get_order.size=xl"),
        (ran(call("click", selector="#add-to-cart")), "click.selector=add_to_cart"),
        (planned("Refunding order W1"), "word:refund"),
        (planned("退款"), "word:退款"),
    ],
)
def test_a_statement_shows_what_it_does(run: StoredRun, move: str):
    assert move in moves_of(run)


def test_an_alter_statement_shows_its_change_and_not_its_own_first_word():
    moves = set(moves_of(queried("alter table users add column age int")))
    assert {move for move in moves if move.startswith("sql:alter table ")} == {
        "sql:alter table users", "sql:alter table add",
    }  # fmt: skip


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from orders where extract(year from paid_at) = 2024",
        "select trim(both from paid_at) from orders",
        "select total from orders where due_at is distinct from paid_at",
    ],
)
def test_a_column_after_the_from_of_a_function_or_a_comparison_is_no_table(query: str):
    moves = moves_of(queried(query))
    assert "sql:select orders" in moves
    assert "sql:select paid_at" not in moves


def household(task: str, *actions: str) -> StoredRun:
    """Returns a run of actions in words."""
    return replace(ran(*(call("act", command=action) for action in actions)), task=task)


def test_an_object_that_the_task_names_is_data_and_where_it_was_found_is_none():
    heated = household("put a hot mug on desk.", "go to drawer 1", "take mug 1 from drawer 1", "go to desk 1")
    assert set(moves_of(heated)) == {"tool:act", "act:go", "act:take", "act:take <named>", "act:go <named>"}
    two = replace(
        ran(call("take_object", object="mug 2", place="shelf 1"), call("go_to", place="bed 1")), task="2 mugs"
    )
    assert set(moves_of(two)) == {
        "tool:take_object", "take_object.object=<named>", "take_object.place=<place>", "tool:go_to",
    }  # fmt: skip


def test_a_value_that_the_task_names_is_data_but_no_choice_among_few():
    def lit(task: str, **values: object) -> StoredRun:
        return replace(ran(call("set_light", **values)), task=task)

    kitchen, porch, dark = (
        lit("turn on the lamp in the kitchen", device="kitchen_lamp", state="on"),
        lit("porch strip on please", device="porch_strip", state="on"),
        lit("turn off the lamp in the kitchen", device="kitchen_lamp", state="off"),
    )
    assert moves_of(kitchen) == moves_of(porch)
    assert set(moves_of(kitchen)) ^ set(moves_of(dark)) == {"set_light.state=on", "set_light.state=off"}
    large = lit("a large blue one", device="strip", size="large")
    assert {"set_light.device=strip", "set_light.size=large"} < set(moves_of(large))


def test_a_label_is_a_move_and_no_text_of_a_lesson():
    call_of = call("press", element="Delete account", button="Laptop")
    run = replace(ran(call_of), task="buy the laptop")
    assert set(moves_of(run)) == {"tool:press", "press.element=delete_account", "press.button=<named>"}
    assert told("element", "Mia Li") == told("key", "Mia") == ""


def test_a_switch_is_a_choice_even_if_the_task_says_it():
    moves = moves_of(replace(ran(call("set_light", porch="On", hall="No")), task="On the porch, no light in the hall"))
    assert {"set_light.porch=on", "set_light.hall=no"} < set(moves)


def test_runs_of_one_kind_agree_more_than_runs_with_one_object():
    hot = household(
        "put a hot mug on desk.",
        *("go to shelf 1", "go to drawer 2", "open drawer 2", "take mug 1 from drawer 2"),
        *("go to microwave 1", "heat mug 1 with microwave 1", "go to desk 1", "put mug 1 in/on desk 1"),
    )
    warm = household(
        "heat some egg and put it in bed.",
        *("go to fridge 1", "open fridge 1", "take egg 2 from fridge 1"),
        *("go to microwave 1", "heat egg 2 with microwave 1", "go to bed 1", "put egg 2 in/on bed 1"),
    )
    cold = household(
        "put a cool mug on desk.",
        *("go to shelf 1", "go to drawer 2", "open drawer 2", "take mug 1 from drawer 2"),
        *("go to fridge 1", "cool mug 1 with fridge 1", "go to desk 1", "put mug 1 in/on desk 1"),
    )
    table = agreement([numbers(moves_of(run)) for run in (hot, warm, cold)])
    assert table[0, 1] > table[0, 2] + 0.2


@pytest.mark.parametrize(
    "text", ["update my address, please", "drop us a line", "select a gift for Ann", "go to the shop"]
)
def test_a_text_that_begins_like_a_statement_is_none(text: str):
    assert set(moves_of(ran(call("send", body=text)))) == {"tool:send", "send.body=<text>"}


@pytest.mark.parametrize("text", ["vacuum cleaner", "copy of a lease", "call ann (at home)", "begin; stop", "commit"])
def test_words_of_a_search_are_no_statement_where_the_tool_runs_no_sql(text: str):
    assert set(moves_of(ran(call("search_products", query=text)))) == {"tool:search_products"}


def test_a_transaction_without_a_statement_is_no_move():
    assert set(moves_of(ran(call("run_sql", query="BEGIN"), call("run_sql", query="COMMIT;")))) == {"tool:run_sql"}


def test_a_bound_of_ids_is_data():
    one, other = queried("select a from users where id > 7"), queried("select a from users where id < 5")
    assert moves_of(one) == moves_of(other)


def test_a_plan_shows_no_ids_names_or_numbers():
    words = moves_of(planned("Ask Mia Li (mia@example.com) for order W1001", "Pay 250 euros to `acme` by 2024-05-01"))
    assert words == ["word:ask", "word:order", "word:pay", "word:euro"]


def test_moves_of_a_run_are_few_and_the_same_each_time():
    long = ran(*(call(f"tool_{'ab'[n % 2]}{'x' * n}", place_of=f"kind {'y' * (n % 20)}") for n in range(400)))
    assert len(moves_of(long)) == MOST_MOVES
    assert moves_of(long) == moves_of(long)


@settings(max_examples=80, deadline=2_000)
@given(
    st.lists(st.tuples(st.sampled_from(["act", "bash", "run_sql", "change", "get_it"]) | st.text(), JSON), max_size=6)
)
def test_any_input_has_moves(calls: list[tuple[str, Any]]):
    run = ran(*({"tool": tool, "input": value, "output": "done", "status": "ok"} for tool, value in calls))
    moves = moves_of(run)
    assert moves == moves_of(run)
    assert all(isinstance(move, str) and move for move in moves)
    assert len(moves) <= MOST_MOVES


@settings(max_examples=60, deadline=2_000)
@given(st.lists(st.text(max_size=500), max_size=10))
def test_any_plan_has_words(plan: list[str]):
    assert all(move.startswith("word:") for move in moves_of(planned(*plan)))


def test_only_the_outer_fields_of_a_query_are_moves():
    query = """mutation Cancel($id: ID = "{") @slow {  # { cancelAll }
        first: cancelOrder(id: $id, note: "} { refundOrder") @include(if: $sure) { ok ...Done }
    }
    fragment Done on Order { total }"""
    assert set(moves_of(ran(call("shop", query=query)))) == {"tool:shop", "gql:mutation", "gql:cancelorder"}


@pytest.mark.parametrize(
    "made",
    [
        call("create_template", name="welcome_mail", params={"size": "XL"}),
        call("call_tool", name="welcome mail", params={"size": "XL"}),
        call("call_tool", name="welcome_mail", params="size XL"),
    ],
)
def test_a_name_beside_parameters_is_a_tool_only_if_the_tool_calls_others(made: dict[str, Any]):
    assert f"tool:{made['tool']}" in moves_of(ran(made))


def test_a_json_text_that_is_a_files_content_is_data():
    assert "write.content=<text>" in moves_of(ran(call("write", path="a.json", content='{"status": "open"}')))


def test_an_address_after_a_script_is_data():
    assert set(moves_of(typed("python send.py ann@a.com"))) == {"tool:bash", "shell:run", "shell:run=send"}


@pytest.mark.parametrize("line", ["pytest <&-", "pytest 3<&-", "pytest 2>&- <&0"])
def test_a_descriptor_that_is_closed_is_no_word_of_a_command(line: str):
    assert [command.words for command in commands(line)] == [()]


def test_a_command_that_prepares_others_is_a_move_only_beside_no_change():
    assert set(moves_of(typed("ls /srv", "mkdir /srv/out"))) == {"tool:bash", "shell:ls", "shell:mkdir"}
    assert set(moves_of(typed("mkdir /srv/out && touch a", "reboot"))) == {"tool:bash", "shell:reboot"}
    wrote = ran(call("bash", command="mkdir /srv/out"), call("write_file", path="/srv/out/a", content="1"))
    assert "shell:mkdir" not in moves_of(wrote)


def test_hosts_behind_hosts_are_followed_three_deep():
    assert "shell:reboot" in moves_of(typed("ssh a ssh b docker exec c reboot"))
    assert len(set(moves_of(typed("ssh a " * 5_000)))) < 5


@pytest.mark.parametrize(
    "value",
    [
        "x" * 2_000_000,
        "select " * 300_000,
        "go to drawer 1 " * 100_000,
        "git pull && " * 100_000,
        "退款" * 500_000,
        " " * 2_000_000,
        "{" * 1_000_000,
        "query " * 300_000,
        "mutation { " * 200_000,
        [[["a"] * 1_000] * 100] * 100,
        {f"key{'x' * (n % 30)}{n}": {"a": [{"b": None}] * 50} for n in range(20_000)},
    ],
    ids=["word", "sql", "act", "shell", "chinese", "blanks", "braces", "query", "mutation", "lists", "objects"],
)
@pytest.mark.parametrize("tool", ["act", "bash", "run_sql", "change"])
def test_a_megabyte_is_read_in_no_time(tool: str, value: object):
    run = ran({**call(tool), "input": {"command": value}}, {**call(tool), "input": value})
    assert len(run.calls) == 2
    started = time.process_time()
    moves_of(run)
    assert time.process_time() - started < 2


@pytest.mark.parametrize(("domain", "least"), [("retail", 0.95), ("airline", 0.8), ("telecom", 0.88)])
def test_runs_of_one_task_agree_more_than_runs_of_two(domain: str, least: float):
    file = DATA / "tau" / domain / "runs.jsonl"
    if not file.exists():
        pytest.skip(f"{file} is not here")
    with file.open() as lines:
        solved = [run for run in map(json.loads, lines) if run["reward"] == 1][:300]
    plans = [ran(*({**step, "status": "error" if step["error"] else "ok"} for step in run["steps"])) for run in solved]
    table = agreement([numbers(moves_of(plan)) for plan in plans])
    task = np.array([run["task_id"] for run in solved])
    one, other = np.triu_indices(len(solved), 1)
    same = task[one] == task[other]
    pairs = table[one, other]
    above = (pairs[same][:, None] > pairs[~same][None, :]).mean()
    ties = (pairs[same][:, None] == pairs[~same][None, :]).mean()
    assert above + ties / 2 >= least


def test_codes_of_one_field_are_alike_whether_or_not_they_have_a_digit():
    runs = [ran(call("cancel_booking", booking=code, refund="voucher")) for code in ("DXYZDZ", "9PMPVJ")]
    assert moves_of(runs[0]) == moves_of(runs[1])


def test_an_object_that_the_task_names_is_data_in_a_script_without_spaces():
    runs = [
        StoredRun(f"{visit}を月曜日に", "success", [call("calendar_update", visit=visit, notify=True)])
        for visit in ("歯医者", "面接")
    ]
    assert moves_of(runs[0]) == moves_of(runs[1])
    assert "calendar_update.visit=<named>" in moves_of(runs[0])


def test_an_amount_is_data_but_none_at_all_is_a_choice():
    free, cheap, dear = (moves_of(ran(call("change_booking", id="A1", fee=fee))) for fee in (0, 75, 90))
    assert cheap == dear
    assert "change_booking.fee=0" in free
