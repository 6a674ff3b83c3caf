"""Made-up credentials as people and tools write them down, and the same in disguise."""

import base64
import random
import urllib.parse
from collections.abc import Callable, Iterator

from bench.secrets.tokens import filled

USERS = ("ada", "root", "deploy", "svc_orders", "admin", "postgres")
HOSTS = ("db.internal", "10.0.3.17", "api.example.org", "cache-2", "localhost")
_WORDS = ("sommer", "Tiger", "falcon", "Garden", "winter", "monkey", "Blue", "dragon", "kaffee", "rocket")
_LONG = "{A24}"


def password(rng: random.Random) -> str:
    """Returns a password as people choose them, or as a program draws them."""
    word = rng.choice(_WORDS)
    return rng.choice(
        (
            f"{word}{rng.randrange(10, 9999)}",
            f"{word.title()}{rng.randrange(2000, 2030)}!",
            f"{word}-{rng.choice(_WORDS)}-{rng.randrange(99)}",
            filled("{A12}", rng) + "7",
            filled("{A6}_{A5}4", rng),
            f"{word[:3]}@{rng.randrange(1000)}{word[3:]}",
            f"s3cr3t{word}{rng.randrange(99)}",
        )
    )


FORMS = {
    "mysql": (
        "mysql -u{u} -p{s} -h {h} orders",
        "mysqldump -u {u} -p{s} shop > dump.sql",
        "mysqladmin -u {u} -p'{s}' status",
    ),
    "curl": ("curl -u {u}:{s} https://{h}/v1", "curl --user '{u}:{s}' https://{h}", 'curl -s -u "{u}:{s}" {h}'),
    "wget": (
        "wget --user={u} --password={s} https://{h}/x",
        "http -a {u}:{s} GET {h}/items",
        "wget --http-password {s} {h}",
    ),
    "sshpass": ("sshpass -p {s} ssh {u}@{h}", "sshpass -p '{s}' scp f {u}@{h}:", "SSHPASS={s} sshpass -e ssh {u}@{h}"),
    "netrc": (
        "machine {h} login {u} password {s}",
        "machine {h}\n  login {u}\n  password {s}\n",
        "default login {u} password {s}",
    ),
    "connection": (
        "postgresql://{u}:{s}@{h}:5432/app",
        "redis://:{s}@{h}:6379/0",
        "mongodb+srv://{u}:{s}@{h}/x",
        "amqp://{u}:{s}@{h}//",
        "Server={h};User Id={u};Password={s};",
        "host={h} user={u} password={s} dbname=app",
        "jdbc:mysql://{h}/x?user={u}&password={s}",
        "sqlserver://{h};user={u};password={s};",
        "mysql+pymysql://{u}:{s}@{h}/x",
        "Data Source={h};Uid={u};Pwd={s};",
    ),
    "database-cli": (
        "PGPASSWORD={s} psql -h {h} -U {u}",
        "redis-cli -h {h} -a {s} ping",
        "mongosh -u {u} -p {s} {h}",
        "mongodump --username {u} -p {s}",
        "sqlcmd -S {h} -U {u} -P {s}",
        "ldapsearch -x -D cn={u} -w {s} -b dc=x",
        "MYSQL_PWD={s} mysql -u {u}",
        "sqlplus {u}/{s}@{h}",
        "cypher-shell -u {u} -p {s}",
        "influx -username {u} -password {s}",
        "clickhouse-client --user {u} --password {s}",
    ),
    "psql-table": (
        " id | username | password  \n----+----------+-----------\n  1 | {u}  | {s}\n(1 row)",
        "  email   |   api_key\n----------+-----------\n a@b      | {k}\n c@d      | {l}\n",
        "-[ RECORD 1 ]---\nid       | 1\nusername | {u}\npassword | {s}",
        "+----+------+----------+\n| id | user | password |\n+----+------+----------+\n| 1  | {u} | {s} |\n+----+------+----------+",
    ),
    "csv": (
        "id,username,password\n1,{u},{s}\n2,bob,{t}\n",
        "user;pwd\n{u};{s}\n",
        "name\tsecret\n{u}\t{k}\n",
        '"login","password","role"\n"{u}","{s}","admin"\n',
    ),
    "yaml": (
        "db:\n  user: {u}\n  password: {s}\n",
        "password: >-\n  {s}\n",
        "secrets:\n  db: {k}\n",
        "password: |\n    {s}\nuser: {u}",
        "passwords:\n  - {s}\n  - {t}\n",
        "env:\n  - name: DB_PASSWORD\n    value: {s}\n",
        "redis:\n  requirepass: {s}",
        "credentials:\n  username: {u}\n  pass: {s}\n",
    ),
    "json": (
        '{{"passwords": ["{s}", "{t}"]}}',
        '{{"userPassword": "{s}"}}',
        '{{"db_pw": "{s}"}}',
        '{{"pass": "{s}"}}',
        '{{"PASSWORD_PROD": "{s}"}}',
        '{{"secret_value": "{k}"}}',
        '{{"x-api-key": "{k}"}}',
        '{{"name": "API_TOKEN", "value": "{k}"}}',
        '{{"key": "password", "value": "{s}"}}',
        '{{"apikey": "{k}"}}',
        '{{"auth": {{"user": "{u}", "pass": "{s}"}}}}',
        '{{"password1": "{s}"}}',
        '{{"secretKeyBase": "{k}"}}',
        '{{"pwd": "{s}"}}',
    ),
    "prose": (
        "the password for the db is {s}",
        "my password is {s}, please keep it",
        "log in with password {s}",
        "Password: {s}",
        "use {u} / {s} to log in",
        "the admin password was set to {s}",
        "the API key is {k}",
        "his password changed to {s} yesterday",
        "Here is the token: {k}",
        "username {u} and password {s}",
        "user: {u} pass: {s}",
        "the passphrase of the key is '{s}'",
        "credentials: {u}:{s}",
        "the root password on {h} is {s}.",
        "the new password is: {s}",
        "pw: {s}",
        "das Passwort lautet {s}",
    ),
    "go": (
        "password := `{s}`",
        "var apiKey = `{k}`",
        'cfg.Password = "{s}"',
        'os.Setenv("DB_PASSWORD", "{s}")',
        'Password: "{s}",',
        "const secret = `{k}`",
    ),
    "java": (
        'System.setProperty("db.password", "{s}");',
        "spring.datasource.password={s}",
        'props.put("password", "{s}");',
        "db.password = {s}",
        'props.setProperty("api.key", "{k}")',
        'dataSource.setPassword("{s}");',
        'private static final String PASSWORD = "{s}";',
        '.withPassword("{s}")',
        'DriverManager.getConnection(url, "{u}", "{s}")',
    ),
    "php": (
        "define('DB_PASSWORD', '{s}');",
        "$password = '{s}';",
        "'password' => '{s}',",
        'define( "AUTH_KEY", "{k}" );',
        "$config['db_pass'] = '{s}';",
        "mysqli_connect('{h}', '{u}', '{s}')",
    ),
    "python": (
        "password='{s}'",
        'os.environ["API_KEY"] = "{k}"',
        "connect(host='{h}', user='{u}', passwd='{s}')",
        'auth=("{u}", "{s}")',
        'HTTPBasicAuth("{u}", "{s}")',
        'PASSWORD: str = "{s}"',
        'client = Client(api_key="{k}")',
        "login('{u}', '{s}')",
    ),
    "ruby-js": (
        "password: '{s}'",
        "config.secret_key_base = '{k}'",
        "process.env.DB_PASS = '{s}'",
        'const pw = "{s}";',
        "headers: {{ 'X-Api-Key': '{k}' }}",
        "let token = '{k}'",
        "ENV['SECRET'] = '{k}'",
    ),
    "env": (
        "export DB_PASSWORD={s}",
        "DB_PASS={s}",
        "SECRET_KEY='{k}'",
        "set PASSWORD={s}",
        '$env:DB_PASSWORD = "{s}"',
        "setx API_TOKEN {k}",
        "docker run -e MYSQL_ROOT_PASSWORD={s} mysql",
        "ENV APP_SECRET {k}",
        "ARG NPM_TOKEN={k}",
        "APP_KEY=base64:{k}",
        "DJANGO_SECRET_KEY={k}",
        "setenv DB_PASSWORD {s}",
        "export REDIS_AUTH={s}",
    ),
    "docker-login": (
        "docker login -u {u} -p {s} {h}",
        "echo {s} | docker login -u {u} --password-stdin",
        "docker login --username {u} --password {s}",
        "helm registry login {h} -u {u} -p {s}",
        "az login -u {u} -p {s}",
        "oc login -u {u} -p {s} https://{h}",
        "echo '{s}' | sudo -S apt update",
        "argocd login {h} --username {u} --password {s}",
    ),
    "htpasswd": (
        "htpasswd -b -c .htpasswd {u} {s}",
        "{u}:$apr1${x}${y}",
        "{u}:$2y$10${z}",
        "{u}:{{SHA}}{w}=",
        "htpasswd -nb {u} {s}",
        "{u}:$6${x}${v}:19000:0:99999:7:::",
        "echo '{u}:{s}' | chpasswd",
    ),
    "headers": (
        "Authorization: Bearer {l}",
        "Authorization: Basic {b}",
        "X-Api-Key: {k}",
        "curl -H 'X-Auth-Token: {k}' {h}",
        "Cookie: session={l}; theme=dark",
        "Set-Cookie: sid={l}; HttpOnly",
        "Authorization: token {k}",
        "Proxy-Authorization: Basic {b}",
        "X-Vault-Token: {k}",
        "PRIVATE-TOKEN: {k}",
        "Authorization: ApiKey {k}",
        "x-amz-security-token: {l}",
    ),
    "pem": (
        "-----BEGIN RSA PRIVATE KEY-----\n{m}\n{m2}\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE KEY-----\n{m}\n-----END OPENSSH PRIVATE KEY-----",
        "key: |\n  -----BEGIN EC PRIVATE KEY-----\n  {m}\n  -----END EC PRIVATE KEY-----",
    ),
    "kubeconfig": (
        "users:\n- name: {u}\n  user:\n    client-key-data: {m}",
        "    token: {l}",
        "    password: {s}\n    username: {u}",
        "apiVersion: v1\nkind: Secret\ndata:\n  password: {b}\n",
        "stringData:\n  password: {s}",
        "kubectl create secret generic x --from-literal=password={s}",
        "kubectl --token={l} get pods",
        "kubectl config set-credentials {u} --password={s}",
    ),
    "npmrc": (
        "//registry.npmjs.org/:_authToken={l}",
        "_auth={b}",
        "//{h}/:_password={b}",
        "_password = {s}",
        "npm config set //{h}/:_authToken {l}",
    ),
    "pypirc": (
        "[pypi]\nusername = {u}\npassword = {s}",
        "[distutils]\nindex-servers = x\n[x]\nrepository: https://{h}\nusername: {u}\npassword: {s}",
        "twine upload -u {u} -p {s} dist/*",
        "pip install --index-url https://{u}:{s}@{h}/simple x",
    ),
    "terraform": (
        'password = "{s}"',
        'variable "db_password" {{\n  default = "{s}"\n}}',
        'resource "x" "y" {{\n  master_password = "{s}"\n  secret_key      = "{k}"\n}}',
        "TF_VAR_db_password={s}",
        'admin_password         = "{s}"',
    ),
    "sql": (
        "CREATE USER {u} WITH PASSWORD '{s}'",
        "ALTER ROLE {u} PASSWORD '{s}';",
        "CREATE USER '{u}'@'%' IDENTIFIED BY '{s}'",
        "SET PASSWORD FOR '{u}'@'%' = '{s}'",
        "INSERT INTO users (name, password) VALUES ('{u}', '{s}')",
        "UPDATE users SET password = '{s}' WHERE id = 1",
        "IDENTIFIED WITH mysql_native_password BY '{s}'",
    ),
    "xml": (
        "<password>{s}</password>",
        '<add key="DbPassword" value="{s}" />',
        '<property name="password" value="{s}"/>',
        '<property name="hibernate.connection.password">{s}</property>',
        '<user name="{u}" password="{s}"/>',
        "<server><id>x</id><password>{s}</password></server>",
    ),
    "commands": (
        "zip -P {s} out.zip f",
        "openssl rsa -passin pass:{s} -in k",
        "gpg --passphrase {s} -d f",
        "smbclient //{h}/x -U {u}%{s}",
        "7z x a.7z -p{s}",
        "openssl enc -aes-256-cbc -k {s} -in f",
        "net use z: \\\\{h}\\x {s} /user:{u}",
        "mount -t cifs //{h}/x /mnt -o username={u},password={s}",
        "git clone https://{u}:{s}@{h}/r.git",
        "vault login {l}",
        "aws configure set aws_secret_access_key {k}",
        "xfreerdp /u:{u} /p:{s} /v:{h}",
        "ansible-playbook -e ansible_password={s} x.yml",
        "lftp -u {u},{s} {h}",
        "gcloud sql users set-password {u} --password={s}",
        "useradd -p {s} {u}",
        "keytool -storepass {s} -keystore k.jks",
        "rabbitmqctl add_user {u} {s}",
        "curl 'https://{h}/x?api_key={k}&page=2'",
        "https://{h}/cb?access_token={l}&x=1",
        "snmpwalk -v3 -A {s} {h}",
    ),
}
"""Forms by family; the holes: u user, h host, s and t passwords, k, l keys, b base64 of user:password, m lines of a key."""


