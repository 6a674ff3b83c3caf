"""What a training says of itself: plain JSON, and a picture for each curve."""

import json
from pathlib import Path

import pytest

from app.training.report import as_json, draw
from writer.training.result import TrainingResult

pytest.importorskip("matplotlib", reason="matplotlib is not installed: casebank[plots]")

CURVE = [{"decisions": 25, "log_loss_gain": -0.01}, {"decisions": 100, "log_loss_gain": 0.02}]
LEARNT = TrainingResult("alice", "a", "candidate", version=3, decisions=100, metrics={"learning_curve": CURVE})


def test_it_is_plain_json():
    assert json.loads(json.dumps(as_json(LEARNT))) == {
        "user_sub": "alice",
        "agent_key": "a",
        "outcome": "candidate",
        "version": 3,
        "decisions": 100,
        "missing": 0,
        "verdict": None,
        "metrics": {"learning_curve": CURVE},
    }


def test_versions_of_the_same_number_get_pictures_of_their_own_and_what_has_no_curve_gets_none(tmp_path: Path):
    files = draw([LEARNT, TrainingResult("bob", "a", "nothing new"), LEARNT], tmp_path)
    assert [file.name for file in files] == ["curve-0-q-3.png", "curve-2-q-3.png"]
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)
