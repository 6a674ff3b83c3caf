import asyncio
import base64
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from app.auth import (
    ACT_AS,
    MAX_TOKEN_CHARS,
    Identity,
    KeysUnavailable,
    NotAllowed,
    NotAuthenticated,
    PublishedKeys,
    TokenVerifier,
    issue_token,
)

SECRET = "a secret of more than thirty-two bytes"
ISSUER, AUDIENCE = "https://issuer.example", "casebank"
NOW = datetime.now(UTC).replace(microsecond=0)
VERIFIER = TokenVerifier.hs256(SECRET, ISSUER, AUDIENCE)


def claims(**changed: Any) -> dict[str, Any]:
    whole = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "iat": NOW, "exp": NOW + timedelta(hours=5)} | changed
    return {name: value for name, value in whole.items() if value is not None}


def bearer(*, key: Any = SECRET, alg: str = "HS256", kid: str | None = None, **changed: Any) -> str:
    token = jwt.encode(claims(**changed), key, algorithm=alg, headers={"kid": kid} if kid else None)
    return f"Bearer {token}"


def segment(data: Any) -> str:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


@cache
def rsa(name: str, bits: int = 2048) -> RSAPrivateKey:
    return generate_private_key(public_exponent=65537, key_size=bits)


def jwk(kid: str, key: RSAPrivateKey, **more: str) -> dict[str, Any]:
    return jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True) | {"kid": kid, "use": "sig"} | more


@dataclass
class Issuer:
    """A JWKS server on loopback; tests change what it publishes and count what it is asked."""

    keys: list[dict[str, Any]] = field(default_factory=list)
    body: bytes | None = None
    status: int = 200
    delay_s: float = 0
    pause_s: float = 0
    fetches: int = 0
    url: str = ""

    def publish(self, *kids: str) -> None:
        self.keys, self.body, self.status = [jwk(kid, rsa(kid)) for kid in kids], None, 200


@dataclass
class Clock:
    """Seconds that pass when a test says so."""

    seconds: float = 1000

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    state = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.fetches += 1
            time.sleep(state.delay_s)
            self.send_response(state.status)
            self.end_headers()
            body = json.dumps({"keys": state.keys}).encode() if state.body is None else state.body
            for start in range(0, len(body), 100):
                self.wfile.write(body[start : start + 100])
                time.sleep(state.pause_s)

        def log_message(self, *_args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.url = f"http://127.0.0.1:{server.server_port}/jwks.json"
        state.publish("one")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        server.shutdown()
        thread.join()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def published(issuer: Issuer, clock: Clock) -> TokenVerifier:
    return TokenVerifier(PublishedKeys(issuer.url, timeout_s=10, clock=clock), ISSUER, AUDIENCE)


def signed(kid: str, **changed: Any) -> str:
    return bearer(key=rsa(kid), alg="RS256", kid=kid, **changed)


async def test_a_good_token_says_who_it_is_and_since_when():
    assert await VERIFIER.identify(bearer(), None) == Identity("alice", "alice", NOW)


async def test_an_identity_cannot_be_changed_and_its_time_is_utc():
    identity = await VERIFIER.identify(bearer(), None)
    assert identity.issued_at.utcoffset() == timedelta(0)
    with pytest.raises(FrozenInstanceError):
        identity.user_sub = "bob"  # type: ignore[misc]


async def test_an_issued_token_is_accepted_and_expires_after_its_ttl():
    def issued(now: datetime) -> str:
        return "Bearer " + issue_token(
            SECRET, user="ålice", issuer=ISSUER, audience=AUDIENCE, ttl=timedelta(hours=1), now=now
        )

    assert await VERIFIER.identify(issued(NOW), None) == Identity("ålice", "ålice", NOW)
    with pytest.raises(NotAuthenticated, match="expired"):
        await VERIFIER.identify(issued(NOW - timedelta(hours=2)), None)


@pytest.mark.parametrize(("secret", "user"), [("x" * 31, "alice"), (SECRET, ""), (SECRET, "a\0b"), (SECRET, "a" * 256)])
def test_no_token_is_issued_with_a_short_secret_or_for_an_impossible_user(secret: str, user: str):
    with pytest.raises(ValueError, match=r"must have|has 1 to"):
        issue_token(secret, user=user, issuer=ISSUER, audience=AUDIENCE, ttl=timedelta(hours=1), now=NOW)


def test_a_verifier_refuses_a_short_secret_and_does_not_show_a_long_one():
    with pytest.raises(ValueError, match="32 bytes"):
        TokenVerifier.hs256("x" * 31, ISSUER, AUDIENCE)
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


async def test_clocks_may_differ_by_the_leeway():
    now = datetime.now(UTC)  # not NOW: the suite may have begun half a minute ago
    ahead = bearer(iat=now + timedelta(seconds=20))
    behind = bearer(exp=now - timedelta(seconds=5))
    assert await VERIFIER.identify(ahead, None)
    assert await VERIFIER.identify(behind, None)
    with pytest.raises(NotAuthenticated):
        await TokenVerifier.hs256(SECRET, ISSUER, AUDIENCE, leeway_s=0).identify(behind, None)


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
        await TokenVerifier.hs256(SECRET * 2, ISSUER, AUDIENCE).identify(bearer(key=SECRET * 2, alg=alg), None)


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "", None, ["HS256"], 1])
async def test_an_unsigned_token_is_refused_by_both_kinds_of_keys(alg: Any, published: TokenVerifier):
    body = segment(claims(iat=1, exp=2**31))
    unsigned = f"Bearer {segment({'typ': 'JWT', 'kid': 'one', 'alg': alg})}.{body}."
    for verifier in (VERIFIER, published):
        with pytest.raises(NotAuthenticated):
            await verifier.identify(unsigned, None)


