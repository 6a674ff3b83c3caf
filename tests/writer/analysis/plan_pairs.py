"""Runs of several kinds of agents, and pairs of them judged by hand: the same way, partly the same, or another way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from writer.analysis.calls import StoredRun

Verdict = Literal["same", "partly", "different"]


@dataclass(frozen=True, slots=True)
class Agent:
    """Runs by name, and for each verdict the pairs of names."""

    runs: Mapping[str, StoredRun]
    pairs: Mapping[Verdict, Sequence[tuple[str, str]]]


def call(tool: str, /, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "input": arguments, "output": "done", "status": "ok"}


def failed(tool: str, /, **arguments: Any) -> dict[str, Any]:
    """A call that failed, though the client called its status ok."""
    return {**call(tool, **arguments), "output": "Error: not allowed"}


def ran(*calls: dict[str, Any]) -> StoredRun:
    return StoredRun("a task", "success", calls)


def asked(task: str, *calls: dict[str, Any]) -> StoredRun:
    return StoredRun(task, "success", calls)


def acted(*texts: str) -> StoredRun:
    return ran(*(call("act", action=text) for text in texts))


def queried(*texts: str) -> StoredRun:
    return ran(call("list_tables"), *(call("run_sql", query=text) for text in texts))


def typed(*lines: str) -> StoredRun:
    return ran(*(call("bash", command=line) for line in lines))


def planned(*steps: str) -> StoredRun:
    return StoredRun("a task", "success", plan=steps)


SUPPORT = Agent(
    runs={
        "credit": ran(
            call("find_user", email="mia.li@example.com"),
            call("get_order", order_id="W1001"),
            call("refund_order", order_id="W1001", method="store_credit", amount=20),
        ),
        "credit after card failed": ran(
            call("find_user", email="bob@example.com"),
            call("get_order", order_id="W2002"),
            failed("refund_order", order_id="W2002", method="original_payment", amount=799.5),
            call("refund_order", order_id="W2002", method="store_credit", amount=799.5),
        ),
        "credit sent twice": ran(
            call("find_user", email="eve@example.com"),
            call("get_order", order_id="77120"),
            call("refund_order", order_id="77120", method="store_credit", amount=5),
            call("refund_order", order_id="77120", method="store_credit", amount=5),
        ),
        "card": ran(
            call("find_user", email="zoe@example.com"),
            call("get_order", order_id="W3003"),
            call("refund_order", order_id="W3003", method="original_payment", amount=20),
        ),
        "credit and mail": ran(
            call("get_order", order_id="W4004"),
            call("refund_order", order_id="W4004", method="store_credit", amount=61),
            call("send_email", to="ann@example.com", subject="Your refund", body="We have refunded your order."),
        ),
        "exchange": ran(
            call("get_order", order_id="W5005"),
            call("get_product", product_id="P12"),
            call("exchange_items", order_id="W5005", item_ids=["1008"], new_item_ids=["2009"], payment_id="card_22"),
        ),
        "exchange of two": ran(
            call("find_user", email="kim@example.com"),
            call("get_order", order_id="W6006"),
            call("get_product", product_id="P44"),
            call("get_product", product_id="P45"),
            call("exchange_items", order_id="W6006", item_ids=["31", "32"], new_item_ids=["41", "42"], payment_id="p9"),
        ),
        "cancel": ran(
            call("get_order", order_id="W7007"),
            call("cancel_order", order_id="W7007", reason="no longer needed"),
        ),
        "cancel again": ran(
            call("find_user", email="jo@example.com"),
            call("get_order", order_id="W7107"),
            call("cancel_order", order_id="W7107", reason="No longer needed"),
        ),
        "cancel a mistake": ran(
            call("get_order", order_id="W7207"),
            call("cancel_order", order_id="W7207", reason="ordered by mistake"),
        ),
        "ship": ran(
            call("get_order", order_id="W8008"),
            call("ship_replacement", order_id="W8008", speed="express", items=[{"sku": "A-1", "quantity": 1}]),
        ),
        "ship again": ran(
            call("get_order", order_id="W8108"),
            call("ship_replacement", order_id="W8108", speed="express", items=[{"sku": "B-7", "quantity": 1}]),
        ),
        "ship slowly": ran(
            call("get_order", order_id="W8208"),
            call("ship_replacement", order_id="W8208", speed="standard", items=[{"sku": "C-3", "quantity": 1}]),
        ),
        "address": ran(
            call("find_user", email="lee@example.com"),
            call("update_address", user_id="lee_1", street="12 Main St", city="Bonn", zip="53111", country="DE"),
        ),
        "address again": ran(
            call("find_user", email="ada@example.com"),
            failed("update_address", user_id="ada_9", street="1 Rue X", city="Lyon", zip="?", country="France"),
            call("update_address", user_id="ada_9", street="1 Rue X", city="Lyon", zip="69001", country="France"),
        ),
        "approve": ran(
            call("get_return", return_id="R1"),
            call("decide_return", return_id="R1", approved=True, days=30),
        ),
        "approve again": ran(
            call("get_return", return_id="R2"),
            call("decide_return", return_id="R2", approved=True, days="30", comment=None),
        ),
        "approve for two weeks": ran(
            call("get_return", return_id="R3"),
            call("decide_return", return_id="R3", approved=True, days=14),
        ),
        "refuse": ran(
            call("get_return", return_id="R4"),
            call("decide_return", return_id="R4", approved=False, days=0),
        ),
        "only failed": ran(
            call("get_order", order_id="W9"), failed("refund_order", order_id="W9", method="store_credit", amount=1)
        ),
    },
    pairs={
        "same": [
            ("credit", "credit after card failed"),
            ("credit", "credit sent twice"),
            ("exchange", "exchange of two"),
            ("cancel", "cancel again"),
            ("ship", "ship again"),
            ("address", "address again"),
            ("approve", "approve again"),
        ],
        "partly": [
            ("credit", "card"),
            ("credit after card failed", "card"),
            ("credit", "credit and mail"),
            ("cancel", "cancel a mistake"),
            ("ship", "ship slowly"),
            ("approve", "approve for two weeks"),
            ("approve", "refuse"),
        ],
        "different": [
            ("credit", "exchange"),
            ("credit", "ship"),
            ("card", "ship"),
            ("credit", "only failed"),
            ("cancel", "address"),
            ("approve", "cancel"),
            ("exchange", "ship again"),
            ("refuse", "card"),
        ],
    },
)
"""A shop's support agent: one tool for each action."""

