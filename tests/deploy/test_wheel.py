"""A wheel, installed in an environment of its own and run from elsewhere, does all that a clone does."""

import json
import re
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from tests.deploy.conftest import run
from tests.paths import ROOT
from tests.processes import Service, new_home, retain, retrieve, surroundings, worked

pytestmark = pytest.mark.timeout(600)


def test_it_has_every_file_of_the_four_packages_and_nothing_else(wheel: Path):
    shipped = {"app", "policy", "retrieval", "writer"}
    known = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines()
    files = {name for name in known if name.split("/")[0] in shipped and (ROOT / name).is_file()}
    migrations = (name for name in known if re.match(r"alembic/.*\.(py|mako|sql)$", name) and (ROOT / name).is_file())
    files |= {name.replace("alembic/", "app/migrations/", 1) for name in migrations}
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert inside == files


def test_its_metadata_name_the_version_and_the_license(wheel: Path):
    archive = zipfile.ZipFile(wheel)
    (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(archive.read(name).decode())
    assert (metadata["Name"], metadata["Version"], metadata["License-Expression"]) == ("casebank", "0.1.0", "MIT")
    assert any(each.startswith("Development Status") for each in metadata.get_all("Classifier"))


def test_it_is_the_wheel_that_runs(installed: Path, tmp_path: Path):
    found = run(installed / "python", "-I", "-c", "import app; print(app.__file__)", cwd=tmp_path)
    assert found.startswith(str(installed.parent))


def test_it_has_the_migrations_and_serves_the_whole_loop(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr(Service, "program", (str(installed / "casebank"), "serve", "--port"))
    with new_home() as home:
        with Service(home) as service, service.client("alice") as client:
            case_id = retain(client, "water the garden", tool_traces=[{"tool": "sh", "output": "done"}])
            worked(client, case_id)
            found = retrieve(client, "water the garden")
            assert [case["case_id"] for case in found["cases"]] == [case_id]
            page = client.get("/console/sign-in")
            (style,) = re.findall(r'rel="stylesheet" href="([^"]+)"', page.text)
            assert [page.status_code, client.get(style).status_code] == [200, 200]
            body = {"retrieval_id": found["retrieval_id"], "thumb": "up"}
            assert client.post("/v1/feedback", json=body).status_code == 200
        said = run(installed / "casebank", "doctor", cwd=tmp_path, **surroundings(home))
        assert "BAD" not in said.replace("training", "")


def test_it_runs_the_demo_from_a_folder_that_has_an_app_of_its_own(installed: Path, tmp_path: Path):
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text("raise RuntimeError('the callers own app was imported')\n")
    with new_home() as home:
        demo = ("demo", "--tasks", "10", "--out-dir", "out")
        said = run(installed / "casebank", *demo, cwd=tmp_path, **surroundings(home))
    assert "opens the overview of this bank, http://127.0.0.1:8700/console\n" in said
    assert json.loads((tmp_path / "out" / "demo.json").read_text())
