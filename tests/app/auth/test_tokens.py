"""Who calls, and for whom: what a token must be, and what no header gets past."""

import asyncio
import json
from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.auth.errors import NotAllowed, NotAuthenticated, UserNotNamed
from app.auth.keys import SharedSecret
from app.auth.tokens import ACT_AS, LEEWAY_S, MAX_TOKEN_CHARS, TokenVerifier, issue_token
from tests.app.tokens import AUDIENCE, ISSUER, NOW, SECRET, VERIFIER, bearer, claims, segment
from writer.author import Author

EARLIEST = NOW - timedelta(seconds=LEEWAY_S)
FIRST_SECOND = -62_135_596_800
"""First second of the year 1: the leeway before it is no time."""


async def test_a_good_token_says_who_it_is_and_since_when():
    assert await VERIFIER.identify(bearer(), None) == Author("alice", "alice", EARLIEST)


async def test_an_author_cannot_be_changed_and_the_time_is_utc():
    author = await VERIFIER.identify(bearer(), None)
    assert author.authorised_at.utcoffset() == timedelta(0)
    with pytest.raises(FrozenInstanceError):
        author.user_sub = "bob"  # type: ignore[misc]


async def test_an_issued_token_is_accepted_and_expires_after_its_ttl():
    def issued(now: datetime) -> str:
        return "Bearer " + issue_token(
            SECRET, user="ålice", issuer=ISSUER, audience=AUDIENCE, ttl=timedelta(hours=1), now=now
        )

    assert await VERIFIER.identify(issued(NOW), None) == Author("ålice", "ålice", EARLIEST)
    with pytest.raises(NotAuthenticated, match="expired"):
        await VERIFIER.identify(issued(NOW - timedelta(hours=2)), None)


@pytest.mark.parametrize(("secret", "user"), [("x" * 31, "alice"), (SECRET, ""), (SECRET, "a\0b"), (SECRET, "a" * 256)])
def test_no_token_is_issued_with_a_short_secret_or_for_an_impossible_user(secret: str, user: str):
    with pytest.raises(ValueError, match=r"must have|has 1 to"):
        issue_token(secret, user=user, issuer=ISSUER, audience=AUDIENCE, ttl=timedelta(hours=1), now=NOW)


def test_a_verifier_refuses_a_short_secret_and_does_not_show_a_long_one():
    with pytest.raises(ValueError, match="32 bytes"):
        TokenVerifier(SharedSecret("x" * 31), ISSUER, AUDIENCE)
    assert SECRET not in repr(VERIFIER)


@pytest.mark.parametrize("scheme", ["bearer", "BEARER"])
async def test_the_scheme_may_be_in_any_case(scheme: str):
    header = bearer().replace("Bearer", scheme)
    assert (await VERIFIER.identify(header, None)).user_sub == "alice"


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Basic YTpi",
        "Bearer a.b",
        "Bearer a.b.c",
        "Bearer ü.ü.ü",
        "Bearer \ud800",
        "..",
        "\0",
    ],
)
async def test_a_header_without_a_token_is_refused(header: str | None):
    with pytest.raises(NotAuthenticated):
        await VERIFIER.identify(header, None)


async def test_a_header_with_two_tokens_is_refused():
    with pytest.raises(NotAuthenticated):
        await VERIFIER.identify(f"{bearer()}, {bearer()}", None)


async def test_a_token_over_8_kib_is_refused_unread():
    with pytest.raises(NotAuthenticated, match="too long"):
        await VERIFIER.identify(bearer(filler="x" * MAX_TOKEN_CHARS), None)


async def test_a_header_nested_too_deep_to_parse_is_refused():
    deep = segment(b'{"a":' + b"[" * 5000 + b"]" * 500 + b"}")
    with pytest.raises(NotAuthenticated):
        await VERIFIER.identify(f"Bearer {deep}.e30.e30", None)


