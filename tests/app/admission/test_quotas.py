"""Quotas, and how HTTP tells of them."""

from app.admission.quotas import Quota, Standing, fields

WRITES = Quota.per_minute("user-writes", 120, 10)
READS = Quota.per_minute("user-reads", 60, 10)


def test_a_quota_lets_so_many_seconds_worth_come_at_once():
    assert (WRITES.size, WRITES.every_s) == (20, 0.5)
    assert Quota.per_minute("user-writes", 1, 1) == Quota("user-writes", size=1, every_s=60)


def test_a_quota_of_none_is_no_limit():
    assert Quota.per_minute("user-writes", 0, 10) is None


def test_the_fields_have_the_form_of_the_draft():
    told = fields([Standing(WRITES, 19, 0.3), Standing(READS, 0, 2)])
    assert told == {
        "RateLimit-Policy": '"user-writes";q=20;w=10, "user-reads";q=10;w=10',
        "RateLimit": '"user-writes";r=19;t=1, "user-reads";r=0;t=2',
    }
    assert fields([]) == {}


def test_where_tokens_are_few_they_are_taken_one_by_one_so_that_the_limit_is_exact():
    assert Quota("user-writes", 39, 1).block == 1
    assert Quota("user-writes", 100, 1).block == 5


def test_nobodys_name_can_be_read_from_a_bucket():
    assert len({WRITES.bucket("alice"), WRITES.bucket("bob"), READS.bucket("alice")}) == 3
    assert b"alice" not in WRITES.bucket("alice")
