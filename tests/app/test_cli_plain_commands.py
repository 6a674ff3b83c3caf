import gc
import sys

import pytest

from app.cli import imported


def test_the_collector_goes_on_after_an_import_and_after_one_that_fails():
    assert gc.isenabled()
    assert imported("app.cli") is sys.modules["app.cli"]
    assert gc.isenabled()
    with pytest.raises(ModuleNotFoundError):
        imported("app.nothing_of_that_name")
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        imported("app.cli")
        assert not gc.isenabled()
    finally:
        gc.enable()
