"""``casebank token``: prints bearer tokens, revokes them, and changes the secret that signs them."""

import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

import jwt
import typer
from rich.table import Table

from app.auth.revocations import Revocation, listed, revoke
from app.auth.tokens import ACT_AS, LEEWAY_S, OPERATOR, issue_token
from app.commands.erase import doubt_unknown
from app.settings import Settings
from app.settings.numbers import CENTURY_DAYS
from app.terminal.command_line import MaybeUser, checked, parts
from app.terminal.plain_console import out
from app.terminal.run_to_end import runs_to_end
from writer.audit import Change, note
from writer.privacy.redact import redact_text
from writer.rights.erase import is_gone

commands = typer.Typer(
    add_completion=False,
    invoke_without_command=True,
    help="Print a bearer token, revoke tokens, or replace the secret that signs them.",
)


OPERATOR_NAME = "operator"
MAX_HOURS = 24 * CENTURY_DAYS


@commands.callback()
def token(
    context: typer.Context,
    user: MaybeUser = None,
    hours: Annotated[float, typer.Option(min=0.01, max=MAX_HOURS, help="hours that the token is valid")] = 24 * 30,
    service: Annotated[
        bool, typer.Option("--service", help="let the token act for any user that its requests name")
    ] = False,
    scope: Annotated[str, typer.Option(help=f"further scope: {OPERATOR} lets it read /metrics")] = "",
) -> None:
    """Print a bearer token, signed with this installation's newest secret."""
    if context.invoked_subcommand is not None:
        return
    settings = Settings()
    if settings.jwks_url is not None:
        raise typer.BadParameter("CASEBANK_JWKS_URL is set: tokens come from your identity provider (docs/watch.md)")
    if user is None and scope != OPERATOR:
        raise typer.BadParameter("name a user, or give --scope " + OPERATOR, param_hint="--user")
    subject = checked(OPERATOR_NAME if user is None else user)
    if set(scope.split()) - {ACT_AS, OPERATOR}:
        raise typer.BadParameter(f"a scope is {ACT_AS}, {OPERATOR}, or both", param_hint="--scope")
    typer.echo(
        issue_token(
            settings.signing_secret,
            user=subject,
            issuer=settings.jwt_issuer,
            audience=settings.jwt_audience,
            ttl=timedelta(hours=hours),
            now=datetime.now(UTC),
            scope=" ".join(filter(None, (ACT_AS if service else "", scope))),
        ),
    )


@commands.command("revoke")
@runs_to_end
async def revoke_tokens(
    user: MaybeUser = None,
    jti: Annotated[str | None, typer.Option(help="id (claim jti) of the token to revoke")] = None,
    token_from_stdin: Annotated[
        bool, typer.Option("--token", help="read the token to revoke from standard input")
    ] = False,
    why: Annotated[str, typer.Option(help="reason, stored redacted with the revocation")] = "",
) -> None:
    """Revoke one token, or all tokens of a user or service that were issued up to now.

    It warns of a name that no row has. Of an erased user the reason is not stored, and the audit gets no entry.
    """
    if (user is not None) + (jti is not None) + token_from_stdin != 1:
        raise typer.BadParameter("give one of --user, --jti and --token")
    if user is not None:
        checked(user)
    if jti is not None and not jti.strip():
        raise typer.BadParameter("an id has at least one character", param_hint="--jti")
    why, _ = redact_text(why)
    revocation = _read(sys.stdin.readline().strip(), why) if token_from_stdin else Revocation(why, jti, user)
    async with parts() as runtime:
        subject = revocation.subject
        async with runtime.database.as_worker() as connection:
            is_erased = subject is not None and await connection.scalar(is_gone(subject))
            at = await revoke(connection, replace(revocation, why="") if is_erased else revocation)
        if user is not None and not is_erased:
            await doubt_unknown(runtime.database, user)
        if subject is not None and not is_erased:
            which: Literal["one", "all"] = "all" if revocation.jti is None else "one"
            change = Change.of((subject, None), OPERATOR_NAME, "revoke_tokens", which=which, why=why)
            async with runtime.database.as_user(subject, at) as connection:
                await note(connection, change)
    out.print(f"revoked at {at.isoformat()}; every replica refuses within two seconds")
    if revocation.jti is None:
        until = at + timedelta(seconds=LEEWAY_S)
        out.print(f"a new token is good if it is issued after {until.isoformat(timespec='seconds')}")


def _read(token: str, why: str) -> Revocation:
    """Returns the revocation of a token; its signature is not verified, so an invalid token can be revoked too."""
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
        jti, subject, ends = claims["jti"], claims["sub"], datetime.fromtimestamp(float(claims["exp"]), UTC)
    except (jwt.PyJWTError, KeyError, TypeError, ValueError, OverflowError):
        raise typer.BadParameter("the token lacks jti, sub or exp; revoke its user's tokens instead (--user)") from None
    return Revocation(why, str(jti), checked(subject), ends)


@commands.command("list-revoked")
@runs_to_end
async def list_revoked() -> None:
    """List the revocations, as digests and times: tokens and names are not stored."""
    async with parts(only_reads=True) as runtime, runtime.database.as_worker() as connection:
        revocations = (await connection.execute(listed())).mappings().all()
    table = Table("revoked", "what", "expires", "why")
    for row in revocations:
        jti, subject = row["jti_sha256"], row["subject_sha256"]
        what = f"token {jti.hex()[:16]}" if jti else f"all of {subject.hex()[:16]} issued up to then"
        ends = "" if row["expires_at"] is None else f"{row['expires_at']:%F %R}"
        table.add_row(f"{row['revoked_at']:%F %T}", what, ends, row["why"])
    out.print(table)


@commands.command("rotate-secret")
def rotate_secret(
    overlap_hours: Annotated[
        float, typer.Option(min=0, max=MAX_HOURS, help="hours that tokens of the old secret stay valid")
    ] = 24 * 30,
) -> None:
    """Replace the secret in CASEBANK_HOME; restart the services to sign and verify with the new one."""
    until = datetime.now(UTC) + timedelta(hours=overlap_hours)
    try:
        Settings().rotate_signing_secret(until)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    out.print(f"new secret made; tokens of the old one are valid until {until.isoformat(timespec='seconds')}")
    out.print("restart every service of this home now: until then it refuses tokens of the new secret")
