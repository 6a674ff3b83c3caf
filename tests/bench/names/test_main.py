"""The benchmark of short queries: its pairs, and what it measures without data."""

from collections import Counter
from pathlib import Path

from bench.names.main import PAIRS, names


async def test_half_of_the_pairs_fit_and_without_data_they_are_measured_alone(tmp_path: Path):
    signs = Counter(line[0] for line in PAIRS.read_text().splitlines())
    assert signs == {"+": 58, "-": 55}
    assert [each.name for each in await names(tmp_path, tmp_path)] == [
        "names: 113 pairs, by similarity, precision",
        "names: 113 pairs, word by word, precision",
    ]
