"""The benchmark of a retain says where its time goes."""

from app import postgres
from bench.bank import filled
from bench.write import latency
from tests.processes import migrated_home


async def test_the_parts_of_a_retain_are_the_whole_and_are_printed_below_its_row():
    with migrated_home() as home:
        async with filled(home, users=2) as bank:
            ratio, *parts = await latency(bank)
        postgres.release(home)
    assert ratio.name == "retain in-process / bare INSERT + COMMIT"
    prepare, seal, statement, _store, _rest = parts
    assert all(part.value > 0 for part in (prepare, seal, statement))
    assert [part.name.partition(":")[0] for part in parts] == ["retain"] * 5
    shares = [int(part.detail.partition("%")[0]) for part in parts]
    assert abs(sum(shares) - 100) <= len(parts)  # each is rounded
