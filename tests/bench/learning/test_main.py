"""A part of the benchmark that cannot run is called skipped."""

from pathlib import Path

from bench.learning.main import MEASURES, measure, table
from bench.learning.parts import Part


def test_each_part_that_the_command_offers_can_be_measured():
    assert list(MEASURES) == list(Part)


def test_a_part_without_data_is_skipped_where_everyone_sees_it(tmp_path: Path):
    lines: list[str] = []
    done = measure(Part.REUSE, tmp_path, lines.append)
    assert [row.name for row in done.rows] == ["reuse: SKIPPED"]
    assert "SKIPPED" in lines[0]
    assert [row.name for row in table([done], 0)] == ["reuse: SKIPPED", "time reuse", "time of all these"]
