"""Made-up tokens in the formats that providers document: the prefix, the alphabet and the length, never a real one."""

import random
import re
import string
from collections.abc import Iterator

_HEX = string.digits + "abcdef"
ALPHABETS = {
    "A": string.ascii_letters + string.digits,
    "W": string.ascii_letters + string.digits + "_-",
    "B": string.ascii_letters + string.digits + "+/",
    "a": string.ascii_lowercase + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "H": _HEX,
    "X": string.digits + "ABCDEF",
    "L": string.ascii_letters,
    "d": string.digits,
    "T": string.ascii_uppercase + "234567",
    "Q": "023456789ACDEFGHJKLMNPQRSTUVWXYZ",
}
"""Alphabets of holes: ``{A36}`` becomes 36 characters of alphabet A."""

_HOLE = re.compile(r"\{([A-Za-z])(\d+)\}")
_UUID = "{H8}-{H4}-4{H3}-a{H3}-{H12}"

TOKENS = {
    "1password": ["A3-{U6}-{U11}-{U5}-{U5}-{U5}", "ops_eyJ{A260}"],
    "adobe": ["p8e-{a32}"],
    "age": ["AGE-SECRET-KEY-1{Q58}"],
    "airtable": ["pat{A14}.{H64}"],
    "alibaba": ["LTAI{A20}"],
    "anthropic": ["sk-ant-api03-{W93}AA", "sk-ant-admin01-{W93}AA", "sk-ant-oat01-{W93}AA"],
    "artifactory": ["AKCp{A69}", "cmVmdGtu{A56}"],
    "atlassian": ["ATATT3xFfGF0{W180}={X8}", "ATBB{A24}{X8}"],
    "aws": ["AKIA{T16}", "ASIA{T16}", "ABSK{B128}="],
    "azure-ad": ["{A3}8Q~{W34}"],
    "buildkite": ["bkua_{H40}"],
    "circleci": ["CCIPAT_{A22}_{H40}"],
    "clickhouse": ["4b1d{A38}"],
    "clojars": ["CLOJARS_{H60}"],
    "cloudflare": ["v1.0-{H24}-{H146}"],
    "contentful": ["CFPAT-{W43}"],
    "crates": ["cio{A32}"],
    "databricks": ["dapi{H32}", "dapi{H32}-2"],
    "digitalocean": ["dop_v1_{H64}", "doo_v1_{H64}", "dor_v1_{H64}"],
    "discord": ["MT{A24}.G{W5}.{W38}"],
    "docker": ["dckr_pat_{W27}", "dckr_oat_{W32}"],
    "doppler": ["dp.pt.{A43}", "dp.st.prd.{A43}"],
    "duffel": ["duffel_live_{W43}", "duffel_test_{W43}"],
    "dynatrace": ["dt0c01.{T24}.{T64}"],
    "easypost": ["EZAK{a54}", "EZTK{a54}"],
    "facebook": ["EAAM{A120}"],
    "figma": ["figd_{W40}"],
    "flutterwave": ["FLWSECK_TEST-{H32}-X"],
    "fly": ["fo1_{W43}", "fm2_{B120}"],
    "frameio": ["fio-u-{W64}"],
    "github": ["ghp_{A36}", "gho_{A36}", "ghu_{A36}", "ghs_{A36}", "ghr_{A36}", "github_pat_{A22}_{A59}"],
    "gitlab": [
        "glpat-{W20}",
        "gldt-{W20}",
        "glptt-{H40}",
        "glrt-{W20}",
        "glcbt-{H2}_{W20}",
        "glsoat-{W20}",
        "glagent-{W50}",
        "glft-{W20}",
        "glimt-{W25}",
        "glffct-{W20}",
        "GR1348941{W20}",
        "_gitlab_session={H32}",
        "gloas-{H64}",
    ],
    "google": ["AIza{W35}", "GOCSPX-{W28}", "ya29.a0{W120}"],
    "grafana": ["glsa_{A32}_{H8}", "glc_eyJ{A80}", "eyJrIjoi{A80}"],
    "groq": ["gsk_{A52}"],
    "harness": ["pat.{W22}.{H24}.{A20}"],
    "heroku": ["HRKU-AA{W58}"],
    "hubspot": [f"pat-na1-{_UUID}"],
    "huggingface": ["hf_{L34}", "api_org_{L34}"],
    "infracost": ["ico-{A32}"],
    "intra42": ["s-s4t2ud-{H64}"],
    "jwt": ["eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIi{A60}.{W43}"],
    "langsmith": ["lsv2_pt_{H32}_{H10}"],
    "linear": ["lin_api_{A40}"],
    "mailgun": ["key-{H32}"],
    "mailchimp": ["{H32}-us12"],
    "maxmind": ["{A6}_{A29}_mmk"],
    "mapbox": ["sk.eyJ{A80}.{A22}"],
    "neon": ["napi_{a64}"],
    "netlify": ["nfp_{A36}"],
    "new-relic": ["NRAK-{U27}", "NRII-{W32}"],
    "notion": ["ntn_{d11}{A35}", "secret_{A43}"],
    "npm": ["npm_{A36}"],
    "nuget": ["oy2{a43}"],
    "octopus": ["API-{U26}"],
    "openai": ["sk-{A20}T3BlbkFJ{A20}", "sk-proj-{W74}T3BlbkFJ{W74}", "sk-svcacct-{W74}T3BlbkFJ{W74}", "sk-{A48}"],
    "openrouter": ["sk-or-v1-{H64}"],
    "openshift": ["sha256~{W43}"],
    "packagist": ["packagist_oat_{H68}"],
    "paypal": ["access_token$production${a16}${H32}"],
    "perplexity": ["pplx-{A48}"],
    "pinecone": ["pcsk_{A6}_{A63}"],
    "plaid": [f"access-production-{_UUID}"],
    "planetscale": ["pscale_tkn_{W43}", "pscale_oauth_{W43}", "pscale_pw_{W43}"],
    "postman": ["PMAK-{H24}-{H34}"],
    "prefect": ["pnu_{a36}"],
    "pulumi": ["pul-{H40}"],
    "pypi": ["pypi-AgEIcHlwaS5vcmc{W100}"],
    "razorpay": ["rzp_live_{A14}"],
    "readme": ["rdme_{a70}"],
    "replicate": ["r8_{A37}"],
    "resend": ["re_{A8}_{A24}"],
    "rubygems": ["rubygems_{H48}"],
    "scalingo": ["tk-us-{W48}"],
    "sendgrid": ["SG.{W22}.{W43}"],
    "sendinblue": ["xkeysib-{H64}-{A16}"],
    "sentry": ["sntryu_{H64}", "sntrys_eyJpYXQiOjE{A90}_{A43}"],
    "settlemint": ["sm_aat_{A16}", "sm_pat_{A16}"],
    "shippo": ["shippo_live_{H40}"],
    "shopify": ["shpat_{H32}", "shpca_{H32}", "shppa_{H32}", "shpss_{H32}"],
    "slack": [
        "xoxb-{d12}-{d12}-{A24}",
        "xoxp-{d12}-{d12}-{d12}-{H32}",
        "xapp-1-A{U10}-{d13}-{H64}",
        "xoxe.xoxp-1-{A166}",
        "https://hooks.slack.com/services/T{U8}/B{U8}/{A24}",
    ],
    "sonar": ["squ_{H40}", "sqp_{H40}"],
    "sourcegraph": ["sgp_{H16}_{H40}"],
    "square": ["sq0atp-{W22}", "sq0csp-{W43}", "EAAA{W60}"],
    "stripe": ["sk_live_{A24}", "sk_test_{A24}", "rk_live_{A99}", "whsec_{A32}"],
    "supabase": ["sbp_{H40}", "sb_secret_{A22}_{A8}"],
    "tavily": ["tvly-dev-{A32}"],
    "teams": [f"https://acme.webhook.office.com/webhookb2/{_UUID}@{_UUID}/IncomingWebhook/{{H32}}/{_UUID}"],
    "telegram": ["{d10}:AA{W33}"],
    "tencent": ["AKID{A32}"],
    "terraform": ["{A14}.atlasv1.{W67}"],
    "twilio": ["SK{H32}"],
    "typeform": ["tfp_{W44}"],
    "vault": ["hvs.{W92}", "hvb.{W140}"],
    "vercel": ["vcp_{A56}"],
    "xai": ["xai-{A80}"],
    "yandex": ["AQVN{W36}", "y0_{W55}"],
}
"""Formats that are known by themselves, by provider."""