HOUSEHOLD = Agent(
    runs={
        "hot mug": acted(
            "go to countertop 1",
            "take mug 1 from countertop 1",
            "go to microwave 1",
            "heat mug 1 with microwave 1",
            "go to coffeemachine 1",
            "put mug 1 in/on coffeemachine 1",
        ),
        "hot mug, looked for": acted(
            "look",
            "go to countertop 3",
            "examine countertop 3",
            "go to countertop 2",
            "take mug 4 from countertop 2",
            "go to microwave 1",
            "heat mug 4 with microwave 1",
            "go to coffeemachine 1",
            "put mug 4 in/on coffeemachine 1",
        ),
        "hot mug, tried too early": ran(
            call("act", action="go to countertop 2"),
            failed("act", action="cool mug 2 with fridge 1"),
            call("act", action="take mug 2 from countertop 2"),
            call("act", action="go to microwave 1"),
            call("act", action="heat mug 2 with microwave 1"),
            call("act", action="go to coffeemachine 1"),
            call("act", action="put mug 2 in/on coffeemachine 1"),
        ),
        "cold mug": acted(
            "go to countertop 1",
            "take mug 1 from countertop 1",
            "go to fridge 1",
            "cool mug 1 with fridge 1",
            "go to coffeemachine 1",
            "put mug 1 in/on coffeemachine 1",
        ),
        "hot apple": acted(
            "go to diningtable 1",
            "take apple 1 from diningtable 1",
            "go to microwave 1",
            "heat apple 1 with microwave 1",
            "go to garbagecan 1",
            "put apple 1 in/on garbagecan 1",
        ),
        "clean knife": acted(
            "go to drawer 1",
            "open drawer 1",
            "take knife 1 from drawer 1",
            "go to sinkbasin 1",
            "clean knife 1 with sinkbasin 1",
            "go to drawer 2",
            "put knife 1 in/on drawer 2",
        ),
        "clean knife, far drawer": acted(
            "go to drawer 1",
            "open drawer 1",
            "go to drawer 2",
            "open drawer 2",
            "go to drawer 3",
            "open drawer 3",
            "take knife 2 from drawer 3",
            "go to sinkbasin 1",
            "clean knife 2 with sinkbasin 1",
            "go to drawer 1",
            "put knife 2 in/on drawer 1",
        ),
        "clean fork": acted(
            "go to drawer 4",
            "open drawer 4",
            "take fork 1 from drawer 4",
            "go to sinkbasin 1",
            "clean fork 1 with sinkbasin 1",
            "go to drawer 2",
            "put fork 1 in/on drawer 2",
        ),
        "lit book": acted("go to shelf 1", "take book 1 from shelf 1", "go to desk 1", "use desklamp 1"),
        "lit book again": acted(
            "go to shelf 4", "inventory", "take book 3 from shelf 4", "go to desk 2", "use desklamp 2"
        ),
        "lit pen": acted("go to shelf 2", "take pen 1 from shelf 2", "go to desk 1", "use desklamp 1"),
        "fan on": acted("go to shelf 1", "turn on fan 1"),
        "fan on again": acted("go to shelf 4", "look", "turn the fan 2 on"),
        "fan off": acted("go to shelf 1", "turn off fan 1"),
        "blinds up": acted("go to window 1", "roll up blinds 1"),
        "blinds down": acted("go to window 1", "roll down blinds 1"),
        "two soaps": acted(
            "go to bathtub 1",
            "take soapbar 1 from bathtub 1",
            "go to cabinet 1",
            "put soapbar 1 in/on cabinet 1",
            "go to toilet 1",
            "take soapbar 2 from toilet 1",
            "go to cabinet 1",
            "put soapbar 2 in/on cabinet 1",
        ),
        "one soap": acted(
            "go to bathtub 1", "take soapbar 1 from bathtub 1", "go to cabinet 2", "put soapbar 1 in/on cabinet 2"
        ),
    },
    pairs={
        "same": [
            ("hot mug", "hot mug, looked for"),
            ("hot mug", "hot mug, tried too early"),
            ("clean knife", "clean knife, far drawer"),
            ("lit book", "lit book again"),
            ("fan on", "fan on again"),
        ],
        "partly": [
            ("hot mug", "cold mug"),
            ("hot mug", "hot apple"),
            ("clean knife", "clean fork"),
            ("lit book", "lit pen"),
            ("two soaps", "one soap"),
        ],
        "different": [
            ("hot mug", "clean knife"),
            ("cold mug", "lit book"),
            ("hot apple", "two soaps"),
            ("lit pen", "one soap"),
            ("clean fork", "hot apple"),
            ("fan on", "fan off"),
            ("blinds up", "blinds down"),
        ],
    },
)
"""A household robot: one tool for everything, which takes an action in words."""

ANALYST = Agent(
    runs={
        "revenue": queried(
            "SELECT region, SUM(total) FROM orders JOIN customers ON customers.id = orders.customer_id "
            "WHERE created_at >= '2024-01-01' GROUP BY region"
        ),
        "revenue, other words": ran(
            call("list_tables"),
            failed("run_sql", query="select regio, sum(total) from orders group by regio"),
            call(
                "run_sql",
                query="select c.region, sum(o.total) as revenue from orders o join customers c on c.id = o.customer_id "
                "where o.created_at >= '2023-07-01' group by c.region -- by region",
            ),
        ),
        "refunds": queried("SELECT COUNT(*) FROM orders WHERE status = 'refunded' AND created_at > '2024-03-01'"),
        "refunds again": queried("select count(*) from orders where status='refunded' and created_at > '2022-12-24'"),
        "cancelled": queried("SELECT COUNT(*) FROM orders WHERE status = 'cancelled' AND created_at > '2024-03-01'"),
        "mean order": queried("SELECT customer_id, AVG(total) FROM orders GROUP BY customer_id"),
        "change mail": queried("UPDATE customers SET email = 'a@b.com' WHERE id = 17"),
        "change mail again": queried("UPDATE customers SET email='kim@example.org' WHERE id=40412;"),
        "change phone": queried("UPDATE customers SET phone = '+49 30 1234' WHERE id = 17"),
        "index": queried("CREATE INDEX idx_orders_created ON orders (created_at)"),
        "delete carts": queried("DELETE FROM carts WHERE updated_at < '2024-01-01'"),
        "delete carts again": queried("select 1", "delete from carts where updated_at < '2021-05-05'"),
        "delete sessions": queried("DELETE FROM sessions WHERE updated_at < '2024-01-01'"),
        "stock": queried("SELECT sku, quantity FROM inventory WHERE warehouse = 'north' ORDER BY quantity LIMIT 10"),
        "stock again": queried(
            "SELECT sku, quantity FROM inventory WHERE warehouse='north' ORDER BY quantity LIMIT 50"
        ),
        "stock in the south": queried(
            "SELECT sku, quantity FROM inventory WHERE warehouse = 'south' ORDER BY quantity LIMIT 10"
        ),
    },
    pairs={
        "same": [
            ("revenue", "revenue, other words"),
            ("refunds", "refunds again"),
            ("change mail", "change mail again"),
            ("delete carts", "delete carts again"),
            ("stock", "stock again"),
        ],
        "partly": [
            ("refunds", "cancelled"),
            ("change mail", "change phone"),
            ("delete carts", "delete sessions"),
            ("stock", "stock in the south"),
            ("revenue", "mean order"),
        ],
        "different": [
            ("revenue", "change mail"),
            ("refunds", "stock"),
            ("index", "change phone"),
            ("delete carts", "revenue"),
            ("mean order", "stock in the south"),
            ("index", "delete sessions"),
        ],
    },
)
"""An analyst: one tool that runs SQL."""

