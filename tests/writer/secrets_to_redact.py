"""Made-up secrets and personal data of every kind, and ordinary texts that hold none."""

import string

LETTERS = (string.ascii_letters + string.digits) * 4


HEX = "0123456789abcdef" * 4


SECRETS = {
    "aws-access-key": "AKIA" + "IOSFODNN7QXYZABC",
    "github-token": "ghp_" + LETTERS[:36],
    "gitlab-token": "glpat-" + LETTERS[40:60],
    "slack-token": "-".join(["xoxb", "123456789012", "1234567890123", LETTERS[:24]]),
    "stripe-access-key": "sk_live_" + LETTERS[10:34],
    "anthropic-key": "sk-ant-" + "api03-" + LETTERS[:40],
    "openai-key": "sk-proj-" + LETTERS[20:68],
    "google-key": "AIza" + LETTERS[:35],
    "json-web-token": ".".join(["eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxIn0", LETTERS[:43]]),
    "npm-tokens": "npm_" + LETTERS[:36],
    "pypi-token": "pypi-" + LETTERS[:60],
    "sendgrid-api-key": ".".join(["SG", LETTERS[:22], LETTERS[5:48]]),
    "twilio-api-key": "SK" + HEX[:32],
    "telegram-token": "123456789:" + "AA" + LETTERS[:33],
    "huggingface-token": "hf_" + LETTERS[:34],
    "square-oauth-secret": "sq0csp-" + LETTERS[:43],
}


PRIVATE_KEY = "\n".join(
    [
        "-----BEGIN RSA PRIVATE" + " KEY-----",
        LETTERS[:64],
        LETTERS[9:50] + "==",
        "-----END RSA PRIVATE" + " KEY-----",
    ]
)


PERSONAL = {
    "email": "ada.lovelace+work@mail.example.org",
    "payment-card": "4111 1111 " + "1111 1111",
    "iban": "DE89 3704 0044 " + "0532 0130 00",
    "phone": "+49 171 " + "2345678",
}


HIDDEN = "hunter" + "2!x"


KEY = LETTERS[30:54]


