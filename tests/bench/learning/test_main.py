"""A part of the benchmark that cannot run is said to be skipped."""

from pathlib import Path

from bench.learning.main import measure, table


def test_a_part_without_data_is_skipped_where_everyone_sees_it(tmp_path: Path):
    said: list[str] = []
    done = measure("reuse", tmp_path, said.append)
    assert [row.name for row in done.rows] == ["reuse: SKIPPED"]
    assert "SKIPPED" in said[0]
    assert [row.name for row in table([done], 0)] == ["reuse: SKIPPED", "time reuse", "time of all these"]
