"""What a command prints is what it was given, in brackets, too."""

import re

from app.commands import doctor
from app.doctor import CheckResult
from app.terminal.plain_console import out, plain_console
from tests.paths import ROOT


def test_the_doctors_remedy_keeps_the_words_in_brackets():
    advice = "pip install 'casebank[plots]'"
    with out.capture() as printed:
        out.print(doctor.as_table({"training": CheckResult(ok=False, detail="no matplotlib", advice=advice)}))
    assert "casebank[plots]" in " ".join(re.sub("[│┃]", "", printed.get()).split())


def test_the_doctors_remedy_is_whole_though_it_is_wider_than_the_terminal():
    path = f"/var/lib/{'casebank' * 12}/secrets.json"
    with out.capture() as printed:
        out.print(doctor.as_table({"secrets": CheckResult(ok=False, detail=path, advice=f"chmod 600 {path}")}))
    assert "…" not in printed.get()


def test_neither_brackets_nor_names_of_emoji_are_read_as_markup():
    console = plain_console()
    text = "[bold]user[/bold] [/] :smile: [plots]"
    with console.capture() as printed:
        console.print(text)
    assert printed.get() == f"{text}\n"


def test_no_command_prints_by_another_console():
    files = [path for path in (ROOT / "app").rglob("*.py") if re.search(r"\bConsole\(", path.read_text())]
    assert [path.name for path in files] == ["plain_console.py"]