@pytest.mark.parametrize("form", [PublicFormat.SubjectPublicKeyInfo, PublicFormat.PKCS1])
async def test_the_public_key_is_no_shared_secret(form: PublicFormat, published: TokenVerifier):
    # PyJWT declines to forge such a token, so it is made by hand.
    unsigned = f"{segment({'alg': 'HS256', 'kid': 'one'})}.{segment(claims(iat=1, exp=2**31))}"
    mac = hmac.HMAC(rsa("one").public_key().public_bytes(Encoding.PEM, form), hashes.SHA256())
    mac.update(unsigned.encode())
    with pytest.raises(NotAuthenticated):
        await published.identify(f"Bearer {unsigned}.{segment(mac.finalize())}", None)


async def test_a_token_of_the_other_kind_is_refused_both_ways(published: TokenVerifier):
    with pytest.raises(NotAuthenticated):
        await VERIFIER.identify(signed("one"), None)
    with pytest.raises(NotAuthenticated):
        await published.identify(bearer(kid="one"), None)


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
        (ACT_AS, None, "bot"),
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
        assert await VERIFIER.identify(header, acting_for) == Identity(user, "bot", NOW)


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


async def test_published_keys_are_fetched_once_for_many_callers(published: TokenVerifier, issuer: Issuer):
    issuer.delay_s = 0.05
    found = await asyncio.gather(*(published.identify(signed("one"), None) for _ in range(50)))
    assert {identity.user_sub for identity in found} == {"alice"}
    assert issuer.fetches == 1


async def test_the_loop_goes_on_while_keys_are_fetched(published: TokenVerifier, issuer: Issuer):
    issuer.delay_s = 0.2
    asking = asyncio.create_task(published.identify(signed("one"), None))
    turns = 0
    while not asking.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert turns > 5
    assert (await asking).user_sub == "alice"


async def test_a_caller_who_hangs_up_does_not_take_the_fetch_from_the_others(published: TokenVerifier, issuer: Issuer):
    issuer.delay_s = 0.1
    first, second = (asyncio.create_task(published.identify(signed("one"), None)) for _ in range(2))
    await asyncio.sleep(0.02)
    first.cancel()
    assert (await second).user_sub == "alice"
    assert issuer.fetches == 1


async def test_a_new_key_is_found_and_a_withdrawn_one_refused(published: TokenVerifier, issuer: Issuer, clock: Clock):
    await published.identify(signed("one"), None)
    issuer.publish("two")
    with pytest.raises(NotAuthenticated):
        await published.identify(signed("two"), None)  # too soon to ask again
    clock.seconds += 11
    assert (await published.identify(signed("two"), None)).user_sub == "alice"
    with pytest.raises(NotAuthenticated):
        await published.identify(signed("one"), None)
    assert issuer.fetches == 2


async def test_a_key_withdrawn_in_silence_ends_with_its_lifespan(
    published: TokenVerifier, issuer: Issuer, clock: Clock
):
    await published.identify(signed("one"), None)
    issuer.publish("two")
    clock.seconds += 301
    with pytest.raises(NotAuthenticated):
        await published.identify(signed("one"), None)


