"""The proxies of docs/deploy.md in front of a service: TLS, bounds, and a replica that is down."""

import os
import shutil
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from subprocess import Popen

import httpx
import pytest

from app.processes.own_service import free_port
from tests.fakes.tls_front import certify
from tests.pages import blocks
from tests.processes import Service, migrated_home, until, worked

NAME = "memory.example.org"
"""Name of the service on the page."""
TOO_LARGE = 5_000_000
"""Bytes of a body: more than either proxy lets through."""


def placed(text: str, places: dict[str, str]) -> str:
    """Returns a configuration with these places of its own; each must have been in the page's."""
    for told, here in places.items():
        assert told in text, told
        text = text.replace(told, here)
    return text


def nginx(folder: Path, port: int, upstreams: dict[str, str]) -> tuple[list[str], str]:
    """Returns how to start the page's nginx, and where it then answers."""
    certificate, key = certify(folder)
    (page,) = blocks("deploy.md", "nginx")
    server = placed(
        page,
        {
            "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
            "/etc/ssl/memory.pem": str(certificate),
            "/etc/ssl/memory.key": str(key),
            **upstreams,
        },
    )
    kept = "".join(f"{name}_temp_path {folder};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "conf").write_text(
        f"{user} daemon off; pid {folder}/pid; events {{}} http {{ access_log off; {kept}\n{server} }}"
    )
    return ["nginx", "-e", f"{folder}/errors", "-c", f"{folder}/conf"], f"https://127.0.0.1:{port}"


def caddy(folder: Path, port: int, upstreams: dict[str, str]) -> tuple[list[str], str]:
    """Returns how to start the page's Caddy, and where it then answers: without TLS, for the name is not ours."""
    (page,) = blocks("deploy.md", "caddy")
    address = f"http://127.0.0.1:{port}"
    (folder / "Caddyfile").write_text(
        placed(page, {"memory.example.org": address, "  servers {": "  admin off\n  servers {", **upstreams})
    )
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")], address


@contextmanager
def running(command: list[str], folder: Path) -> Iterator[None]:
    program = shutil.which(command[0], path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip(f"there is no {command[0]} here: `apt-get install {command[0]}`")
    around = {**os.environ, "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (folder / "log").open("wb") as log:
        process = Popen((program, *command[1:]), env=around, cwd=folder, stdout=log, stderr=log)
    try:
        yield
        assert process.poll() is None, (folder / "log").read_text()
    finally:
        process.terminate()
        process.wait(timeout=30)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with migrated_home() as home, Service(home, CASEBANK_CONSOLE=f"https://{NAME}") as service:
        yield service


@pytest.mark.parametrize("proxy", [nginx, caddy])
def test_a_proxy_of_the_page_passes_on_what_fits_to_the_replica_that_is_up(
    proxy: Callable[[Path, int, dict[str, str]], tuple[list[str], str]], service: Service, tmp_path: Path
):
    upstreams = {"127.0.0.1:8700": f"127.0.0.1:{service.port}", "127.0.0.1:8701": f"127.0.0.1:{free_port()}"}
    command, url = proxy(tmp_path, free_port(), upstreams)
    trusted = ssl.create_default_context(cafile=str(tmp_path / "certificate.pem")) if "https" in url else False
    with (
        running(command, tmp_path),
        httpx.Client(base_url=url, headers=service.bearer("alice"), verify=trusted, timeout=60) as api,
    ):
        until(partial(answers, api))
        body = {"agent": proxy.__name__, "task": "water the garden", "outcome": "success"}
        worked(api, api.post("/v1/retain", json=body).json()["case_id"])
        told = [api.post("/v1/retrieve", json={"agent": proxy.__name__, "query": "water"}) for _ in range(4)]
        assert [len(each.json()["cases"]) for each in told] == [1] * 4
        assert api.post("/v1/retain", content=b" " * TOO_LARGE).status_code == 413


def test_the_console_answers_behind_the_pages_nginx_under_the_services_name(service: Service, tmp_path: Path):
    upstreams = {"127.0.0.1:8700": f"127.0.0.1:{service.port}", "127.0.0.1:8701": f"127.0.0.1:{free_port()}"}
    command, url = nginx(tmp_path, free_port(), upstreams)
    trusted = ssl.create_default_context(cafile=str(tmp_path / "certificate.pem"))
    with running(command, tmp_path), httpx.Client(base_url=url, verify=trusted, timeout=60) as browser:
        until(partial(answers, browser))
        assert browser.get("/console", headers={"Host": NAME}, follow_redirects=False).status_code != 404
        assert browser.get("/console", headers={"Host": "elsewhere.example.org"}).status_code == 404


def answers(api: httpx.Client) -> bool:
    with suppress(httpx.TransportError):
        return api.get("/readyz").status_code == 200
    return False
