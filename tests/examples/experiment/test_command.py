"""The command line refuses experiments that cannot be run."""

import pytest
import typer
from typer.testing import CliRunner

from examples.experiment.command import experiment

CLI = typer.Typer()
CLI.command()(experiment)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--env", "chess"], "no environment 'chess'"),
        (["--k", "0,-1"], "from 0 to 50"),
        (["--k", "51"], "from 0 to 50"),
        (["--k", "few"], "from 0 to 50"),
        (["--practice", "0"], "--practice"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_starts(options: list[str], said: str):
    result = CliRunner().invoke(CLI, options, env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert said in result.output
