"""The benchmark of the gate measures each kind of candidate, and a harmful one is never promoted."""

from bench.gate.main import gate


def test_a_few_trials_have_every_row_and_promote_no_harmful_policy():
    rows = {row.name: row for row in gate(seed=3, lives=4, repetitions=6)}
    assert all(name.startswith("gate ") for name in rows)
    assert rows["gate harmful -0.10: ever promoted"].value == 0
    assert rows["gate tiny effective sample: refused"].value == 100
    assert "gate error of the estimate, value of the candidate" in rows