OPERATOR = Agent(
    runs={
        "restart nginx": typed("systemctl status nginx", "nginx -t", "sudo systemctl restart nginx"),
        "restart nginx again": typed(
            "cat /var/log/nginx/error.log | tail -20", "sudo nginx -t && sudo systemctl restart nginx"
        ),
        "restart postgres": typed("systemctl status postgresql", "sudo systemctl restart postgresql"),
        "deploy": typed("cd /srv/shop && git pull", "docker compose build", "docker compose up -d"),
        "deploy again": ran(
            call("bash", command="git -C /srv/blog status"),
            failed("bash", command="docker-compose restart"),
            call("bash", command="cd /srv/blog && git pull && docker compose build && docker compose up -d --wait"),
        ),
        "deploy without a build": typed("cd /srv/shop && git pull", "docker compose up -d"),
        "free disk": typed(
            "df -h", "du -sh /var/log/* | sort -h", "journalctl --vacuum-size=200M", "docker system prune -f"
        ),
        "free disk again": typed("df -h /", "journalctl --vacuum-time=7d && docker system prune --all -f"),
        "back up": typed(
            "pg_dump shop > /backup/shop.sql", "gzip /backup/shop.sql", "aws s3 cp /backup/shop.sql.gz s3://b1/"
        ),
        "back up again": typed(
            "ls /backup",
            "pg_dump blog > /backup/blog-2024.sql && gzip /backup/blog-2024.sql",
            "aws s3 cp /backup/x.gz s3://b2/",
        ),
        "back up by copy": typed("pg_dump shop > /backup/shop.sql", "scp /backup/shop.sql root@10.0.0.7:/backup"),
        "test": typed("pip install -r requirements.txt", "pytest -q tests/test_orders.py"),
        "test again": typed("ls", "pip install -r requirements-dev.txt && python -m pytest -x tests/test_users.py"),
        "publish": typed("git tag v1.4.2", "git push origin v1.4.2", "python -m build", "twine upload dist/*"),
        "publish again": typed(
            "git tag v2.0.0 && git push origin v2.0.0", "python -m build && twine upload dist/shop-2.0.0.whl"
        ),
        "restart pods": typed("kubectl get pods", "kubectl rollout restart deployment/web"),
        "restart pods again": typed("kubectl get pods -n prod", "kubectl rollout restart deployment/api-7 -n prod"),
        "undo rollout": typed("kubectl get pods", "kubectl rollout undo deployment/web"),
    },
    pairs={
        "same": [
            ("restart nginx", "restart nginx again"),
            ("deploy", "deploy again"),
            ("free disk", "free disk again"),
            ("back up", "back up again"),
            ("test", "test again"),
            ("publish", "publish again"),
            ("restart pods", "restart pods again"),
        ],
        "partly": [
            ("restart nginx", "restart postgres"),
            ("deploy", "deploy without a build"),
            ("back up", "back up by copy"),
            ("restart pods", "undo rollout"),
        ],
        "different": [
            ("restart nginx", "deploy"),
            ("free disk", "back up"),
            ("publish", "test"),
            ("restart postgres", "restart pods"),
            ("back up by copy", "deploy again"),
            ("undo rollout", "publish"),
        ],
    },
)
"""An operator of servers: one tool that runs command lines."""

PLANNER = Agent(
    runs={
        "refund": planned("Look up the order W1001", "Check the return window", "Refund the order to store credit"),
        "refund again": planned(
            "Look up order 77120 of Mia Li", "Check the return window", "Refund this order to a store credit"
        ),
        "refund to card": planned(
            "Look up the order W5", "Check the return window", "Refund the order to the credit card"
        ),
        "trip": planned(
            "Compare flights from Bonn to Lyon", "Book the cheapest flight", "Reserve a hotel near the station"
        ),
        "trip again": planned(
            "Compare the flights from Oslo to Rome on 2024-05-01",
            "Book a cheapest flight",
            "Reserve the hotel near a station",
        ),
        "trip by train": planned(
            "Compare trains from Bonn to Lyon", "Book the cheapest train", "Reserve a hotel near the station"
        ),
        "article": planned(
            "Collect sources about the topic", "Write an outline", "Draft the article", "Ask for a review"
        ),
        "article again": planned(
            "Collecting sources about the topic", "Writing an outline", "Drafting the article", "Asking for a review"
        ),
        "article without review": planned("Collect sources about the topic", "Draft the article", "Publish it"),
        "switch on": planned("Open the panel", "Turn on the heating", "Lock the panel"),
        "switch off": planned("Open the panel", "Turn off the heating", "Lock the panel"),
        "more servers": planned("Read the load of the cluster", "Scale up the workers"),
        "fewer servers": planned("Read the load of the cluster", "Scale down the workers"),
        "wrapped": planned("Pack the parcel with a gift box", "Hand it to the courier"),
        "not wrapped": planned("Pack the parcel without a gift box", "Hand it to the courier"),
        "calls": planned("refund_order(order_id='W1', method=gift_card)", "send_email(to='a@b.com')"),
        "calls again": planned("refund_order(order_id='W29', method=gift_card)", "send_email(to='kim@example.org')"),
        "kündigen": planned("Vertrag des Kunden suchen", "Kündigungsfrist prüfen", "Vertrag kündigen und bestätigen"),
        "kündigen, noch einmal": planned(
            "Den Vertrag des Kunden suchen", "Die Kündigungsfrist prüfen", "Vertrag kündigen, bestätigen"
        ),
        "退款": planned("查询订单", "退款到信用卡", "发送确认邮件"),
        "退款又一次": planned("查询订单 88812", "退款到信用卡", "发送确认邮件"),
        "换货": planned("查询订单", "更换商品并寄出", "发送确认邮件"),
    },
    pairs={
        "same": [
            ("refund", "refund again"),
            ("trip", "trip again"),
            ("article", "article again"),
            ("calls", "calls again"),
            ("kündigen", "kündigen, noch einmal"),
            ("退款", "退款又一次"),
        ],
        "partly": [
            ("refund", "refund to card"),
            ("trip", "trip by train"),
            ("article", "article without review"),
            ("switch on", "switch off"),
            ("more servers", "fewer servers"),
            ("wrapped", "not wrapped"),
            ("退款", "换货"),
        ],
        "different": [
            ("refund", "trip"),
            ("article", "trip by train"),
            ("kündigen", "refund"),
            ("退款", "article"),
            ("calls", "trip again"),
            ("换货", "kündigen"),
        ],
    },
)
"""A planner without tool calls: plans in prose, in three languages."""

