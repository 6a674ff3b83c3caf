"""Two services on one bank share their users' limits."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from tests.processes import Service, migrated_home

AT_ONCE = 12
FEW = {
    "CASEBANK_LIMITS": f"user_reads={AT_ONCE},burst_s=60",  # and one comes back in five seconds
    "CASEBANK_TIMEOUTS_S": "turn=0.001",
    "CASEBANK_WORKER_IN_SERVICE": "false",
}


@contextmanager
def both(*services: Service) -> Iterator[tuple[Service, ...]]:
    """Starts the services at once, and stops them."""
    for service in services:
        service.start()
    try:
        for service in services:
            service.ready()
        yield services
    finally:
        for service in services:
            service.stop()


def test_what_one_service_let_through_the_other_counts():
    with migrated_home() as home, both(Service(home, **FEW), Service(home, **FEW)) as (here, there):
        with here.client("alice") as one, there.client("alice") as other:
            answers = [client.get("/v1/cases") for client in (one, other) * (2 * AT_ONCE)]
        last = answers[-1]
        through = Counter(answer.status_code for answer in answers)
        assert through.keys() == {200, 429}
        assert AT_ONCE <= through[200] < 2 * AT_ONCE  # each of its own would have let twice as many through
        assert 1 <= int(last.headers["Retry-After"]) <= 5
        with here.client("bob") as guest:
            assert guest.get("/v1/cases").status_code == 200