KEYED = {
    "algolia_api_key": "{H32}",
    "asana_client_secret": "{a32}",
    "aws_secret_access_key": "{B40}",
    "azure_storage_account_key": "{B86}==",
    "bitbucket_client_secret": "{W64}",
    "cohere_api_key": "{A40}",
    "coinbase_access_token": "{W64}",
    "confluent_secret_key": "{A64}",
    "datadog_api_key": "{a40}",
    "dropbox_access_token": "sl.{W140}",
    "etsy_api_key": "{a24}",
    "fastly_api_key": "{W32}",
    "finicity_client_secret": "{A20}",
    "freshbooks_access_token": "{H64}",
    "gitter_access_token": "{W40}",
    "heroku_api_key": _UUID,
    "jfrog_api_key": "{A73}",
    "kraken_access_token": "{B80}",
    "kucoin_secret_key": _UUID,
    "launchdarkly_access_token": "{W40}",
    "linkedin_client_secret": "{A16}",
    "lob_api_key": "live_{H35}",
    "mailgun_signing_key": "{H32}-{H8}-{H8}",
    "mistral_api_key": "{A32}",
    "netlify_access_token": "{W43}",
    "okta_access_token": "00{W40}",
    "plaid_secret_key": "{A30}",
    "rapidapi_access_token": "{W50}",
    "sendbird_access_token": "{H40}",
    "snyk_token": _UUID,
    "squarespace_access_token": _UUID,
    "sumologic_access_token": "{A64}",
    "travisci_access_token": "{A22}",
    "twitch_api_token": "{a30}",
    "twitter_bearer_token": "AAAAAAAAAAAAAAAAAAAA{A90}",
    "zendesk_secret_key": "{a40}",
}
"""Formats that only the name before them gives away."""

