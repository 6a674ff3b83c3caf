"""Patterns of credentials as people and tools write them: in commands, calls, settings and sentences.

The last part of a kind's name tells how certain its pattern is: an `argument` is always a password; a text found by a
pattern of the kind `said` must also look like a password.
"""

from writer.privacy.patterns import ANY_NAME, PASSWORDS, QUOTED, SUFFIX

_ARG = r"""(?:\\*"([^"\\\n]{1,200})|\\*'([^'\\\n]{1,200})|([^\s"'`\\|;&<>()]{1,200}))"""
_SAID = r"""(?:["'`]([^"'`\n]{1,200})["'`]|([^\s"'`,;|<>(){}\[\]\\]{1,200}))"""
_MORE = r"[^\n|;]{0,160}?\s"  # other options of the same command
_STRING = r"""(?:\\*["'`]([^"'`\\\n]{1,200})\\*["'`])"""
_LOGIN = r"(?:docker|podman|buildah|skopeo|nerdctl|helm|oras|oc|az|cf|argocd|crane|regctl)"
_NAMED = rf"[\w. /:-]{{0,60}}?(?:{ANY_NAME}){SUFFIX}"
_PAIR = r"""["']?[^\s:"'$/]{1,64}:"""

_ARGUMENTS = (
    rf"\b(?:mysql\w*|mariadb\w*|mycli)\b{_MORE}-p{_ARG}",
    rf"\b(?:7z\w*|u?rar)\b{_MORE}-h?p{_ARG}",
    rf"\bsshpass\b{_MORE}-p ?{_ARG}",
    rf"\b(?:{_LOGIN}\b{_MORE}login|mongo\w*|cypher-shell|twine|snowsql|kinit|impala-shell)\b{_MORE}-p[ =]{{1,2}}{_ARG}",
    rf"\b(?:sqlcmd|bcp|osql|mosquitto_\w+|zip|unzip)\b{_MORE}-P ?{_ARG}",
    rf"\b(?:plink|pscp|putty)\b{_MORE}-pw {_ARG}",
    rf"\b(?:redis-cli|valkey-cli|keydb-cli)\b{_MORE}(?:-a|--pass) {_ARG}",
    rf"\bldap(?:add|delete|modify|passwd|search|whoami)\b{_MORE}-w ?{_ARG}",
    rf"\b[xw]freerdp\b{_MORE}/p:{_ARG}",
    rf"\bsmbclient\b{_MORE}(?:-U|--user)[ =]?[\"']?[^\s%\"']{{1,64}}%{_ARG}",
    rf"\blftp\b{_MORE}-u\s+[\"']?[^\s,\"']{{1,64}},{_ARG}",
    r"\bsqlplus\s+(?:-\w+\s+)*[\"']?[\w.-]{1,64}/([^\s@\"'/]{1,200})@",
    rf"\bopenssl\b{_MORE}-(?:pass(?:in|out)?|k)\s+(?:pass:)?{_ARG}",
    rf"\b(?:useradd|usermod)\b{_MORE}(?:-p|--password)[ =]{_ARG}",
    rf"\bhtpasswd(?:\s+-\w+)*\s+-\w*b\w*(?:\s+-\w+)*(?:\s+[^\s|;]+){{1,2}}\s+{_ARG}(?:\s|$)",
    rf"\brabbitmqctl\s+(?:add_user|change_password|authenticate_user)\s+\S+\s+{_ARG}",
    rf"\becho\s+(?:-n\s+)?{_ARG}[\"']?\s*\|\s*(?:sudo\s+-S|(?:sudo\s+)?passwd\b|[^\n|;]{{0,80}}--(?:password-|with-token|pass)stdin|gh auth)",
    rf"\becho\s+{_PAIR}{_ARG}[\"']?\s*\|\s*(?:sudo\s+)?chpasswd",
    rf"\bnet\s+use\b[^\n]{{0,120}}?\\\\\S+\s+{_ARG}\s+/user",
    rf"\bnet\s+user\s+\S+\s+{_ARG}\s+/add",
    rf"\bsnmp\w+\b{_MORE}-[AX] ?{_ARG}",
    rf"\b(?:curl|http|https|xh|wget)\b{_MORE}(?:-u|-a|-U|--user|--auth|--proxy-user)[ =]?{_PAIR}{_ARG}",
    rf"\b(?:configure|config)\s+set\s+[\w./:-]{{0,120}}?(?:{ANY_NAME}|_auth\w*)\s+{_ARG}",
    rf"\b(?i:machine\s+\S+\s+|default\s+)(?i:login)\s+\S+\s+(?i:password)\s+{_ARG}",
    rf"(?i)\bpassword\s+for\s+[^=\n]{{1,100}}=\s*(?:password\()?{_ARG}",
    r"_auth(?:Token)?\s?=\s?([\w+/=.-]{8,})",
    rf"\bvault\s+login\s+(?:-\S+\s+)*{_ARG}",
)