CREDENTIALS = [
    ("password", f"password={HIDDEN}", HIDDEN),
    ("password", f"my password is {HIDDEN}.", HIDDEN),
    ("password", f"DB_PASSWORD: '{HIDDEN}'", HIDDEN),
    ("password", f'config = {{"password": "{HIDDEN}"}}', HIDDEN),
    ("password", f"ALTER USER app WITH PASSWORD '{HIDDEN}'", HIDDEN),
    ("password", f"mysql --password {HIDDEN} -h db", HIDDEN),
    ("password", f"<password>{HIDDEN}</password>", HIDDEN),
    ("password", 'password="with \\" a quote' + HIDDEN + '"', HIDDEN),
    ("password", f'[{{"name": "PGPASSWORD", "value": "{HIDDEN}"}}]', HIDDEN),
    ("password", f"minha senha é {HIDDEN}", HIDDEN),
    ("password", f"moje hasło to {HIDDEN}", HIDDEN),
    ("password", f"мой пароль {HIDDEN}", HIDDEN),
    ("password", f"我的密码是{HIDDEN}", HIDDEN),
    ("password", f"パスワードは{HIDDEN}です", HIDDEN),
    ("password", f"şifrem {HIDDEN}", HIDDEN),
    ("password", f'{{"비밀번호": "{HIDDEN}"}}', HIDDEN),
    ("email", "mail: anna@exämple.example", "anna@"),
    ("token", f"api_key: {KEY}", KEY),
    ("token", f"export AWS_SECRET_ACCESS_KEY={KEY}", KEY),
    ("token", f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={KEY}+/==;", KEY),
    ("token", f'clientSecret = "{KEY}"', KEY),
    ("authorization", f"Authorization: Basic {KEY}", KEY),
    ("authorization", f"curl -H 'authorization: Bearer {KEY}' x", KEY),
    ("basic-auth-credentials", f"postgres://app:{HIDDEN}@db:5432/orders", HIDDEN),
    ("private-key", PRIVATE_KEY, LETTERS[9:50]),
]


EVERYDAY = [
    "RABBITMQ_DEFAULT_PASS={s}",
    "PATH=/usr/bin\nLDAP_PASS={s}\nHOME=/root\n",
    'ES_PASS="{s}"',
    "export PROXY_PASS='{k}'",
    "LDAP_PW={s}",
    "LDAP_PASS: {s}",
    "ansible_become_pass: {s}",
    "ansible_become_pass={s}",
    "ENV LDAP_PASS {s}",
    'os.environ["LDAP_PASS"] = "{s}"',
    '{{"name": "LDAP_PASS", "value": "{s}"}}',
    "user,ldap_pass\nada,{s}\n",
    "API key: {h}",
    "Secret Key: {k}",
    '{{"API Key": "{h}"}}',
    "Service,API Key\nmail,{k}\n",
    " Service | API Key\n---------+---------\n mail    | {k}\n",
    "curl -su ada:{s} https://db",
    "curl -ku ada:{s} https://db",
    "curl -Lu 'ada:{s}' https://db",
    "curl -sSu ada:{s} https://db",
    "curl -u :{s} https://db",
    "Password for ada: {s}",
    "The password for ada on db-2.internal: `{s}`",
    "Password (staging): {s}",
    'Password (staging): "{s}"',
    "API key for staging: {k}",
    "use password {s}",
    '{{"Password:": "{s}"}}',
    '{{"password ": "{s}"}}',
    '{{"API key:": "{h}"}}',
    '{{"Password (staging)": "{s}"}}',
    "**Password:** {s}",
    "**Password**: {s}",
]
"""Texts with a hole for a password (s), a key of letters and digits (k), or a key that could be a checksum (h)."""


ORDINARY = [
    "order #W2378156, items 7706410293 and 7747408585, credit_card_9513926, reservation HATHAT",
    "id 550e8400-e29b-41d4-a716-446655440000 at 2024-05-11T10:00:00.123456+00:00, epoch 1715421600123",
    "1715421600123456 1715421600123456789 9007199254740993 0.4111111111111111",
    "SELECT u.token_count FROM users u WHERE u.password = $1 AND u.token = t.token LIMIT 4096",
    "UPDATE t SET password = :password, secret = NULL WHERE id IN (SELECT id FROM s)",
    "/var/lib/postgresql/16/main/base/16384/2619 line 123, ~/src/app/token.py:88",
    "PWD=/home/app OLDPWD=/srv max_tokens: 4096, total_tokens=123456, password: required",
    "token = get_token(request); password: str = Field(min_length=8); secret_key = settings.secret_key",
    "commit 3f2a9c1d5b7e8f00112233445566778899aabbcc, sha256:" + HEX,
    "see https://docs.example.com:8080/a/b?c=d@e and git@host or a@b, bearer of good news, basic understanding of it",
    '{"name": "Headphones", "price": 342.81, "zip": "19122", "flight": "HAT136", "date": "2024-05-20"}',
    "hasło jest złe, пароль неверный, 密码错误, パスワードを忘れた, senha é obrigatória",
    "compass=N45E7x bypass: v2alpha, pass: 3 of 5 tests, first_pass: 3 of 5 tests, two_pass=true, video_pass=1920x1080",
    "proxy_pass http://backend:8080; proxy_pass: http://127.0.0.1:8080",
    "render_pass = RenderPass2D(device), pass_rate: 0.93, bandpass=w200x",
    "password for the door is changed monthly; Password for the portal: same as before; Password (optional): string",
    "Password for user postgres: \npsql (14.2)\nPassword (again): ",
    "Failed password for root from 10.0.0.5 port 22 ssh2, password for the db. Error: E1234x",
    "use password authentication, or use password manager 1Password, or use password or passkey",
    "private key: ~/.ssh/id_ed25519 Private key: /etc/ssl/private/server1.key private key: client1.pem",
    "encryption key: aes-256-gcm, signing key: RS256, private key: RSA-2048, API key: required, API Key: see the vault",
    "primary key: order_id2, foreign key: fk_orders_2, session key: user:1234, API key for staging: see 1Password",
    "Service,API Version\nmail,v2beta1x\n",
    "curl -su $USER:$PASS https://x; curl -sSLo a.tgz https://x.org:8443/y1z2x; curl -sU Mozilla http://x:8080/a1b2c",
    "call 1 800 items, 12-34-56, 10.0.0.1, 192.168.100.200, v1.2.3, 555-1234",
]
