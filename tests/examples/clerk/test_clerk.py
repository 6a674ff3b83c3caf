"""The clerk follows what procedures and cases say works, reads the notes of revisions, and says what it followed."""

from app.demo.memory import AgentRun, RememberedCase, RememberedProcedure, RetrievedCases
from examples.clerk.clerk import Clerk, advice
from examples.clerk.office import Errand, Form, Office, errands, rules
from examples.world import Briefing

WANTED = {"find_order": "ticket", "refund_payment": "reason", "notify_customer": "channel"}
ERRAND = Errand("refund-1", "refund", "Refund order 7", "7", tuple(WANTED), WANTED)
STEPS = (
    "Call find_order with number=<id> (for example 7), ticket=<text>.",
    (
        "Call refund_payment with number=<id>, approval=<text>. In a run that failed: refund_payment called with "
        'number=<id>, approval=<text> answered with an error ("refused") at first; what worked was refund_payment '
        "called with number=<id>, reason=<text>."
    ),
    (
        "Call notify_customer with number=<id>, currency=<text>. In a run that failed: notify_customer called with "
        "number=<id>, currency=<text> answered with an error; nothing put that right, so avoid this call."
    ),
)


def procedure(*steps: str, kind: str = "revision", procedure_id: str = "p1") -> RememberedProcedure:
    return RememberedProcedure(procedure_id, 2, kind, steps)


async def work(*procedures: RememberedProcedure, cases: tuple[RememberedCase, ...] = ()) -> AgentRun:
    office = Office()
    slate = RetrievedCases(cases=cases, procedures=procedures)
    return await Clerk(Briefing(ERRAND, await office.reset(ERRAND), slate, "seed")).run(office)


def filed(run: AgentRun, tool: str) -> list[str]:
    return [next(name for name in trace.input if name != "number") for trace in run.traces if trace.tool == tool]


async def test_what_worked_in_a_note_comes_before_the_step_and_what_to_avoid_comes_last():
    run = await work(procedure(*STEPS))
    assert filed(run, "find_order") == ["ticket"]
    assert filed(run, "refund_payment") == ["reason"]
    assert "currency" not in filed(run, "notify_customer")
    assert run.success
    assert run.used_procedure_ids == ("p1",)


async def test_a_procedure_that_fails_is_gone_on_from_and_named_as_used():
    run = await work(procedure("Call find_order with number=<id>, currency=<text>.", kind="script"))
    assert filed(run, "find_order")[0] == "currency"
    assert run.success
    assert run.used_procedure_ids == ("p1",)


async def test_a_failure_lesson_is_a_warning_and_a_failed_case_no_example():
    said = (
        "Do not repeat find_order with arguments of the form number=<id>, ticket=<text> once it answers with an error."
    )
    failed = RememberedCase("c1", "an errand", ("find_order with currency",), "failure")
    run = await work(procedure(said, kind="failure_lesson"), cases=(failed,))
    assert filed(run, "find_order")[-1] == "ticket"
    assert len(filed(run, "find_order")) == 6
    assert (run.used_procedure_ids, run.used_case_ids) == ((), ())


async def test_cases_and_procedures_are_named_each_by_what_was_followed():
    case = RememberedCase("c1", "an errand", ("find_order with ticket", "refund_payment with reason"), "success")
    run = await work(procedure("Call notify_customer with number=<id>, channel=<text>.", kind="script"), cases=(case,))
    assert [trace.status for trace in run.traces] == ["ok", "ok", "ok"]
    assert (run.used_case_ids, run.used_procedure_ids) == (("c1",), ("p1",))
    assert run.plan == ("find_order with ticket", "refund_payment with reason", "notify_customer with channel")


def test_the_newest_note_is_believed_first():
    worked = "In a run that failed: it failed at first; what worked was find_order called with number=<id>, {}=<text>."
    step = f"Call find_order with reason. {worked.format('ticket')} {worked.format('channel')}"
    assert [form for form, _ in advice([procedure(step)]).good] == [
        Form("find_order", argument) for argument in ("channel", "ticket", "reason")
    ]


def test_the_new_rules_differ_in_all_but_the_first_call_and_no_errand_comes_twice():
    for family in ("refund", "move", "unlock", "cancel"):
        before, after = (rules(family, 1, changed=changed) for changed in (False, True))
        assert [before[tool] == after[tool] for tool in before] == [True, False, False]
    some = [*errands("refund", 1, range(20), changed=False), *errands("refund", 1, range(1_000, 1_020), changed=True)]
    assert len({errand.text for errand in some}) == len({errand.id for errand in some}) == 40