_CALLS = (
    # of a setter: its only argument; of a map: the one behind the telling name
    rf"(?i)(?:{ANY_NAME})\s?\(\s{{0,3}}{_STRING}\s?\)",
    rf"(?i)\b(?:add|append|config|define|env|export|header|property|put|set|with)\w*\s?\(\s{{0,3}}[\"']{_NAMED}[\"']\s{{0,3}},\s{{0,3}}{QUOTED}",
)

_SETTINGS = (
    rf"(?i)\b(?:ENV|ARG|setx|setenv|set|let)\s+[\w.-]{{0,60}}?(?:{ANY_NAME}){SUFFIX}\s+{_ARG}",
    rf"(?i)\bname\\*[\"']?\s?[:=]\s?\\*[\"']?{_NAMED}\\*[\"']?\s{{0,40}},?\s{{0,40}}\\*[\"']?value\\*[\"']?\s?[:=]\s?{_ARG}",
    rf"(?i)\b(?:key|name|id)\s?=\s?\\*[\"']{_NAMED}\\*[\"']\s*(?:value\s?=\s?|/?>){_ARG}",
    rf"(?i)\b(?:variable|output)\s+\"{_NAMED}\"\s*\{{[^}}]{{0,300}}?\b(?:default|value)\s*=\s*{_ARG}",
    r"(?i)[?&](?:sig|signature|x-amz-signature|x-goog-signature)=([\w%+/=-]{16,})",
    r"(?i)(?:\b|_)(?:jwt|php|asp\.net_|j)?(?:auth|sess(?:ion)?|sid|remember)[\w-]{0,20}?=([\w%+/=.~-]{20,})",
)

_KEYS = (
    r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_KEY\s?[=:]\s?[\"']?([\w+/=.~-]{20,})",
    r"(?i)(?:access|api|\bauth|auth_?data|creds?|\bkey)\\*[\"'`]?\s{0,3}(?::=|=>|==?|:)\s{0,3}\\*[\"'`]?([\w+/=.~-]{16,})",
)

_VERB = (
    r"(?:(?:is|was|are|were|been|be)(?:[ \t]+now)?(?:[ \t]+(?:set|changed|reset|rotated|updated))?(?:[ \t]+to)?"
    r"|equals|to|becomes?|lautet|ist|es|est)"
)
_SENTENCES = (
    rf"(?i)\b(?:\w*auth|\w*login|sign_?in|\w*connect(?:ion)?|authenticate|credentials?)\s?[=:]?\s?\([^()\n]{{1,120}}?,\s{{0,3}}{_STRING}\s?\)",
    rf"(?i)(?:{PASSWORDS}|\bapi[ _-]?key|\btoken|\bsecret|\bpass(?:code)?|\bpin)(?:[ \t]+[\w'.@-]{{1,40}}){{0,7}}?[ \t]+{_VERB}:?[ \t]+{_SAID}",
    rf"(?i)(?:with|using|and|the|enter|type|new)[ \t]+(?:{PASSWORDS}|\bpass)[ \t]*:?[ \t]+{_SAID}",
    rf"(?i)\b(?:cred(?:ential)?s?|login|account)\b:?[ \t]+(?:is[ \t]+|are[ \t]+|with[ \t]+)?[\w.@+-]{{1,64}}[ \t]?[:/][ \t]?{_SAID}",
    rf"(?i)\b(?:use|using|with|as|user(?:name)?)[ \t]+[\w.@+-]{{1,64}}[ \t]+/[ \t]+{_SAID}",
    rf"(?i)\b(?:pass|pw|pwd|passw|pass_?wd)\\*[\"']?[ \t]?(?:=>?|:=?)[ \t]?{_SAID}",
)

_HASHES = (
    r"\$(?:apr1|argon2\w{0,2}|bcrypt[\w-]*|pbkdf2[\w-]*|scrypt|[1-7]|2[abxy]|y)\$[\w./$=,+-]{20,}",
    r"\{S?(?:SHA|MD5|SHA256|SHA512)\}[A-Za-z0-9+/]{20,}=*",
)


def _numbered(kind: str, patterns: tuple[str, ...]) -> dict[str, str]:
    return {f"{kind}/{number}": pattern for number, pattern in enumerate(patterns)}


ARGUMENT, CALLED, SAID, HASHED = "password/argument", "password/call", "password/said", "password/hash"
SET, KEYED = "token/set", "token/keyed"
EVERYDAY = {
    **_numbered(ARGUMENT, _ARGUMENTS),
    **_numbered(CALLED, _CALLS),
    **_numbered(SET, _SETTINGS),
    **_numbered(KEYED, _KEYS),
    **_numbered(SAID, _SENTENCES),
    **_numbered(HASHED, _HASHES),
}
"""Patterns of credentials by kind; marks in redacted texts show only the part of a kind before the first slash."""