ASSISTANT = Agent(
    runs={
        "meeting": ran(
            call("search_contacts", query="Kim"),
            call("find_free_slots", attendees=["kim@example.com"], duration_minutes=30),
            call(
                "create_event",
                title="Budget",
                start="2024-05-02T10:00:00Z",
                attendees=["kim@example.com"],
                recurrence="none",
            ),
        ),
        "meeting again": ran(
            call("find_free_slots", attendees=["lee@example.org", "ann@example.org"], duration_minutes=45),
            call(
                "create_event",
                title="lunch with lee",
                start="tomorrow at noon",
                attendees=["lee@example.org", "ann@example.org"],
                recurrence="none",
            ),
        ),
        "weekly meeting": ran(
            call("find_free_slots", attendees=["kim@example.com"], duration_minutes=30),
            call(
                "create_event",
                title="Stand-up",
                start="2024-05-06T09:00:00Z",
                attendees=["kim@example.com"],
                recurrence="weekly",
            ),
        ),
        "move": ran(
            call("list_events", date="2024-05-02"),
            call("update_event", event_id="ev_81", start="2024-05-03T10:00:00Z", notify=True),
        ),
        "move again": ran(
            call("list_events", date="today"),
            failed("delete_event", event_id="ev_12"),
            call("update_event", event_id="ev_12", start="2024-07-07 08:30", notify=True),
        ),
        "move silently": ran(
            call("list_events", date="2024-05-02"),
            call("update_event", event_id="ev_9", start="2024-05-03T10:00:00Z", notify=False),
        ),
        "decline": ran(
            call("list_events", date="2024-06-01"),
            call("respond_to_event", event_id="ev_3", response="declined", comment="I am travelling."),
        ),
        "answer": ran(
            call("search_mail", query="invoice"),
            call("read_mail", message_id="m-18"),
            call("reply", message_id="m-18", body="Thank you, we have paid it."),
        ),
        "answer again": ran(
            call("search_mail", query="offer from Oslo"),
            call("search_mail", query="offer"),
            call("read_mail", message_id="m-4711"),
            call("reply", message_id="m-4711", body="We accept your offer, and look forward to working with you."),
        ),
        "answer and archive": ran(
            call("read_mail", message_id="m-77"),
            call("reply", message_id="m-77", body="Done."),
            call("archive_mail", message_id="m-77"),
        ),
        "file": ran(
            call("search_mail", query="receipts 2023"),
            call("archive_mail", message_id="m-2"),
            call("archive_mail", message_id="m-3"),
        ),
        "file again": ran(
            call("search_mail", query="newsletters"),
            call("archive_mail", message_id="m-200"),
            call("archive_mail", message_id="m-300"),
            call("archive_mail", message_id="m-400"),
        ),
        "remind": ran(call("set_reminder", text="Call Ann", at="2024-05-05T08:00", priority="high")),
        "remind again": ran(call("set_reminder", text="pay the rent", at="friday", priority="High")),
        "remind gently": ran(call("set_reminder", text="water the plants", at="2024-08-01", priority="low")),
    },
    pairs={
        "same": [
            ("meeting", "meeting again"),
            ("move", "move again"),
            ("answer", "answer again"),
            ("file", "file again"),
            ("remind", "remind again"),
        ],
        "partly": [
            ("meeting", "weekly meeting"),
            ("move", "move silently"),
            ("answer", "answer and archive"),
            ("file", "answer and archive"),
            ("remind", "remind gently"),
        ],
        "different": [
            ("meeting", "move"),
            ("decline", "answer"),
            ("decline", "move"),
            ("file", "meeting"),
            ("remind", "answer"),
            ("weekly meeting", "remind gently"),
        ],
    },
)
"""An office assistant: calendar and mail."""

CODER = Agent(
    runs={
        "fix": ran(
            call("grep", pattern="def total", path="src"),
            call("read_file", path="src/orders.py"),
            call("edit_file", path="src/orders.py", old_string="a - b", new_string="a + b"),
            call("bash", command="pytest -q tests/test_orders.py"),
        ),
        "fix again": ran(
            call("read_file", path="/repo/app/users/models.py", offset=40, limit=100),
            failed("edit_file", path="/repo/app/users/models.py", old_string="x", new_string="y"),
            call("read_file", path="/repo/app/users/models.py"),
            call("edit_file", path="/repo/app/users/models.py", old_string="if x:", new_string="if not x:\n    y"),
            call("bash", command="cd /repo && python -m pytest tests/users -x 2>&1 | tail -5"),
        ),
        "fix untested": ran(
            call("read_file", path="src/a.py"),
            call("edit_file", path="src/a.py", old_string="1", new_string="2"),
        ),
        "new module": ran(
            call("list_directory", path="src"),
            call("write_file", path="src/mail.py", content="import smtplib\n"),
            call("write_file", path="tests/test_mail.py", content="def test(): ..."),
            call("bash", command="pytest -q tests/test_mail.py"),
        ),
        "new module again": ran(
            call("write_file", path="lib/tax.py", content="RATE = 0.19\n"),
            call("write_file", path="tests/tax.py", content="def test_rate(): ..."),
            call("bash", command="python3 -m pytest tests/tax.py"),
        ),
        "upgrade": ran(
            call("bash", command="pip install --upgrade pydantic"),
            call("bash", command="pip freeze > requirements.txt"),
            call("bash", command="git commit -am 'Upgrade pydantic'"),
        ),
        "upgrade another": ran(
            call("bash", command="pip install -U httpx==0.27"),
            call("bash", command="pip freeze > requirements.txt && git commit -am 'Upgrade httpx'"),
        ),
        "rename": ran(
            call("grep", pattern="OldName", path="."),
            call("bash", command="sed -i s/OldName/NewName/g src/*.py"),
            call("bash", command="ruff check --fix src && mypy src"),
            call("bash", command="git commit -am 'Rename OldName'"),
        ),
        "rename again": ran(
            call("bash", command="grep -rn get_user src | head"),
            call("bash", command="sed -i 's/get_user/find_user/g' src/app/*.py tests/*.py"),
            call("bash", command="ruff check --fix src tests; mypy"),
            call("bash", command="git add -A && git commit -m 'Rename get_user to find_user'"),
        ),
        "pull request": ran(
            call("bash", command="git checkout -b feature/tax"),
            call("bash", command="git push -u origin feature/tax"),
            call("create_pull_request", title="Add tax", body="Adds it.", base="main", draft=False),
        ),
        "draft": ran(
            call("bash", command="git checkout -b wip-3"),
            call("bash", command="git push --set-upstream origin wip-3"),
            call("create_pull_request", title="Try caching", body="Not ready.", base="main", draft=True),
        ),
    },
    pairs={
        "same": [("fix", "fix again"), ("new module", "new module again"), ("rename", "rename again")],
        "partly": [
            ("fix", "fix untested"),
            ("upgrade", "upgrade another"),
            ("pull request", "draft"),
        ],
        "different": [
            ("fix", "upgrade"),
            ("fix untested", "pull request"),
            ("new module", "rename"),
            ("fix", "new module"),
            ("upgrade another", "draft"),
            ("rename again", "fix again"),
        ],
    },
)
"""A coding agent: tools for files beside one for command lines."""