@pytest.mark.parametrize("claim", ["exp", "iat", "iss", "aud", "sub"])
async def test_each_required_claim_is_required(claim: str):
    with pytest.raises(NotAuthenticated, match="lacks"):
        await VERIFIER.identify(bearer(**{claim: None}), None)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"exp": NOW - timedelta(minutes=1)}, "expired"),
        ({"exp": "soon"}, "not valid"),
        ({"exp": float("inf")}, "not valid"),
        ({"iat": NOW + timedelta(hours=1)}, "not valid yet"),
        ({"iat": -(10**15)}, "not a time"),
        ({"iat": FIRST_SECOND}, "not a time"),
        ({"iat": [1]}, "not valid"),
        ({"nbf": NOW + timedelta(hours=1)}, "not valid yet"),
        ({"iss": "https://elsewhere.example"}, "issuer"),
        ({"iss": ISSUER + "/"}, "issuer"),
        ({"aud": "another"}, "audience"),
        ({"aud": []}, "lacks"),
        ({"aud": {"casebank": 1}}, "audience"),
    ],
)
async def test_a_token_that_is_late_early_or_foreign_is_refused_with_the_reason(changed: dict[str, Any], reason: str):
    with pytest.raises(NotAuthenticated, match=reason):
        await VERIFIER.identify(bearer(**changed), None)


async def test_a_token_of_another_secret_is_refused_with_the_reason():
    foreign = jwt.encode(claims(), "another secret of thirty-two bytes", algorithm="HS256")
    with pytest.raises(NotAuthenticated, match="another secret"):
        await VERIFIER.identify(f"Bearer {foreign}", None)


async def test_a_token_may_have_any_text_as_its_id_and_is_refused_by_it_once_revoked():
    verifier = TokenVerifier(SharedSecret(SECRET), ISSUER, AUDIENCE)
    token = jwt.api_jws.encode(json.dumps(claims(jti="\ud800", iat=1, exp=2**31)).encode(), SECRET, algorithm="HS256")
    known = await verifier.bearer(f"Bearer {token}")
    verifier.revocations.refuse(str(known.jti))
    with pytest.raises(NotAuthenticated, match="revoked"):
        await verifier.bearer(f"Bearer {token}")


async def test_clocks_may_differ_by_the_leeway():
    now = datetime.now(UTC)  # not NOW: the suite may have begun half a minute ago
    ahead = bearer(iat=now + timedelta(seconds=20))
    behind = bearer(exp=now - timedelta(seconds=5))
    assert await VERIFIER.identify(ahead, None)
    assert await VERIFIER.identify(behind, None)
    with pytest.raises(NotAuthenticated):
        await TokenVerifier(SharedSecret(SECRET), ISSUER, AUDIENCE, leeway_s=0).identify(behind, None)


async def test_the_verdict_on_a_token_is_kept_until_the_token_expires_or_its_secret_ends():
    verifier = TokenVerifier(SharedSecret(SECRET), ISSUER, AUDIENCE)
    late = bearer(exp=datetime.now(UTC) - timedelta(seconds=5))  # within the leeway
    assert await verifier.bearer(late) is await verifier.bearer(late)
    with pytest.raises(NotAuthenticated, match="expired"):
        await replace(verifier, leeway_s=0).bearer(late)
    with pytest.raises(NotAuthenticated):
        await replace(verifier, keys=SharedSecret("n" * 32)).bearer(late)


async def test_one_of_several_audiences_is_enough():
    assert await VERIFIER.identify(bearer(aud=["another", AUDIENCE]), None)


@pytest.mark.parametrize(
    "sub", ["", "a" * 256, "a\0b", "a\nb", "a\x7f", "\x85", "\ud800", 7, True, None, ["alice"], {}]
)
async def test_a_subject_that_cannot_be_stored_is_refused(sub: Any):
    token = jwt.api_jws.encode(json.dumps(claims(sub=sub, iat=1, exp=2**31)).encode(), SECRET, algorithm="HS256")
    with pytest.raises(NotAuthenticated):
        await VERIFIER.identify(f"Bearer {token}", None)


@pytest.mark.parametrize("sub", ["a", "a" * 255, "auth0|5f7c", "jörg", "李雷", "o'brien; --", "a b", "👩‍🚀"])
async def test_any_printable_subject_is_accepted(sub: str):
    assert (await VERIFIER.identify(bearer(sub=sub), None)).user_sub == sub


@pytest.mark.parametrize("part", [0, 1, 2])
async def test_a_token_changed_anywhere_is_refused(part: int):
    parts = bearer().removeprefix("Bearer ").split(".")
    middle = len(parts[part]) // 2
    swapped = "A" if parts[part][middle] != "A" else "B"
    parts[part] = parts[part][:middle] + swapped + parts[part][middle + 1 :]
    with pytest.raises(NotAuthenticated):
        await VERIFIER.identify("Bearer " + ".".join(parts), None)


