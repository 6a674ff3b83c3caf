"""Checks of this machine, for which no database is asked."""

import platform
import shutil
import stat
from importlib.metadata import version
from importlib.util import find_spec

import httpx

from app.auth import MIN_SECRET_BYTES
from app.doctor.finding import Finding, said
from app.settings import Settings

FREE_BYTES = 1 << 30
JWKS_TIMEOUT_S = 5.0


def software() -> Finding:
    """Says which versions of casebank and Python these are."""
    return Finding("software", ok=True, detail=f"casebank {version('casebank')}, Python {platform.python_version()}")


def training(settings: Settings) -> Finding:
    """Judges whether policies can be trained, where they are to be."""
    if find_spec("torch") is not None:
        return Finding("training", ok=True, detail="torch is installed; `casebank train` can run")
    wanted = settings.train_every_s > 0
    detail = "torch is not installed: nothing is learned here"
    return Finding(
        "training",
        None if not wanted else False,
        detail,
        "pip install 'casebank[train]', or set CASEBANK_TRAIN_EVERY_S=0",
    )


def disk(settings: Settings) -> Finding:
    """Judges the space left where the home is."""
    folder = next(path for path in (settings.home, *settings.home.absolute().parents) if path.exists())
    free = shutil.disk_usage(folder).free
    return Finding("disk", free >= FREE_BYTES, f"{free / 1e9:.1f} GB free at {folder}", "free some space")


def tokens(settings: Settings) -> Finding:
    """Judges what tokens are checked with: the keys that are published, or the secret."""
    if settings.jwks_url is None:
        size = len(settings.signing_secret.encode())
        advice = f"CASEBANK_JWT_SECRET needs {MIN_SECRET_BYTES} bytes at least"
        return Finding("tokens", size >= MIN_SECRET_BYTES, f"HS256, a secret of {size} bytes", advice)
    advice = "is CASEBANK_JWKS_URL right, and can this machine reach it? until then nobody gets in"
    try:
        keys = httpx.get(settings.jwks_url, timeout=JWKS_TIMEOUT_S).raise_for_status().json()["keys"]
    except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
        return Finding("tokens", ok=False, detail=f"no keys at {settings.jwks_url}: {said(error)}", advice=advice)
    return Finding("tokens", bool(keys), f"RS256, {len(keys)} keys at {settings.jwks_url}", advice)


def secrets(settings: Settings) -> Finding:
    """Judges who may read the secrets of the home."""
    path = settings.home / "secrets.json"
    if not path.exists():
        return Finding("secrets", ok=None, detail="no secrets.json: made on first use, or not needed")
    mode = stat.S_IMODE(path.stat().st_mode)
    return Finding("secrets", not mode & 0o077, f"mode {mode:04o}, {path}", f"chmod 600 {path}")
