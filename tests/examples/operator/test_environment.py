"""The database operator as an environment to experiment with."""

from app.postgres import EmbeddedPostgres
from app.postgres.pools import dsn
from examples.operator.environment import DatabaseOperator
from tests.examples.experiment.riddles import run
from tests.service import Service


async def test_the_database_operator_profits_from_its_own_runs(service: Service, postgres: EmbeddedPostgres):
    class Few(DatabaseOperator):
        families = ("missing_type", "reserved_column")

    report = await run(service, Few(dsn(postgres.url("postgres"))), practice=4, test=3, ks=(0, 4))
    assert report.measured["steps"] < 0
    assert report.most_reused >= 2
    assert not report.experts
    assert not report.memory_errors
    assert not report.crashes