async def test_unknown_keys_cause_one_fetch_per_interval(published: TokenVerifier, issuer: Issuer, clock: Clock):
    await published.identify(signed("one"), None)
    for _interval in range(3):
        clock.seconds += 10
        storm = (published.identify(bearer(key=rsa("x"), alg="RS256", kid=f"k{n}"), None) for n in range(30))
        answers = await asyncio.gather(*storm, return_exceptions=True)
        assert {type(answer) for answer in answers} == {NotAuthenticated}
    assert issuer.fetches == 4


async def test_failed_fetches_are_bounded_too(published: TokenVerifier, issuer: Issuer, clock: Clock):
    issuer.status = 503
    for _ in range(5):
        with pytest.raises(KeysUnavailable):
            await published.identify(signed("one"), None)
    assert issuer.fetches == 1
    issuer.publish("one")
    clock.seconds += 10
    assert (await published.identify(signed("one"), None)).user_sub == "alice"


async def test_known_keys_outlive_an_outage_but_not_a_long_one(published: TokenVerifier, issuer: Issuer, clock: Clock):
    await published.identify(signed("one"), None)
    issuer.status = 503
    clock.seconds += 3000
    assert (await published.identify(signed("one"), None)).user_sub == "alice"
    with pytest.raises(KeysUnavailable):
        await published.identify(signed("two"), None)
    clock.seconds += 3000
    with pytest.raises(KeysUnavailable):
        await published.identify(signed("one"), None)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"keys": 1}',
        b'{"keys": [1]}',
        b'{"keys": [{"kty": "RSA"}]}',
        b'{"keys": []}',
        b"\xff",
        b"[" * 9999,
    ],
)
async def test_nonsense_from_the_issuer_means_no_keys(body: bytes, published: TokenVerifier, issuer: Issuer):
    issuer.body = body
    with pytest.raises(KeysUnavailable):
        await published.identify(signed("one"), None)


async def test_a_published_key_with_an_odd_name_means_no_keys(published: TokenVerifier, issuer: Issuer):
    issuer.keys[0]["kid"] = ["one"]
    with pytest.raises(KeysUnavailable):
        await published.identify(signed("one"), None)


async def test_an_issuer_that_never_answers_is_given_up_on(issuer: Issuer):
    issuer.delay_s = 0.4
    verifier = TokenVerifier(PublishedKeys(issuer.url, timeout_s=0.05), ISSUER, AUDIENCE)
    with pytest.raises(KeysUnavailable):
        await verifier.identify(signed("one"), None)


async def test_an_answer_that_trickles_in_is_given_up_on(issuer: Issuer):
    issuer.pause_s = 0.1  # each read is in time, the whole is not
    verifier = TokenVerifier(PublishedKeys(issuer.url, timeout_s=0.3), ISSUER, AUDIENCE)
    with pytest.raises(KeysUnavailable):
        await verifier.identify(signed("one"), None)


async def test_an_issuer_that_is_not_there_has_no_keys():
    with pytest.raises(KeysUnavailable):
        await TokenVerifier.rs256("http://127.0.0.1:1/jwks.json", ISSUER, AUDIENCE).identify(signed("one"), None)


def test_keys_come_from_the_web_only():
    with pytest.raises(jwt.PyJWKClientError):
        TokenVerifier.rs256("file:///etc/keys.json", ISSUER, AUDIENCE)


async def test_a_token_without_a_key_id_is_refused_unfetched(published: TokenVerifier, issuer: Issuer):
    with pytest.raises(NotAuthenticated):
        await published.identify(bearer(key=rsa("one"), alg="RS256"), None)
    assert issuer.fetches == 0


@pytest.mark.parametrize("more", [{"alg": "RS512"}, {"alg": "PS256"}, {"use": "enc"}])
async def test_a_key_published_for_something_else_is_not_used(
    more: dict[str, str], published: TokenVerifier, issuer: Issuer
):
    issuer.keys = [jwk("one", rsa("one"), **more), jwk("two", rsa("two"))]
    with pytest.raises(NotAuthenticated):
        await published.identify(signed("one"), None)


async def test_a_published_shared_secret_verifies_nothing(published: TokenVerifier, issuer: Issuer):
    issuer.keys.append({"kty": "oct", "kid": "oct", "k": segment(SECRET.encode())})
    with pytest.raises(NotAuthenticated):
        await published.identify(bearer(kid="oct"), None)


@pytest.mark.filterwarnings("ignore::jwt.InsecureKeyLengthWarning")
async def test_a_key_of_1024_bits_is_too_weak(published: TokenVerifier, issuer: Issuer):
    issuer.keys = [jwk("weak", rsa("weak", 1024))]
    with pytest.raises(NotAuthenticated):
        await published.identify(bearer(key=rsa("weak", 1024), alg="RS256", kid="weak"), None)


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