@pytest.mark.parametrize("alg", ["HS384", "HS512"])
async def test_only_the_one_algorithm_is_accepted(alg: str):
    with pytest.raises(NotAuthenticated):
        await VERIFIER.identify(bearer(key=SECRET * 2, alg=alg), None)
    with pytest.raises(NotAuthenticated):
        await TokenVerifier(SharedSecret(SECRET * 2), ISSUER, AUDIENCE).identify(bearer(key=SECRET * 2, alg=alg), None)


async def test_a_user_whose_name_comes_in_other_bytes_than_utf_8_is_told_which_to_send():
    with pytest.raises(NotAllowed, match="X-Casebank-User needs 1 to 255 characters in UTF-8"):
        await VERIFIER.identify(bearer(sub="bot", scope=ACT_AS), "J\xf6rg")


@pytest.mark.parametrize(
    ("scope", "acting_for", "user"),
    [
        (None, None, "bot"),
        (None, "bot", "bot"),
        (None, "alice", None),
        ("", "alice", None),
        ("casebank:act-as-admin", "alice", None),
        ("CASEBANK:ACT-AS", "alice", None),
        ([], "alice", None),
        ([["casebank:act-as"]], "alice", None),
        ({ACT_AS: True}, "alice", None),
        (7, "alice", None),
        (ACT_AS, "bot", "bot"),
        (ACT_AS, "alice", "alice"),
        (f"openid {ACT_AS} email", "alice", "alice"),
        ([ACT_AS], "alice", "alice"),
        (["openid", ACT_AS, 7], "alice", "alice"),
        (ACT_AS, "", None),
        (ACT_AS, "a\0b", None),
        (ACT_AS, "a" * 256, None),
        (ACT_AS, "\ud800", None),
        (ACT_AS, "李雷".encode().decode("latin-1"), "李雷"),
        (ACT_AS, "\xff", None),
    ],
)
async def test_only_the_scope_lets_a_service_act_for_a_user_it_names(
    scope: Any, acting_for: str | None, user: str | None
):
    header = bearer(sub="bot", scope=scope)
    if user is None:
        with pytest.raises(NotAllowed):
            await VERIFIER.identify(header, acting_for)
    else:
        author = Author(user, "bot", EARLIEST, is_service=ACT_AS in (scope or ""))
        assert await VERIFIER.identify(header, acting_for) == author


@pytest.mark.parametrize("scope", [ACT_AS, f"openid {ACT_AS}", [ACT_AS]])
async def test_a_service_that_names_no_user_is_refused(scope: Any):
    with pytest.raises(UserNotNamed):
        await VERIFIER.identify(bearer(sub="bot", scope=scope), None)
    identity = await VERIFIER.identify(bearer(sub="bot", scope=scope), "bot")  # its own memory is its own to name
    assert (identity.user_sub, identity.actor) == ("bot", "bot")


async def test_a_bad_token_is_refused_before_the_user_it_names_is_looked_at():
    with pytest.raises(NotAuthenticated):
        await VERIFIER.identify(bearer(exp=1, scope=ACT_AS), "alice")


async def test_no_message_quotes_the_token():
    for header in (bearer(exp=1), bearer(aud="marker"), bearer(key="x" * 32), "Bearer marker", "marker"):
        with pytest.raises(NotAuthenticated) as caught:
            await VERIFIER.identify(header, None)
        assert "marker" not in str(caught.value)
        assert header.split(" ")[-1][:12] not in str(caught.value)
        assert caught.value.__cause__ is None


headers = st.one_of(
    st.binary(max_size=200).map(lambda raw: raw.decode("latin-1")),
    st.text(max_size=200).map("Bearer {}".format),
    st.binary(max_size=200).map(lambda raw: f"Bearer {segment(raw)}.{segment(raw)}.{segment(raw)}"),
    st.dictionaries(
        st.sampled_from(["alg", "kid", "typ", "crit", "b64"]), st.none() | st.text() | st.lists(st.text())
    ).map(lambda head: f"Bearer {segment(head)}.{segment(claims(iat=1, exp=2**31))}.AAAA"),
)


@given(header=headers)
@settings(max_examples=300, deadline=None)
def test_whatever_the_header_holds_it_is_not_authenticated(header: str):
    with pytest.raises(NotAuthenticated):
        asyncio.run(VERIFIER.identify(header, None))
