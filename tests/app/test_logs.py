"""How a process logs: lines of JSON for a service, warnings alone for a command."""

import json
import logging

import pytest
import structlog

from app import logs


def test_every_event_from_the_level_up_is_a_line_of_json(capsys: pytest.CaptureFixture[str]):
    logs.as_json("info")
    structlog.get_logger("a").info("work.done", cases=3)
    structlog.get_logger("a").debug("unheard")
    logging.getLogger("some.library").warning("its %s", "words")
    ours, theirs = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (ours["event"], ours["cases"], ours["level"]) == ("work.done", 3, "info")
    assert (theirs["event"], theirs["level"]) == ("its words", "warning")


def test_libraries_that_tell_of_every_request_are_hushed(capsys: pytest.CaptureFixture[str]):
    logs.as_json("debug")
    for name in ("httpx", "httpcore", "uvicorn.access"):
        logging.getLogger(name).info("GET /v1/cases?agent=secret")
    assert capsys.readouterr().err == ""


def test_a_command_shows_warnings_and_no_json(capsys: pytest.CaptureFixture[str]):
    logs.quiet()
    structlog.get_logger("a").info("unheard")
    structlog.get_logger("a").warning("mind this")
    said = capsys.readouterr().err
    assert "mind this" in said
    assert "unheard" not in said
    assert not said.startswith("{")
