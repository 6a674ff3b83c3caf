"""The demo's last part follows the outcomes of training: a trial, the gate's checks, and what serves from then on."""

from dataclasses import dataclass, field
from io import StringIO

from rich.console import Console

from app.demo.arms import Arm, TaskRecord
from app.demo.learning import Check, Metrics, TrainingReport, Verdict, show_learning
from app.demo.operator.house import House
from tests.app.demo.trainings import Trainings

RECORD = TaskRecord("missing_type-0", "missing_type", "Add it", 8, True, False, False, False, 0, 0, 0, None, 1.0)
SHOWN = House(1, 10)
CANDIDATE = TrainingReport(
    outcome="candidate", decisions=120, version=1, metrics=Metrics(held_out=30, log_loss_gain=0.02), verdict=None
)


def judged(outcome: str) -> TrainingReport:
    check = Check(name="effective sample", value=31.0, limit=200.0, passed=outcome == "promote")
    return TrainingReport(outcome=outcome, decisions=240, version=1, metrics=Metrics(), verdict=Verdict(checks=[check]))


@dataclass
class Streams:
    """Notes what it is asked to run."""

    asked: list[tuple[str, House]] = field(default_factory=list)

    async def __call__(self, name: str, house: House) -> Arm:
        self.asked.append((name, house))
        return Arm(name, [RECORD] * house.length)


async def shown(*reports: TrainingReport) -> tuple[str, list[tuple[str, House]]]:
    console, streams = Console(width=160, record=True, file=StringIO()), Streams()
    await show_learning(Trainings(list(reports)), streams, SHOWN, console)
    return console.export_text(), streams.asked


async def test_a_candidate_is_tried_on_another_stream_and_what_was_missing_is_shown():
    said, asked = await shown(CANDIDATE, judged("insufficient evidence"))
    assert asked == [("on trial", House(2, 10))]
    assert "the gate's verdict: insufficient evidence" in said
    assert "effective sample" in said
    assert "not passed" in said
    assert "the untrained default serves" in said


async def test_a_promoted_candidate_serves_a_third_stream():
    said, asked = await shown(CANDIDATE, judged("promote"))
    assert [name for name, _ in asked] == ["on trial", "promoted"]
    assert "q-1 promoted: 8.0 steps a task, success 100%" in said


async def test_without_a_candidate_nothing_is_tried():
    said, asked = await shown(
        TrainingReport(outcome="too few", decisions=3, version=None, metrics=Metrics(), verdict=None)
    )
    assert not asked
    assert "the untrained default serves" in said
