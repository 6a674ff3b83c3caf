"""The secret that signs tokens changes with an overlap."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import jwt
import pytest
from typer.testing import CliRunner

from app.auth.errors import NotAuthenticated
from app.auth.keys import OldSecret, SharedSecret, key_id
from app.auth.tokens import ACT_AS, TokenVerifier, issue_token
from app.cli import cli
from app.doctor.machine import tokens
from app.runtime import make_verifier
from app.settings import Settings
from app.wrong_settings import WrongSettings

OLD, NEW, OTHER = (name * 32 for name in "onx")
LATER, BEFORE = (datetime.now(UTC) + timedelta(hours=hours) for hours in (1, -1))


def token(secret: str) -> str:
    hour, now = timedelta(hours=1), datetime.now(UTC)
    return issue_token(secret, user="ada", issuer="casebank", audience="casebank", ttl=hour, now=now)


def verifier(*older: OldSecret) -> TokenVerifier:
    return TokenVerifier(SharedSecret(NEW, older), "casebank", "casebank")


async def test_tokens_of_both_secrets_are_good_in_the_overlap_whatever_key_they_name():
    overlap = verifier(OldSecret(secret=OLD, until=LATER))
    claims = jwt.decode(token(OLD), options={"verify_signature": False})
    strange = jwt.encode(claims, OLD, algorithm="HS256", headers={"kid": "backend-7"})
    bare = jwt.encode(claims, OLD, algorithm="HS256")
    for good in (token(OLD), token(NEW), strange, bare):
        assert (await overlap.identify(f"Bearer {good}", None)).user_sub == "ada"


async def test_a_token_of_an_old_secret_is_refused_after_its_time_and_a_strangers_always():
    late = verifier(OldSecret(secret=OLD, until=BEFORE))
    for bad in (token(OLD), token(OTHER)):
        with pytest.raises(NotAuthenticated):
            await late.identify(f"Bearer {bad}", None)
    with pytest.raises(NotAuthenticated):
        await verifier(OldSecret(secret=OLD, until=LATER)).identify(f"Bearer {token(OTHER)}", None)


def test_a_short_old_secret_is_refused_and_no_secret_is_shown():
    with pytest.raises(ValueError, match="32 bytes"):
        verifier(OldSecret(secret="short", until=LATER))
    assert OLD not in repr(verifier(OldSecret(secret=OLD, until=LATER)))
    assert NEW not in key_id(NEW)


async def test_old_secrets_come_from_the_settings(tmp_path: Path):
    old = f"{OLD}@{LATER.isoformat()} {OTHER}@{BEFORE.isoformat()}"
    settings = Settings(home=tmp_path, jwt_secret=NEW, jwt_secrets_old=old)
    assert (await make_verifier(settings).identify(f"Bearer {token(OLD)}", None)).user_sub == "ada"
    with pytest.raises(NotAuthenticated):
        await make_verifier(settings).identify(f"Bearer {token(OTHER)}", None)
    assert OLD not in repr(settings)
    assert settings.as_environment()["CASEBANK_JWT_SECRETS_OLD"] == old


@pytest.mark.parametrize("old", [OLD, f"{OLD}@", f"{OLD}@soon", f"{OLD}@2030-01-01T00:00:00"])
def test_an_old_secret_without_a_date_is_refused_by_name_of_the_setting(tmp_path: Path, old: str):
    with pytest.raises(WrongSettings, match="CASEBANK_JWT_SECRETS_OLD") as refused:
        Settings(home=tmp_path, jwt_secret=NEW, jwt_secrets_old=old)
    assert OLD not in str(refused.value)


async def test_tokens_of_a_supabase_project_are_good_with_its_legacy_secret_and_its_service_role_key_is_not(
    tmp_path: Path,
):
    """The claims are those of Supabase's access tokens and of the key that each project has."""
    issuer, audience = "https://ref.supabase.co/auth/v1", "authenticated"
    settings = Settings(home=tmp_path, jwt_secret=NEW, jwt_issuer=issuer, jwt_audience=audience)
    verifier, now = make_verifier(settings), datetime.now(UTC)
    user = {"iss": issuer, "aud": audience, "sub": "8a2f", "role": audience, "iat": now, "exp": LATER, "aal": "aal1"}
    users = jwt.encode(user, NEW, algorithm="HS256", headers={"kid": "Xa1"})
    assert (await verifier.identify(f"Bearer {users}", None)).user_sub == "8a2f"
    own = issue_token(NEW, user="n8n", issuer=issuer, audience=audience, ttl=timedelta(hours=1), now=now, scope=ACT_AS)
    assert (await verifier.identify(f"Bearer {own}", "8a2f")).user_sub == "8a2f"
    key = {"iss": "supabase", "ref": "ref", "role": "service_role", "iat": now, "exp": LATER}
    with pytest.raises(NotAuthenticated, match="lacks"):
        await verifier.identify(f"Bearer {jwt.encode(key, NEW, algorithm='HS256')}", "8a2f")


async def test_the_secret_of_the_home_is_changed_by_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CASEBANK_HOME", str(tmp_path))
    before = Settings(home=tmp_path)
    first, master = token(before.signing_secret), before.master_key_bytes
    assert CliRunner().invoke(cli, ["token", "rotate-secret", "--overlap-hours", "1"]).exit_code == 0
    after = Settings(home=tmp_path)
    assert (after.signing_secret != before.signing_secret, after.master_key_bytes) == (True, master)
    printed = CliRunner().invoke(cli, ["token", "--user", "ada"]).stdout.strip()
    assert jwt.get_unverified_header(printed)["kid"] == key_id(after.signing_secret)
    for good in (first, printed):
        assert (await make_verifier(after).identify(f"Bearer {good}", None)).user_sub == "ada"
    assert (tmp_path / "secrets.json").stat().st_mode & 0o777 == 0o600


def test_a_secret_that_cannot_be_stored_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CASEBANK_HOME", str(tmp_path))
    before = Settings(home=tmp_path).signing_secret
    (tmp_path / "secrets.lock").unlink()
    (tmp_path / "secrets.lock").mkdir()
    refused = CliRunner().invoke(cli, ["token", "rotate-secret"])
    assert (refused.exit_code, refused.output.count("\n")) == (1, 1)
    assert refused.output.startswith("casebank: CASEBANK_HOME: ")
    assert Settings(home=tmp_path).signing_secret == before


@pytest.mark.parametrize(
    "words", [("token", "--user", "ada", "--hours"), ("token", "rotate-secret", "--overlap-hours")]
)
@pytest.mark.parametrize("hours", ["876600.1", "1e12", "inf", "nan"])
def test_a_time_of_more_than_a_hundred_years_is_refused_and_changes_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], hours: str
):
    monkeypatch.setenv("CASEBANK_HOME", str(tmp_path))
    before = Settings(home=tmp_path).signing_secret
    done = CliRunner().invoke(cli, [*words, hours])
    assert (done.exit_code, words[-1] in done.stderr) == (2, True)
    assert "876600" in done.stderr or hours == "nan"
    assert Settings(home=tmp_path).signing_secret == before
    assert CliRunner().invoke(cli, [*words, "876600"]).exit_code == 0


def test_doctor_complains_of_an_old_secret_past_its_date(tmp_path: Path):
    def found(until: datetime) -> bool | None:
        return tokens(Settings(home=tmp_path, jwt_secret=NEW, jwt_secrets_old=f"{OLD}@{until.isoformat()}")).ok

    assert (found(LATER), found(BEFORE)) == (True, False)
