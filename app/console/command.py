"""``casebank console``: makes a link that signs in once, without a token."""

import webbrowser
from datetime import UTC, datetime
from urllib.parse import urlencode

from app.console.page import ROOT
from app.console.visits import Link, VisitSeal
from app.settings import Settings


def link(settings: Settings, address: str, user_sub: str, *, is_operator: bool) -> str:
    """Returns a link that signs the user in once, within two minutes.

    Raises:
        NoMasterKey: no key is configured to seal the link.
    """
    made = Link(user_sub=user_sub, made_at=datetime.now(UTC), is_operator=is_operator)
    return f"{address.rstrip('/')}{ROOT}/link?{urlencode({'code': VisitSeal.of(settings).seal(made)})}"


def open_privately(settings: Settings, address: str) -> bool:
    """Opens the address in a browser through a file that only its owner can read; returns False without a browser.

    Everybody on the machine can see the arguments of a started browser, but not the content of the file.
    """
    settings.make_home()
    page = settings.home / "console.html"
    page.unlink(missing_ok=True)
    page.touch(mode=0o600)
    page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={address}">\n', encoding="utf-8")
    return webbrowser.open(page.as_uri())
