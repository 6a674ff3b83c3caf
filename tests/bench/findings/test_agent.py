"""The scripted agent of the benchmark: the same seed, the same script, on files that are there."""

from pathlib import Path

from bench.findings.agent import STEPS, script
from bench.findings.scratch import Scratch


def test_a_seed_is_a_script_whose_calls_work_and_the_copy_is_restored(tmp_path: Path):
    scratch = Scratch(tmp_path)
    before = {file: (scratch.root / file).read_text() for file in scratch.files}
    acts = list(script(scratch, 5))
    assert acts == list(script(scratch, 5))
    assert len(acts) == STEPS
    assert acts != list(script(scratch, 6))
    answers = [scratch.call(act.tool, act.arguments) for act in acts if not act.intent]
    assert sum(answer.status == "ok" for answer in answers) > 0.9 * len(answers)
    scratch.restore()
    assert {file: (scratch.root / file).read_text() for file in scratch.files} == before