ADMINISTRATOR = Agent(
    runs={
        "deactivate": queried("UPDATE users SET active = false WHERE id = 5"),
        "deactivate again": queried("update users set active=FALSE where id = 77"),
        "activate": queried("UPDATE users SET active = true WHERE id = 5"),
        "ban": queried("UPDATE accounts SET banned = 1 WHERE id = 5"),
        "lift a ban": queried("UPDATE accounts SET banned = 0 WHERE id = 5"),
        "add a column": queried("ALTER TABLE users ADD COLUMN age int"),
        "add it again": queried("select 1", "alter table users add column age integer"),
        "drop a column": queried("ALTER TABLE users DROP COLUMN age"),
        "no discount": queried("UPDATE orders SET discount = NULL WHERE id = 3"),
        "a discount": queried("UPDATE orders SET discount = 20 WHERE id = 3"),
        "another discount": queried("UPDATE orders SET discount = 15 WHERE id = 88"),
        "delete open": queried("DELETE FROM pedidos WHERE estado = 'Pendiente'"),
        "delete paid": queried("DELETE FROM pedidos WHERE estado = 'Pagado'"),
        "delete paid again": queried("delete from pedidos where estado='Pagado' and id > 100"),
        "new admin": queried("INSERT INTO staff (name, role, active) VALUES ('Ann Lee', 'admin', true)"),
        "new admin again": queried("INSERT INTO staff (name, role, active) VALUES ('Bob Kay', 'admin', true)"),
        "new guest": queried("INSERT INTO staff (name, role, active) VALUES ('Ann Lee', 'guest', true)"),
        "new admin, not yet active": queried(
            "INSERT INTO staff (name, role, active) VALUES ('Ann Lee', 'admin', false)"
        ),
        "restore": queried("UPDATE files SET kept = 1 WHERE deleted_at IS NULL"),
        "restore deleted": queried("UPDATE files SET kept = 1 WHERE deleted_at IS NOT NULL"),
    },
    pairs={
        "same": [
            ("deactivate", "deactivate again"),
            ("add a column", "add it again"),
            ("a discount", "another discount"),
            ("delete paid", "delete paid again"),
            ("new admin", "new admin again"),
        ],
        "partly": [
            ("deactivate", "activate"),
            ("ban", "lift a ban"),
            ("add a column", "drop a column"),
            ("no discount", "a discount"),
            ("delete open", "delete paid"),
            ("new admin", "new guest"),
            ("new admin", "new admin, not yet active"),
            ("restore", "restore deleted"),
        ],
        "different": [
            ("deactivate", "add a column"),
            ("ban", "delete open"),
            ("no discount", "drop a column"),
            ("new guest", "a discount"),
        ],
    },
)
"""An administrator of a database: statements that differ in a word or in a value."""

SCRIPTER = Agent(
    runs={
        "create": typed("curl -X POST https://api.shop.com/v1/orders -d '{\"sku\": 1}'"),
        "create again": typed("""curl --data '{"sku": 9}' --request POST 'https://api.shop.com/v1/orders'"""),
        "delete": typed("curl -X DELETE https://api.shop.com/v1/users/7"),
        "close by query": typed("curl 'http://shop.local/admin/tickets?action=close&id=1'"),
        "close by query again": typed('curl -s "http://shop.local/admin/tickets?id=88&action=close"'),
        "list by query": typed("curl 'http://shop.local/admin/tickets?action=list'"),
        "pay": typed("""curl https://a.b/v1/orders/1 -X PATCH --json '{"status": "paid", "note": "called Anna"}'"""),
        "pay again": typed(
            r'curl --request PATCH -d "{\"status\":\"paid\",\"note\":\"Bob wrote\"}" https://a.b/v1/orders/7'
        ),
        "ship": typed(
            """curl https://a.b/v1/orders/1 -X PATCH --json '{"status": "shipped", "note": "called Anna"}'"""
        ),
        "far stop": typed("ssh web1 sudo systemctl stop nginx"),
        "far stop again": typed("ssh -i ~/.ssh/key root@web2 'systemctl stop nginx'"),
        "far stop by document": typed("ssh web1 bash -s <<'END'\nsudo systemctl stop nginx\nEND"),
        "far reboot": typed("ssh web1 sudo reboot"),
        "undo softly": typed("git reset --soft HEAD~1"),
        "undo softly again": typed("git reset --soft 4f2a99c"),
        "undo for good": typed("git reset --hard HEAD~1"),
        "scale down": typed("kubectl scale deploy web --replicas=0"),
        "scale down another": typed("kubectl scale deploy api --replicas 0"),
        "scale up": typed("kubectl scale deploy web --replicas=3"),
        "migrate": typed("python manage.py migrate"),
        "migrate again": typed("python3 shop/manage.py migrate"),
        "flush": typed("python manage.py flush --no-input"),
        "password of anna": typed("passwd anna"),
        "password of bob": typed("sudo passwd bob"),
        "stop container": typed("docker stop anna-db"),
        "stop another container": typed("docker stop bob-web"),
        "look into container": typed("docker exec -it anna-db ls /data"),
        "empty container": typed("docker exec anna-db rm -rf /data"),
        "empty another container": typed("docker exec -u root bob-web rm -rf /srv"),
        "delete pod": typed("kubectl delete pod anna"),
        "delete another pod": typed("kubectl delete pod bob"),
        "push": typed("git push origin feature-anna"),
        "push another": typed("git push origin feature-bob"),
        "force push": typed("git push --force origin feature-anna"),
    },
    pairs={
        "same": [
            ("create", "create again"),
            ("far stop", "far stop again"),
            ("far stop", "far stop by document"),
            ("close by query", "close by query again"),
            ("pay", "pay again"),
            ("undo softly", "undo softly again"),
            ("scale down", "scale down another"),
            ("migrate", "migrate again"),
            ("password of anna", "password of bob"),
            ("stop container", "stop another container"),
            ("empty container", "empty another container"),
            ("delete pod", "delete another pod"),
            ("push", "push another"),
        ],
        "partly": [
            ("close by query", "list by query"),
            ("pay", "ship"),
            ("undo softly", "undo for good"),
            ("scale down", "scale up"),
            ("migrate", "flush"),
            ("push", "force push"),
        ],
        "different": [
            ("create", "delete"),
            ("far stop", "far reboot"),
            ("look into container", "empty container"),
            ("delete pod", "stop container"),
            ("push", "undo softly"),
        ],
    },
)
"""A user of command lines that differ in a flag, in a request or in the command behind a host."""

