"""Imports a module with the garbage collector at rest."""

import gc
from importlib import import_module
from typing import Any


def imported(module: str) -> Any:
    """Imports a module with the garbage collector off, which would take about a tenth of a start, and returns it."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        return import_module(module)
    finally:
        if was_on:
            gc.enable()