def _plain_holes(rng: random.Random) -> dict[str, str]:
    user, secret = rng.choice(USERS), password(rng)
    both = base64.b64encode(f"{user}:{secret}".encode()).decode()
    return {
        "u": user,
        "h": rng.choice(HOSTS),
        "s": secret,
        "t": password(rng),
        "k": filled(_LONG, rng),
        "l": filled("{A44}", rng),
        "b": both,
        "m": filled("{B64}", rng),
        "m2": filled("{B40}==", rng),
        "x": filled("{A8}", rng),
        "y": filled("{A22}", rng),
        "z": filled("{A53}", rng),
        "w": filled("{B27}", rng),
        "v": filled("{A86}", rng),
    }


_SECRET_HOLES = ("m2", "m", "s", "t", "k", "l", "b", "y", "z", "w", "v")


def everyday(rng: random.Random, each: int) -> Iterator[tuple[str, str, str]]:
    """Yields family, text and secret for every form, each with fresh values; a form with two secrets comes twice."""
    for family, forms in FORMS.items():
        for form in forms:
            for _ in range(each):
                holes = _plain_holes(rng)
                text = form.format(**holes)
                for hole in _SECRET_HOLES:
                    if f"{{{hole}}}" in form:
                        yield family, text, holes[hole]


def _spread(between: str) -> Callable[[str, random.Random], str]:
    def apply(secret: str, rng: random.Random) -> str:
        places = sorted(rng.sample(range(1, len(secret)), 3))
        return "".join(between + char if index in places else char for index, char in enumerate(secret))

    return apply