DISPATCHER = Agent(
    runs={
        "cancel": ran(call("call_tool", name="cancel_order", arguments={"order_id": "#W1"})),
        "cancel again": ran(call("call_tool", name="cancel_order", arguments='{"order_id": "#W29"}')),
        "cancel without a dispatcher": ran(call("cancel_order", order_id="#W3")),
        "refund": ran(call("call_tool", name="refund_order", arguments={"order_id": "#W1"})),
        "send": ran(call("execute_action", tool_name="GMAIL_SEND_EMAIL", params={"to": "a@b.c"})),
        "send again": ran(call("execute_action", tool_name="GMAIL_SEND_EMAIL", params={"to": "kim@example.org"})),
        "delete all": ran(call("execute_action", tool_name="GMAIL_DELETE_ALL", params={"to": "a@b.c"})),
        "cancel by query": ran(call("graphql", query='mutation { cancelOrder(id: "1") { ok } }')),
        "cancel by query again": ran(
            call("graphql", query="mutation Cancel($id: ID!) {\n  done: cancelOrder(id: $id) { ok error }\n}")
        ),
        "refund by query": ran(call("graphql", query='mutation { refundOrder(id: "1") { ok } }')),
        "mark cancelled": ran(
            call("http", method="PATCH", url="https://a.b/v1/orders/1", body='{"status":"cancelled"}')
        ),
        "mark cancelled again": ran(
            call("http", method="PATCH", url="https://a.b/v1/orders/88", body={"status": "cancelled"})
        ),
        "mark shipped": ran(call("http", method="PATCH", url="https://a.b/v1/orders/1", body='{"status": "shipped"}')),
        "close by address": ran(call("http", method="GET", url="http://shop.local/admin?action=close&id=1")),
        "close by address again": ran(call("http", method="GET", url="http://shop.local/admin?id=88&action=close#top")),
        "list by address": ran(call("http", method="GET", url="http://shop.local/admin?action=list&id=1")),
        "upgrade": ran(call("change_plan", customer_id="c1", plan="Premium")),
        "upgrade again": ran(call("change_plan", customer_id="c88", plan="premium")),
        "downgrade": ran(call("change_plan", customer_id="c1", plan="Basic")),
    },
    pairs={
        "same": [
            ("cancel", "cancel again"),
            ("cancel", "cancel without a dispatcher"),
            ("send", "send again"),
            ("cancel by query", "cancel by query again"),
            ("mark cancelled", "mark cancelled again"),
            ("close by address", "close by address again"),
            ("upgrade", "upgrade again"),
        ],
        "partly": [
            ("cancel by query", "refund by query"),
            ("mark cancelled", "mark shipped"),
            ("close by address", "list by address"),
            ("upgrade", "downgrade"),
        ],
        "different": [
            ("cancel", "refund"),
            ("send", "delete all"),
            ("refund by query", "mark shipped"),
            ("upgrade", "cancel"),
        ],
    },
)
"""An agent whose tools take the name of another tool, a query or a request."""

BUYER = Agent(
    runs={
        "three": ran(call("order", quantity=3)),
        "twelve": ran(call("order", quantity=12)),
        "three by express": ran(call("order", quantity=3, speed="express")),
        "apples": ran(call("bestellen", artikel="4011", menge=3)),
        "pears": ran(call("bestellen", artikel="4409", menge="7")),
        "pears by express": ran(call("bestellen", artikel="4409", menge=7, speed="express")),
        "password of jdoe": ran(call("reset_password", login="jdoe")),
        "password of asmith": ran(call("reset_password", login="asmith")),
        "refund": ran(call("perform_refund", order_id="A-1")),
        "refund again": ran(call("perform_refund", order_id="BX-2")),
        "refund by text": ran(call("perform_refund", order_id="A-1", channel="sms")),
        "song": ran(call("play_song", query="Hey Jude")),
        "another song": ran(call("play_song", query="let it be")),
        "rules": ran(call("game_search", query="chess rules")),
        "other rules": ran(call("game_search", query="how to castle")),
        "ticket": ran(call("move_ticket", ticket_id="shop-a")),
        "another ticket": ran(call("move_ticket", ticket_id="blog-b")),
        "password by text": ran(call("reset_password", login="asmith", channel="sms")),
    },
    pairs={
        "same": [
            ("three", "twelve"),
            ("apples", "pears"),
            ("password of jdoe", "password of asmith"),
            ("refund", "refund again"),
            ("song", "another song"),
            ("rules", "other rules"),
            ("ticket", "another ticket"),
        ],
        "partly": [
            ("three", "three by express"),
            ("apples", "pears by express"),
            ("password of jdoe", "password by text"),
            ("refund", "refund by text"),
        ],
        "different": [
            ("three", "apples"),
            ("pears", "password of jdoe"),
            ("twelve", "password by text"),
            ("refund", "song"),
            ("rules", "ticket"),
        ],
    },
)
"""A buyer whose numbers, accounts, ids and words of a search are data."""

