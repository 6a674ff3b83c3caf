"""Harmless texts that look like secrets: hashes, ids, lock files, code, prose. None of them may be touched."""

import base64
import hashlib
import json
import random
import uuid
from collections.abc import Callable, Iterator

from bench.secrets.tokens import filled


def _sum(rng: random.Random, name: str) -> str:
    return hashlib.new(name, rng.randbytes(16)).hexdigest()


def _b64(rng: random.Random, size: int) -> str:
    return base64.b64encode(rng.randbytes(size)).decode()


def _uuid(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def _hashes(rng: random.Random) -> str:
    return rng.choice(
        (
            f"commit {_sum(rng, 'sha1')}\nMerge: {_sum(rng, 'sha1')[:7]} {_sum(rng, 'sha1')[:7]}",
            f"{_sum(rng, 'sha256')}  dist/app-{rng.randrange(9)}.tar.gz",
            f"md5: {_sum(rng, 'md5')}",
            f"image@sha256:{_sum(rng, 'sha256')}",
            f"index {_sum(rng, 'sha1')[:10]}..{_sum(rng, 'sha1')[:10]} 100644",
            f'"checksum": "{_sum(rng, "sha512")}"',
            f'ETag: "{_sum(rng, "md5")}"',
            f"HEAD is now at {_sum(rng, 'sha1')[:9]} Fix the login form",
            f"git cherry-pick {_sum(rng, 'sha1')}",
            f"sha1 = {_sum(rng, 'sha1')}",
            f"fingerprint SHA256:{_b64(rng, 32)[:43]}",
            f"digest={_sum(rng, 'sha256')}",
            f"rev: {_sum(rng, 'sha1')}  # v1.2",
            f"blake2b {_sum(rng, 'blake2b')}",
        )
    )


def _ids(rng: random.Random) -> str:
    return rng.choice(
        (
            f"id {_uuid(rng)} created",
            f'{{"order_id": "{_uuid(rng)}", "user": {rng.randrange(10**9)}}}',
            f"call_{filled('{A24}', rng)}",
            f"toolu_01{filled('{A22}', rng)}",
            f"req_{filled('{A24}', rng)}",
            f"chatcmpl-{filled('{A29}', rng)}",
            f"run_id=01{filled('{Q24}', rng)}",
            f"trace {filled('{H32}', rng)} span {filled('{H16}', rng)}",
            f"traceparent: 00-{filled('{H32}', rng)}-{filled('{H16}', rng)}-01",
            f"cus_{filled('{A14}', rng)}",
            f"i-0{filled('{H16}', rng)} vpc-{filled('{H17}', rng)}",
            f"https://youtu.be/{filled('{W11}', rng)}",
            f"docs.google.com/document/d/1{filled('{W43}', rng)}/edit",
            f"pod/api-7d9f8b6c5-{filled('{a5}', rng)} Running",
            f"container {filled('{H64}', rng)} started",
            f"session #{rng.randrange(10**6)} ended",
            f"order W{rng.randrange(10**7)} item {rng.randrange(10**10)}",
            f"user_2{filled('{A26}', rng)}",
            f"msg_01{filled('{A22}', rng)}",
            f"arn:aws:iam::{filled('{d12}', rng)}:role/app",
            f"_id: ObjectId('{filled('{H24}', rng)}')",
            f"x-request-id: {_uuid(rng)}",
            f"pi_3{filled('{A23}', rng)}",
            f"evt_1{filled('{A23}', rng)}",
            f"file-{filled('{A22}', rng)}",
            f"/tmp/tmp{filled('{a8}', rng)}/x.json",
            f"key: orders/{_uuid(rng)}.parquet",
            f"cache_key={_sum(rng, 'md5')}",
            f"primary key ({rng.randrange(999)}) idx_{filled('{a6}', rng)}",
        )
    )


def _lock_files(rng: random.Random) -> str:
    version = f"{rng.randrange(9)}.{rng.randrange(30)}.{rng.randrange(9)}"
    name = rng.choice(("lodash", "token-types", "secret-stack", "passport", "auth-header", "left-pad"))
    return rng.choice(
        (
            f'"node_modules/{name}": {{\n  "version": "{version}",\n  "resolved": "https://registry.npmjs.org/{name}/-/{name}-{version}.tgz",\n  "integrity": "sha512-{_b64(rng, 64)}"\n}}',
            f'{name}@^{version}:\n  version "{version}"\n  resolved "https://registry.yarnpkg.com/{name}/-/{name}-{version}.tgz#{_sum(rng, "sha1")}"\n  integrity sha512-{_b64(rng, 64)}',
            f"github.com/x/{name} v{version} h1:{_b64(rng, 32)}\ngithub.com/x/{name} v{version}/go.mod h1:{_b64(rng, 32)}",
            f"{name}=={version} \\\n    --hash=sha256:{_sum(rng, 'sha256')} \\\n    --hash=sha256:{_sum(rng, 'sha256')}",
            f'[[package]]\nname = "{name}"\nversion = "{version}"\nchecksum = "{_sum(rng, "sha256")}"',
            f'{{file = "{name}-{version}-py3-none-any.whl", hash = "sha256:{_sum(rng, "sha256")}"}}',
            f"resolution: {{integrity: sha512-{_b64(rng, 64)}}}",
            f"    {name} ({version})\n\nBUNDLED WITH\n   2.4.1",
        )
    )


_CODE = (
    "password = getpass.getpass('Password: ')",
    "if (token === null || token.length < 8) throw new Error('bad token');",
    "def check(password: str, secret: bytes | None = None) -> bool:",
    "const token = req.headers['authorization']?.split(' ')[1];",
    "SECRET_KEY = os.environ['SECRET_KEY']",
    "password: z.string().min(8).max(64)",
    "api_key = config.get('api_key')",
    "token, err := jwt.Parse(raw, keyFunc)",
    "user.setPassword(passwordEncoder.encode(dto.getPassword()));",
    "raise ValueError('password must not be empty')",
    "mysql -u root -p shop < dump.sql",
    "SELECT password_hash FROM users WHERE email = $1",
    "export PGPASSWORD=$DB_PASSWORD",
    "curl -u $USER:$PASS https://example.org",
    "password = input('Password: ')",
    "auth=(user, password)",
    "tokens = tokenizer.encode(text); print(len(tokens))",
    "class PasswordResetTokenGenerator(BaseGenerator):",
    "ssh -p 2222 root@build-7",
    "tar -p -xzf a.tgz",
    "docker run -p 8080:80 nginx",
    "mkdir -p /var/lib/app/data",
    "key = lambda item: item.secret",
    'map.put("password", password);',
    "credentials = load_credentials(path)",
    "assert response.status == 401, 'token expired'",
    "passwd: files systemd",
    "for token in doc: print(token.text)",
    "csrf_token = generate_csrf()",
    '<input type="password" name="password" placeholder="Password">',
    "cp -p a.txt b.txt",
    'System.getProperty("db.password")',
    "secret = secrets.token_urlsafe(32)",
    "password: ${{ secrets.DB_PASSWORD }}",
    "token: !Ref TokenParameter",
    "valueFrom:\n  secretKeyRef:\n    name: db\n    key: password",
    "keys = sorted(d, key=itemgetter(1))",
    "psql -h localhost -p 5432 -U postgres",
    "export TOKEN=$(cat /run/secrets/token)",
    "if user.password == other.password:",
    "new_password = form.cleaned_data['new_password1']",
    "netstat -anp | grep LISTEN",
    "cat /etc/passwd | cut -d: -f1",
    "password_field = driver.find_element(By.ID, 'password')",
    "static final int MAX_TOKENS = 4096;",
    "max_tokens=1024, temperature=0.2",
    "func (s *Server) Authenticate(token string) error {",
    "Authorization: Bearer <token>",
    "authorization: Bearer ${TOKEN}",
    "PASSWORD=changeme_in_production # placeholder: <your password>"[:0] or "password=<your-password>",
    "vault kv get -field=password secret/db",
    "os.getenv('API_KEY', '')",
    "row['password'] = None",
    "private_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)",
    "kubectl get secret db -o jsonpath='{.data.password}'",
    "--password-file /run/secrets/db",
    "id | username | created_at\n----+----------+------------\n 1 | ada | 2024-05-11",
    "id,username,email_verified\n1,ada,true",
    "user: ada\nrole: admin\nshell: /bin/bash",
    "username,password_reset_at\nada,2024-05-01",
    "name: password-policy\nminLength: 12",
    "login(user, password)",
    "redis-cli -h cache -p 6379 ping",
    "git log -p --author=ada",
    "getConnection(url, user, password)",
    "secretName: tls-example-org",
    "tokenizer: cl100k_base",
    '"scripts": {"auth": "node auth.js"}',
    "sort -u names.txt",
    'curl -u "$USER" https://api.example.org/v1',
    "import { token } from './token';",
    "useradd -m -s /bin/bash deploy",
    'sqlcmd -S localhost -P "$SA_PASSWORD"',
)
_PROSE = (
    "The password is required and must have at least 12 characters.",
    "I forgot my password and cannot log in.",
    "The token is invalid or has expired.",
    "Please reset the password for this account.",
    "The secret of good soup is patience.",
    "Enter the password below and press return.",
    "Your API key was revoked on Monday; create another one in the console.",
    "Authentication failed: wrong password for user ada.",
    "The password has been changed successfully.",
    "He passed the token on to the next player.",
    "Access token refresh is handled by the SDK.",
    "The password policy was set to strict by the administrator.",
    "basic understanding of bearer instruments",
    "Use the key to open the door, and keep the secret.",
    "The user and password fields are both empty.",
    "Passwords are hashed with bcrypt before they are stored.",
    "The credential is stored in the vault; nobody can read it.",
    "The session token lives for one hour.",
    "My password is not accepted any more, what can I do?",
    "The pass rate was 93 percent.",
    "The customer wants to exchange the headphones for order #W2378156.",
    "The password for the portal is the same as before.",
    "password is incorrect",
    "Total tokens: 18,234 (prompt 12,001, completion 6,233)",
    "the api key is missing from the request",
    "The password to the staging server is in the vault.",
    "She told me the secret is out.",
    "username or password is wrong",
    "The database password was rotated last week.",
    "Log in with password or with passkey.",
    "The token is expired, and the password is unknown to me.",
    "password: required, string",
    "Password: must contain a number",
    "the admin password can be changed in settings",
    "user / password authentication is disabled",
    "Use admin / operator roles to log in",
)


def _code(rng: random.Random) -> str:
    return "\n".join(rng.sample(_CODE, 2))


def _prose(rng: random.Random) -> str:
    return " ".join(rng.sample(_PROSE, 2))


def _images(rng: random.Random) -> str:
    kind, head = rng.choice(
        (("png", "iVBORw0KGgoAAAANSUhEUgAA"), ("jpeg", "/9j/4AAQSkZJRgABAQ"), ("gif", "R0lGODlhAQABAIAAAP"))
    )
    return rng.choice(
        ('<img src="data:image/{k};base64,{b}">', "background: url(data:image/{k};base64,{b})", '"image": "{b}"')
    ).format(k=kind, b=head + _b64(rng, rng.randrange(300, 3000)))


def _minified(rng: random.Random) -> str:
    names = "abcdefghijklmnopqrstuvwxyz"
    parts = []
    for _ in range(60):
        a, b, c = rng.choices(names, k=3)
        parts.append(
            rng.choice(
                (
                    f"function {a}({b},{c}){{return {b}.{c}||({c}={b}[{rng.randrange(999)}])}}",
                    f'var {a}=!0,{b}=void 0,{c}="{filled("{L6}", rng)}";',
                    f'{a}.prototype.{filled("{L7}", rng)}=function(){{this._{b}={c}({rng.randrange(9)},"auth")}};',
                    f"e.exports={{token:{a},key:{b}.key,password:{c}.password}};",
                    f'switch({a}.type){{case"password":return {b}({c})}}',
                    f'n.d(t,"{a}",(function(){{return {b}}}));',
                )
            )
        )
    return "".join(parts)


def _logs(rng: random.Random) -> str:
    time = f"2024-0{rng.randrange(1, 9)}-1{rng.randrange(9)}T1{rng.randrange(9)}:0{rng.randrange(9)}:59.{rng.randrange(999):03}Z"
    return rng.choice(
        (
            f"{time} INFO auth: user 42 logged in, session={rng.randrange(10**6)}",
            f"{time} WARN token expired for client 7 (exp={rng.randrange(10**10)})",
            f"{time} DEBUG cache hit key=user:{rng.randrange(10**5)}:profile",
            f'10.0.0.{rng.randrange(255)} - - "GET /static/app.{filled("{H20}", rng)}.js HTTP/1.1" 200 {rng.randrange(10**5)}',
            f'{time} ERROR password authentication failed for user "app"',
            f"Build {_uuid(rng)} finished in {rng.randrange(99)} s",
            f'Traceback (most recent call last):\n  File "/srv/app/token.py", line {rng.randrange(999)}, in verify\n    raise InvalidToken("expired")',
            f"kernel: [{rng.randrange(10**5)}.{rng.randrange(10**6)}] eth0: link up",
            f"Layer {filled('{H12}', rng)}: Pull complete",
            f"x-amz-request-id: {filled('{U16}', rng)}",
            f"ray id: {filled('{H16}', rng)}",
            f"cf-ray: {filled('{H16}', rng)}-FRA",
            f"{time} INFO secret store ready, 12 keys loaded",
        )
    )


def _records(rng: random.Random) -> str:
    record = {
        "order_id": f"#W{rng.randrange(10**7)}",
        "items": [
            {"item_id": str(rng.randrange(10**10)), "price": rng.randrange(10**5) / 100, "options": {"color": "black"}}
        ],
        "payment_methods": {f"credit_card_{rng.randrange(10**7)}": {"source": "credit_card", "brand": "visa"}},
        "status": "pending",
        "token_count": rng.randrange(9999),
        "sha": _sum(rng, "sha1"),
        "next_page_token": None,
        "has_password": True,
        "keys": ["a", "b"],
        "usage": {"total_tokens": 1234},
        "address": {"zip": "19122", "state": "CA"},
    }
    return json.dumps(record)


def _encoded(rng: random.Random) -> str:
    return rng.choice(
        (
            base64.b64encode(rng.choice(_PROSE).encode()).decode(),
            "https://example.org/s?q=" + "%20".join(rng.choice(_PROSE).split(" ")),
            rng.choice(_PROSE).encode().hex(),
            f"ssh-rsa AAAAB3NzaC1yc2E{_b64(rng, 200)} ada@laptop",
            f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{filled('{B43}', rng)} ada@laptop",
            f"-----BEGIN CERTIFICATE-----\n{_b64(rng, 48)}\n{_b64(rng, 48)}\n-----END CERTIFICATE-----",
            f"-----BEGIN PUBLIC KEY-----\n{_b64(rng, 48)}\n-----END PUBLIC KEY-----",
            f'"data": "{_b64(rng, 120)}"',
            f"\\x{filled('{H64}', rng)}",
            f"next_cursor: {_b64(rng, 24)}",
            f'integrity="sha384-{_b64(rng, 48)}" crossorigin',
        )
    )


FAMILIES: dict[str, Callable[[random.Random], str]] = {
    "hashes": _hashes,
    "ids": _ids,
    "lock files": _lock_files,
    "code": _code,
    "prose": _prose,
    "images": _images,
    "minified": _minified,
    "logs": _logs,
    "records": _records,
    "encoded": _encoded,
}
"""Texts by family."""


def harmless(rng: random.Random, each: int) -> Iterator[tuple[str, str]]:
    """Yields the family and a text without anything to take out."""
    for family, make in FAMILIES.items():
        for _ in range(each):
            yield family, make(rng)
