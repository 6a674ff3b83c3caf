"""The plot of use has a panel for each data set, with every point that was measured."""

from pathlib import Path

import pytest

from bench.measure import Measurement

pytest.importorskip("matplotlib", reason="matplotlib is an extra")
from bench.learning.use_plot import Panel, panels, plot

ROWS = (
    Measurement("use telecom cold: after 0 decisions", 0.35, "", ""),
    Measurement("use telecom cold: after 2,000 decisions", 0.34, "", ""),
    Measurement("use telecom cold: change by 2,000 decisions, at best", 0.01, "", "", 0.0, interval=(-0.03, 0.01)),
    Measurement("use reuse, slates of 4: after 0 decisions", 0.6, "", ""),
    Measurement("time use", 12.0, "s", ""),
)


def test_a_data_set_is_a_panel_with_its_values_and_the_intervals_of_its_changes():
    assert panels(ROWS) == {
        "telecom cold": Panel({0: 0.35, 2_000: 0.34}, {2_000: (-0.03, 0.01)}),
        "reuse, slates of 4": Panel({0: 0.6}, {}),
    }


def test_the_plot_is_written(tmp_path: Path):
    plot(ROWS, tmp_path / "use.svg")
    assert (tmp_path / "use.svg").read_text().count("telecom") == 1