CLICKER = Agent(
    runs={
        "buy": ran(call("place_order", side="BUY", symbol="ACME", quantity=10)),
        "buy again": ran(call("place_order", side="buy", symbol="INIT", quantity=99)),
        "sell": ran(call("place_order", side="SELL", symbol="ACME", quantity=10)),
        "confirm": ran(call("close_account", account_id="A1", confirm="Yes")),
        "confirm again": ran(call("close_account", account_id="B2", confirm="yes")),
        "do not confirm": ran(call("close_account", account_id="A1", confirm="No")),
        "activate": ran(call("set_user", user_id="u1", active="True")),
        "activate again": ran(call("set_user", user_id="u2", active=True)),
        "deactivate": ran(call("set_user", user_id="u1", active="False")),
        "subscribe": ran(call("subscribe", user_id="u1", newsletter="Yes")),
        "unsubscribe": ran(call("subscribe", user_id="u1", newsletter="No")),
        "done": ran(call("jira_transition", issue="SHOP-1", transition="Done")),
        "done again": ran(call("jira_transition", issue="SHOP-77", transition="done")),
        "in progress": ran(call("jira_transition", issue="SHOP-1", transition="In Progress")),
        "up": ran(call("press_key", key="up")),
        "down": ran(call("press_key", key="down")),
        "copy": ran(call("press_key", key="Control+C")),
        "paste": ran(call("press_key", key="Control+V")),
        "put an object": ran(call("put_object", key="a7f9", acl="Private")),
        "put another object": ran(call("put_object", key="report-2024.pdf", acl="private")),
        "put an object for all": ran(call("put_object", key="a7f9", acl="Public-Read")),
        "fast": ran(call("configure", settings={"motor": {"left": {"mode": "fast"}}})),
        "slow": ran(call("configure", settings={"motor": {"left": {"mode": "slow"}}})),
        "heat": ran(call("act", action='{"type": "heat", "object_id": "m1"}')),
        "heat again": ran(call("act", action={"type": "heat", "object_id": "m22"})),
        "cool": ran(call("act", action='{"type": "cool", "object_id": "m1"}')),
        "log in": ran(
            call("browser_navigate", url="https://shop.local"),
            call("browser_type", element="Name field", ref="e1", text="mia"),
            call("browser_click", element="Login button", ref="e2"),
        ),
        "log in again": ran(
            call("browser_navigate", url="https://blog.local"),
            call("browser_type", element="name field", ref="e8", text="bob"),
            call("browser_click", element="login button", ref="e9"),
        ),
        "delete the account": ran(
            call("browser_navigate", url="https://shop.local"),
            call("browser_type", element="Name field", ref="e1", text="mia"),
            call("browser_click", element="Delete account button", ref="e2"),
        ),
    },
    pairs={
        "same": [
            ("buy", "buy again"),
            ("confirm", "confirm again"),
            ("activate", "activate again"),
            ("done", "done again"),
            ("put an object", "put another object"),
            ("heat", "heat again"),
            ("log in", "log in again"),
        ],
        "partly": [
            ("buy", "sell"),
            ("confirm", "do not confirm"),
            ("activate", "deactivate"),
            ("subscribe", "unsubscribe"),
            ("done", "in progress"),
            ("up", "down"),
            ("copy", "paste"),
            ("put an object", "put an object for all"),
            ("fast", "slow"),
            ("heat", "cool"),
            ("log in", "delete the account"),
        ],
        "different": [("buy", "confirm"), ("activate", "done"), ("up", "fast"), ("heat", "log in")],
    },
)
"""An agent whose choices are labels, have capitals, or stand deep in an argument."""

BUTLER = Agent(
    runs={
        "close": asked("Close ticket 55", call("close_ticket", ticket=55)),
        "close another": asked("Please close ticket number 77.", call("close_ticket", ticket="77")),
        "close as a duplicate": asked("Ticket 12 is a duplicate", call("close_ticket", ticket=12, status="duplicate")),
        "short timer": asked("Set a timer for 5 minutes", call("set_timer", minutes=5)),
        "long timer": asked("a timer, 20 minutes please", call("set_timer", minutes=20)),
        "very long timer": asked("Timer: 120 minutes!", call("set_timer", minutes=120)),
        "silent timer": asked("a silent timer for 8 minutes", call("set_timer", minutes=8, sound="off")),
        "quiet": asked("Turn the volume down to 30", call("set_volume", volume=30)),
        "loud": asked("volume up to 60", call("set_volume", volume=60)),
        "mute": asked("volume to 0, it is late", call("set_volume", volume=0)),
        "two seats": asked("Book 2 seats in the opera", call("book", seats=2, hall="opera")),
        "four seats": asked("I need 4 seats in the opera", call("book", seats=4, hall="opera")),
        "two good seats": asked("Book 2 good seats in the opera", call("book", seats=2, hall="opera", category="A")),
        "deploy to one": asked("Deploy the release of 3 o'clock", call("scale", replicas=1)),
        "deploy to three": asked("Deploy the release of 3 o'clock", call("scale", replicas=3)),
    },
    pairs={
        "same": [
            ("close", "close another"),
            ("short timer", "long timer"),
            ("short timer", "very long timer"),
            ("quiet", "loud"),
            ("two seats", "four seats"),
        ],
        "partly": [
            ("close", "close as a duplicate"),
            ("short timer", "silent timer"),
            ("quiet", "mute"),
            ("two seats", "two good seats"),
            ("deploy to one", "deploy to three"),
        ],
        "different": [("close", "quiet"), ("short timer", "two seats"), ("mute", "deploy to one")],
    },
)
"""A butler whose tasks state the numbers of the calls."""

