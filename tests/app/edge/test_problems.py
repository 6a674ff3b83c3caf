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


def _all_modules() -> None:
    for package in (app, policy, retrieval, writer):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)


def _below(cls: type[CasebankError]) -> Iterator[type[CasebankError]]:
    for sub in cls.__subclasses__():
        yield sub
        yield from _below(sub)


def test_every_error_of_casebank_is_a_problem_of_some_kind():
    _all_modules()
    errors = set(_below(CasebankError))
    assert len(errors) >= len(KINDS)
    unmapped = {error.__name__ for error in errors if not set(error.__mro__) & set(KINDS)}
    assert unmapped == set()
    assert all(kind_of(error).status >= 400 for error in errors)