NAMES = ("{p}_api_key", "{p}_token", "{P}_SECRET", "{p}AccessToken", "{P}_KEY")
ASSIGNED = (
    '{n} = "{v}"',
    "{n}={v}",
    "export {n}='{v}'",
    '"{n}": "{v}"',
    "{n}: {v}",
    "--{n} {v}",
    "{n} := `{v}`",
    "<{n}>{v}</{n}>",
    "ENV {n}={v}",
    'const {n} = "{v}";',
)


def filled(pattern: str, rng: random.Random) -> str:
    """Returns the format with its holes filled at random."""
    return _HOLE.sub(lambda hole: "".join(rng.choices(ALPHABETS[hole[1]], k=int(hole[2]))), pattern)


def bare(rng: random.Random, each: int) -> Iterator[tuple[str, str, str]]:
    """Yields provider, text and secret: a token by itself, at the end of a sentence, in a list."""
    for provider, patterns in TOKENS.items():
        for number in range(each * len(patterns)):
            token = filled(patterns[number % len(patterns)], rng)
            yield (
                provider,
                rng.choice(("{}", "use {} for it", "{}\n", "- {}", '["{}"]', "`{}`.", "{},")).format(token),
                token,
            )


def assigned(rng: random.Random, each: int) -> Iterator[tuple[str, str, str]]:
    """Yields provider, text and secret: a token that is given to a name, in the ways of code and of configuration."""
    for provider, patterns in TOKENS.items():
        for number in range(each * len(patterns)):
            token = filled(patterns[number % len(patterns)], rng)
            name = rng.choice(NAMES).format(p=provider.replace("-", "_"), P=provider.replace("-", "_").upper())
            yield provider, rng.choice(ASSIGNED).format(n=name, v=token), token
    for name, pattern in KEYED.items():
        for _ in range(each):
            token = filled(pattern, rng)
            spelled = rng.choice((name, name.upper(), name.replace("_", "-")))
            yield name, rng.choice(ASSIGNED).format(n=spelled, v=token), token
