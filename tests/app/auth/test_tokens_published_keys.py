"""Keys that an issuer publishes: fetched seldom, kept through an outage, and never taken for a shared secret."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as generate_ec_key
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from app.auth.errors import KeysUnavailable, NotAuthenticated
from app.auth.keys import PublishedKeys
from app.auth.tokens import TokenVerifier
from tests.app.tokens import AUDIENCE, ISSUER, SECRET, VERIFIER, bearer, claims, segment
from tests.clock import Clock


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
    return Clock(1_000.0)


@pytest.fixture
def published(issuer: Issuer, clock: Clock) -> TokenVerifier:
    return TokenVerifier(PublishedKeys(issuer.url, timeout_s=10, clock=clock), ISSUER, AUDIENCE)


def signed(kid: str, **changed: Any) -> str:
    return bearer(key=rsa(kid), alg="RS256", kid=kid, **changed)


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
    clock.now += 11
    assert (await published.identify(signed("two"), None)).user_sub == "alice"
    with pytest.raises(NotAuthenticated):
        await published.identify(signed("one"), None)
    assert issuer.fetches == 2


async def test_a_key_withdrawn_in_silence_ends_with_its_lifespan(
    published: TokenVerifier, issuer: Issuer, clock: Clock
):
    await published.identify(signed("one"), None)
    issuer.publish("two")
    clock.now += 301
    with pytest.raises(NotAuthenticated):
        await published.identify(signed("one"), None)


async def test_unknown_keys_cause_one_fetch_per_interval(published: TokenVerifier, issuer: Issuer, clock: Clock):
    await published.identify(signed("one"), None)
    for _interval in range(3):
        clock.now += 10
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
    clock.now += 10
    assert (await published.identify(signed("one"), None)).user_sub == "alice"


async def test_known_keys_outlive_an_outage_but_not_a_long_one(published: TokenVerifier, issuer: Issuer, clock: Clock):
    await published.identify(signed("one"), None)
    issuer.status = 503
    clock.now += 3000
    assert (await published.identify(signed("one"), None)).user_sub == "alice"
    with pytest.raises(KeysUnavailable):
        await published.identify(signed("two"), None)
    clock.now += 3000
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
        await TokenVerifier(PublishedKeys("http://127.0.0.1:1/jwks.json"), ISSUER, AUDIENCE).identify(
            signed("one"), None
        )


def test_keys_come_from_the_web_only():
    with pytest.raises(jwt.PyJWKClientError):
        TokenVerifier(PublishedKeys("file:///etc/keys.json"), ISSUER, AUDIENCE)


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


async def test_a_token_of_a_supabase_project_is_good_with_its_published_key_and_no_other(
    published: TokenVerifier, issuer: Issuer
):
    key, other = generate_ec_key(SECP256R1()), generate_ec_key(SECP256R1())
    algorithm = jwt.algorithms.ECAlgorithm(jwt.algorithms.ECAlgorithm.SHA256)
    issuer.keys.append(algorithm.to_jwk(key.public_key(), as_dict=True) | {"kid": "ec", "use": "sig", "alg": "ES256"})
    token = bearer(key=key, alg="ES256", kid="ec", role="authenticated", session_id="s", is_anonymous=False)
    assert (await published.identify(token, None)).user_sub == "alice"
    for wrong in (bearer(key=other, alg="ES256", kid="ec"), bearer(key=rsa("one"), alg="RS256", kid="ec")):
        with pytest.raises(NotAuthenticated):
            await published.identify(wrong, None)


@pytest.mark.filterwarnings("ignore::jwt.InsecureKeyLengthWarning")
async def test_a_key_of_1024_bits_is_too_weak(published: TokenVerifier, issuer: Issuer):
    issuer.keys = [jwk("weak", rsa("weak", 1024))]
    with pytest.raises(NotAuthenticated):
        await published.identify(bearer(key=rsa("weak", 1024), alg="RS256", kid="weak"), None)