def _split(secret: str, rng: random.Random) -> str:
    at = rng.randrange(4, len(secret) - 4)
    return rng.choice(('"{}" + "{}"', "'{}' . '{}'", '"{}" \\\n  "{}"', '"{}"\n    "{}"')).format(
        secret[:at], secret[at:]
    )


DISGUISES: dict[str, Callable[[str, random.Random], str]] = {
    "zero-width": _spread("\u200b"),
    "soft-hyphen": _spread("\u00ad"),
    "word-joiner": _spread("\u2060"),
    "split": _split,
    "base64": lambda secret, _rng: base64.b64encode(f"token={secret}".encode()).decode(),
    "base64-text": lambda secret, _rng: base64.b64encode(
        f'{{"user": "ada", "password": "{secret}"}}'.encode()
    ).decode(),
    "hex": lambda secret, _rng: f"password={secret}".encode().hex(),
    "url": lambda secret, _rng: urllib.parse.quote(f"password={secret}&x=/é"),
    "url-name": lambda secret, _rng: "pass%77ord=" + secret,
    "full-width": lambda secret, _rng: (
        "password=" + "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in secret)
    ),
    "html": lambda secret, _rng: f"password&#61;{secret}&quot;",
    "json-escape": lambda secret, _rng: "password\\u003d" + "".join(f"\\u{ord(char):04x}" for char in secret),
    "upper-name": lambda secret, _rng: f"PaSsWoRd={secret}",
    "spaced-name": lambda secret, _rng: f"p a s s w o r d : {secret}",
    "homoglyph-name": lambda secret, _rng: f"p\u0430ssw\u043erd={secret}",
    "json-in-json": lambda secret, _rng: f'{{"body": "{{\\"password\\": \\"{secret}\\"}}"}}',
    "line-wrapped": lambda secret, _rng: f"{secret[:20]}\\\n{secret[20:]}",
}
"""Ways in which a token escapes a search for its plain form, by name."""


def disguised(rng: random.Random, each: int) -> Iterator[tuple[str, str, str]]:
    """Yields the disguise, the text and the token as it stands there in disguise."""
    for name, disguise in DISGUISES.items():
        for _ in range(each):
            token = filled(rng.choice(("ghp_{A36}", "sk_live_{A24}", "glpat-{A20}", "npm_{A36}", "hf_{L34}")), rng)
            hidden = disguise(token, rng)
            yield name, f"note: {hidden} end", hidden
