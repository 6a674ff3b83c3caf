"""Errors as problem documents: every one of casebank's has a kind."""

import importlib
import pkgutil
from collections.abc import Iterator

import app
import policy
import retrieval
import writer
from app.edge.problems import KINDS, kind_of
from retrieval.errors import CasebankError

OF_COMMANDS_AND_WORKERS = {
    "EmbeddedPostgresFailed",
    "LeaseLost",
    "MigrationRefused",
    "NotTheOwner",
    "NothingToRotate",
    "RotationOvertaken",
    "ScrubRefused",
    "SignatureBroken",
}
"""Errors that no request meets."""


def _all_modules() -> None:
    for package in (app, policy, retrieval, writer):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)


def _below(cls: type[CasebankError]) -> Iterator[type[CasebankError]]:
    for sub in cls.__subclasses__():
        yield sub
        yield from _below(sub)


def test_every_error_that_a_request_can_meet_is_a_problem_of_some_kind():
    _all_modules()
    errors = set(_below(CasebankError))
    assert len(errors) >= len(KINDS)
    unmapped = {error.__name__ for error in errors if kind_of(error) is KINDS[CasebankError]}
    assert unmapped == OF_COMMANDS_AND_WORKERS
    assert all(kind_of(error).status >= 400 for error in errors)