MIGRATOR = Agent(
    runs={
        "pay": queried("BEGIN; UPDATE orders SET status = 'paid' WHERE id = 3; COMMIT"),
        "pay again": queried("start transaction;\nupdate orders set status='paid' where id = 77;\ncommit;"),
        "pay in three calls": queried("BEGIN", "UPDATE orders SET status = 'paid' WHERE id = 9", "COMMIT"),
        "pay by a client": typed("psql shop -c \"BEGIN; UPDATE orders SET status = 'paid' WHERE id = 5; COMMIT\""),
        "pay in vain": queried("BEGIN", "UPDATE orders SET status = 'paid' WHERE id = 9", "ROLLBACK"),
        "drop orders": queried("BEGIN; DROP TABLE orders; COMMIT"),
        "call refund": queried("CALL refund_order(1)"),
        "call refund again": queried("call shop.refund_order(227);"),
        "call cancel": queried("CALL cancel_order(1)"),
        "load": queried("COPY visits FROM '/tmp/a.csv'"),
        "load again": queried("copy visits from '/srv/b.csv'"),
        "unload": queried("COPY visits TO '/tmp/a.csv'"),
        "vacuum": queried("VACUUM parcels"),
        "reindex": queried("REINDEX TABLE parcels"),
        "change and delete": queried("UPDATE staff SET shift = 'late'; DELETE FROM rooms"),
        "change and change": queried("UPDATE staff SET shift = 'late'; UPDATE rooms SET shift = 'late'"),
        "more": queried("UPDATE stock SET qty = qty + 1 WHERE sku = 'A7'"),
        "one more": queried("update stock set qty = qty + 5 where sku = 'B9'"),
        "less": queried("UPDATE stock SET qty = qty - 1 WHERE sku = 'A7'"),
        "large sums": queried("SELECT number FROM bills WHERE total > 100"),
        "larger sums": queried("select number from bills where total >= 900"),
        "small sums": queried("SELECT number FROM bills WHERE total < 100"),
        "oldest": queried("SELECT nick FROM players ORDER BY age DESC"),
        "youngest": queried("SELECT nick FROM players ORDER BY age ASC"),
        "youngest again": queried("select nick from players order by age"),
        "add a text": queried("ALTER TABLE cars ADD COLUMN doors text"),
        "add a number": queried("ALTER TABLE cars ADD COLUMN doors integer"),
        "read": queried("GRANT SELECT ON films TO bob"),
        "all rights": queried("GRANT ALL ON films TO bob"),
        "unique": queried("CREATE UNIQUE INDEX by_plate ON trucks (plate)"),
        "not unique": queried("CREATE INDEX by_plate ON trucks (plate)"),
        "add a named": asked(
            "Add a label column to the boats table", call("sql", query="ALTER TABLE boats ADD COLUMN label text")
        ),
        "add another named": asked(
            "Please add last_name to pets", call("sql", query="ALTER TABLE pets ADD COLUMN last_name text;")
        ),
        "drop a named": asked(
            "Drop the label column of the boats table", call("sql", query="ALTER TABLE boats DROP COLUMN label")
        ),
        "add in a schema": asked(
            "Add a label column to the boats table", call("sql", query="ALTER TABLE yard.boats ADD COLUMN label text")
        ),
        "add with quotes": asked(
            "Add an order column to the boats table", call("sql", query='ALTER TABLE boats ADD COLUMN "order" text')
        ),
        "index": asked("Index the label of boats", call("sql", query="CREATE INDEX boats_label_idx ON boats (label)")),
        "index again": asked("Pets need an index on age", call("sql", query="CREATE INDEX pets_age_idx ON pets (age)")),
        "insert": asked(
            "Create booking K12 with indigo as its nickname",
            call("sql", query="INSERT INTO bookings (code, nickname) VALUES ('K12', 'indigo')"),
        ),
        "insert again": asked(
            "A new user, M14, with the nickname amber",
            call("sql", query="insert into users (code, nickname) values ('M14', 'amber');"),
        ),
        "vacuum with a limit": queried("SET lock_timeout = '2s'", "SHOW lock_timeout", "VACUUM parcels"),
    },
    pairs={
        "same": [
            ("pay", "pay again"),
            ("pay", "pay in three calls"),
            ("call refund", "call refund again"),
            ("load", "load again"),
            ("more", "one more"),
            ("large sums", "larger sums"),
            ("youngest", "youngest again"),
            ("add a named", "add another named"),
            ("index", "index again"),
            ("insert", "insert again"),
            ("vacuum", "vacuum with a limit"),
        ],
        "partly": [
            ("pay", "pay in vain"),
            ("call refund", "call cancel"),
            ("load", "unload"),
            ("change and delete", "change and change"),
            ("more", "less"),
            ("large sums", "small sums"),
            ("oldest", "youngest"),
            ("add a text", "add a number"),
            ("read", "all rights"),
            ("unique", "not unique"),
            ("add a named", "drop a named"),
            ("add a named", "add in a schema"),
            ("add a named", "add with quotes"),
        ],
        "different": [
            ("pay", "drop orders"),
            ("vacuum", "reindex"),
            ("call refund", "load"),
            ("pay in vain", "less"),
            ("pay by a client", "drop orders"),
            ("insert", "index"),
        ],
    },
)
"""A migrator whose SQL runs in transactions, or differs in a sign, a type or a right."""

ROOT = Agent(
    runs={
        "migrate": typed("rails db:migrate"),
        "migrate again": typed("cd /srv/shop && bundle exec rails db:migrate"),
        "drop": typed("rails db:drop"),
        "accept": typed("iptables -A INPUT -p tcp --dport 8080 -j ACCEPT"),
        "accept again": typed("sudo iptables -A INPUT -p tcp --dport 5432 -j ACCEPT"),
        "refuse": typed("iptables -A INPUT -p tcp --dport 8080 -j DROP"),
        "set": typed("redis-cli SET a1 b1"),
        "set again": typed("redis-cli set a2 b2"),
        "unset": typed("redis-cli DEL a1"),
        "list jobs": typed("crontab -l"),
        "remove jobs": typed("crontab -r"),
        "group": typed("usermod -aG sudo bob"),
        "group again": typed("sudo usermod -a -G sudo ann"),
        "lock": typed("usermod -L bob"),
        "find": typed("find /srv -name '*.log'"),
        "find and delete": typed("find /srv -name '*.log' -delete"),
        "find and remove": typed("find /srv -name '*.log' -exec rm {} \\;"),
        "find and compress": typed("find /srv -name '*.log' -exec gzip {} \\;"),
        "print lines": typed("sed -n 1,5p a.txt"),
        "edit lines": typed("sed -i s/a/b/ a.txt"),
        "pack": typed("tar -czf /b/a.tgz /srv"),
        "unpack": typed("tar -xzf /b/a.tgz"),
        "runnable": typed("chmod +x /srv/run.sh"),
        "folder": typed("mkdir /srv/out"),
        "start": typed("systemctl start nginx"),
        "start again": typed("mkdir -p /run/nginx && systemctl start nginx.service"),
        "install": typed("npm install lodash"),
        "install again": typed("npm i lodash"),
        "install a package": typed("apt install -y htop"),
        "install it again": typed("sudo apt-get install htop"),
        "install another": typed("apt install -y strace"),
    },
    pairs={
        "same": [
            ("migrate", "migrate again"),
            ("accept", "accept again"),
            ("set", "set again"),
            ("group", "group again"),
            ("start", "start again"),
            ("install", "install again"),
            ("install a package", "install it again"),
        ],
        "partly": [
            ("accept", "refuse"),
            ("set", "unset"),
            ("list jobs", "remove jobs"),
            ("group", "lock"),
            ("find and delete", "find and remove"),
            ("find and remove", "find and compress"),
            ("print lines", "edit lines"),
            ("pack", "unpack"),
            ("install a package", "install another"),
        ],
        "different": [
            ("migrate", "drop"),
            ("runnable", "folder"),
            ("find", "find and delete"),
            ("start", "install"),
            ("accept", "set"),
        ],
    },
)
"""A root user whose commands differ in a short flag, in a word in capitals or after a colon, or only prepare others."""

AGENTS = {
    "root": ROOT,
    "migrator": MIGRATOR,
    "butler": BUTLER,
    "clicker": CLICKER,
    "coder": CODER,
    "support": SUPPORT,
    "household": HOUSEHOLD,
    "analyst": ANALYST,
    "administrator": ADMINISTRATOR,
    "operator": OPERATOR,
    "scripter": SCRIPTER,
    "dispatcher": DISPATCHER,
    "buyer": BUYER,
    "planner": PLANNER,
    "assistant": ASSISTANT,
}
