"""The patterns: each kind of secret is found wherever it stands."""

import json

import pytest

from tests.writer.secrets_to_redact import CREDENTIALS, EVERYDAY, HEX, PERSONAL, SECRETS
from writer.privacy.redact import redact_text


@pytest.mark.parametrize(("kind", "secret"), [*SECRETS.items(), *PERSONAL.items()])
@pytest.mark.parametrize(
    "around", ["%s", "it is %s, see", '{"output": "%s"}', '"{\\"a\\": \\"%s\\"}"', "(%s)", "é %s\n"]
)
def test_each_kind_is_taken_out_wherever_it_stands(kind: str, secret: str, around: str) -> None:
    clean, found = redact_text(around % secret)
    assert clean == around % f"[REDACTED:{kind}]"
    assert found == {kind: 1}


@pytest.mark.parametrize(("kind", "text", "secret"), CREDENTIALS)
@pytest.mark.parametrize("nested", range(4))
def test_an_assigned_secret_is_taken_out_at_any_depth_of_json_inside_json(
    kind: str, text: str, secret: str, nested: int
) -> None:
    for _ in range(nested):
        text = json.dumps({"output": text})
        secret = json.dumps(secret)[1:-1]
    clean, found = redact_text(text)
    assert secret not in clean
    assert found == {kind: 1}


@pytest.mark.parametrize("nested", range(2))
@pytest.mark.parametrize("form", EVERYDAY)
def test_a_secret_is_taken_out_of_an_everyday_form_and_the_rest_stays(form: str, nested: int) -> None:
    text = form.format(s="S3cretPw9x", k="aB3dE5gH7jK9mN1pQ3sT", h=HEX[:32])
    token, password = (form.format(**dict.fromkeys("skh", f"[REDACTED:{kind}]")) for kind in ("token", "password"))
    for _ in range(nested):
        text, token, password = (json.dumps({"output": each}) for each in (text, token, password))
    assert redact_text(text)[0] in {token, password}


@pytest.mark.parametrize("after", ["00", "2024", "1234 5678"])
@pytest.mark.parametrize("number", PERSONAL.values())
def test_a_number_right_behind_does_not_hide_the_one_before(number: str, after: str) -> None:
    assert number not in redact_text(f"{number} {after}")[0]
