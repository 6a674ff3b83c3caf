"""A decision is logged by the names of its columns, and nothing else."""

from dataclasses import fields

from retrieval.ranking.decisions import COLUMNS, SLOTS, LoggedDecision, log_decision
from retrieval.tables.decisions import decisions


def test_the_fields_of_a_logged_decision_are_columns_of_the_log_or_its_slots():
    names = {field.name for field in fields(LoggedDecision)}
    assert names - {*SLOTS, "key_id"} == set(COLUMNS) - {"user_sub"}
    assert set(COLUMNS) <= set(decisions.c.keys())


def test_the_statement_takes_every_field_and_who_enters():
    wanted = {field.name for field in fields(LoggedDecision)} | {"user_sub", "authorised_at"}
    given = log_decision()
    assert set(given.names) - set(given.constants) == set()
    assert wanted <= set(given.names)
