import gc
import sys

import pytest

from app.terminal.plain_commands import imported


def test_the_collector_goes_on_after_an_import_and_after_one_that_fails():
    assert gc.isenabled()
    assert imported("app.terminal.plain_commands") is sys.modules["app.terminal.plain_commands"]
    assert gc.isenabled()
    with pytest.raises(ModuleNotFoundError):
        imported("app.nothing_of_that_name")
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        imported("app.terminal.plain_commands")
        assert not gc.isenabled()
    finally:
        gc.enable()
