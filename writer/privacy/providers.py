"""Patterns of tokens as providers document them: a unique prefix, an alphabet and a length.

The patterns replace the engine if it is missing, and complement it, because it finds some tokens only after a name.
"""

PROVIDER_TOKEN = "provider-token"  # noqa: S105 - a kind of finds
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

# What follows the prefix, and the prefixes, which are expressions themselves.
_PREFIXES = {
    "[A-Za-z0-9]{20,}": r"""
        CCIPAT_ api_org_ apify_api_ bk[pu]a_ dp\.(?:pt|sa|scim|audit)\. dp\.(?:st|ct)\.(?:[\w-]+\.)? e2b_ glc_ gsk_ ico-
        jina_ lin_(?:api|oauth)_ nfp_ ntn_ nvapi- pplx- r8_ re_ sk_live_ vc[aikpr]_ xai-
        (?:[a-z0-9]+[_-])*(?:oauth|pat|secret|token)[_-]
    """,
    "[a-z0-9]{24,}": r"""
        EZ[AT]K napi_ p8e- pn[bu]_ rdme_ rnd_ trigger_prod_
    """,
    "[0-9a-f]{32,}": r"""
        CLOJARS_ FLWSECK(?:_TEST)?- do[opr]_v1_ dapi hcp_ key- live_ lsv2_(?:pt|sk)_ packagist_[ou][ru]?[at]t_ pul-
        rubygems_ s-s4t2(?:ud|af)- sbp_ sgp_(?:[0-9a-f]{16}_|local_)? shippo_(?:live|test)_ shp(?:at|ca|pa|ss|tka)_
        sk-or-v1- sk_ sntryu_ sq[aup]_ test_ xkeysib- xsmtpsib-
    """,
    r"[\w-]{20,}": r"""
        AQVN CFPAT- GR1348941 HRKU- NRII- PMAK- _gitlab_session= dckr_[op]at_ duffel_(?:live|test)_ fat- fig[doru]_
        fio-u- fo1_ gl(?:agent|cbt|dt|ffct|ft|imt|oas|pat|ptt|rt|soat|wt)- hv[bprs]\. live_ pa- pcsk_
        pscale_(?:oauth|pw|tkn)_ s\. sandbox_ sb_secret_ sha256~ sntrys_ sq0(?:atp|csp)- tfp_ tk-us- tvly- y0_ secret_
    """,
    r"[\w+/=-]{40,}": r"""
        ABSK FlyV1\x20fm[12]\w*_ ATATT3 ATCTT3 eyJrIjoi fm[12][a-z]?_ ops_eyJ sl\.u?\.? t1\.
    """,
    "[A-Z0-9]{16,}": r"""
        A(?:BIA|CCA|KIA|SIA) AGE-SECRET-KEY- API- NRAK-
    """,
}

_WHOLE = (
    "(?:AKID|LTAI)[A-Za-z0-9]{20,32}",
    "(?:AKCp|cmVmdGtu)[A-Za-z0-9]{50,70}",
    "4b1d[A-Za-z0-9]{38}",
    "A3-[A-Z0-9]{6}(?:-[A-Z0-9]{5,11}){3,4}",
    r"ATBB[\w=]{28,40}",
    "EAA(?:[CM][A-Za-z0-9]{100,300}|A[\\w-]{60})",
    "FLWSECK(?:_TEST)?-[0-9a-h]{12,40}-X",
    f"(?:access|pat|api|sdk|key)-(?:[a-z]+\\d*-)?{_UUID}",
    f"HRKU-{_UUID}",
    "access_token\\$(?:production|sandbox)\\$[0-9a-z]{16}\\$[0-9a-f]{32}",
    "dnkey-[\\w=-]{26,}",
    "endr\\+[A-Za-z0-9-]{16,}",
    "pk_\\d{6,9}_[A-Za-z0-9]{32}",
    f"(?:sk|rk)_(?:test_)?{_UUID}",
    "(?:PRD|SBX)-[0-9a-f]{12}(?:-[0-9a-f]{4}){4}",
    "cio[A-Za-z0-9]{32}",
    "dt0[a-z]\\d\\d\\.[A-Z0-9]{24}\\.[A-Z0-9]{64}",
    "oy2[a-z0-9]{43}",
    r"pat\.[\w-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}",
    "pat[A-Za-z0-9]{14}\\.[0-9a-f]{64}",
    "re_[A-Za-z0-9]{6,12}_[A-Za-z0-9]{20,}",
    "rzp_(?:live|test)_[A-Za-z0-9]{14,20}",
    "sm_(?:aat|pat|sat)_[A-Za-z0-9]{16}",
    r"[ps]k\.eyJ[\w-]{40,}\.[\w-]{20,}",
    r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}",
    r"https://hooks\.slack\.com/(?:services|workflows|triggers)/[\w/+-]{20,}",
    r"https://[\w.-]+\.webhook\.office\.com/webhookb2/[\w@/-]{60,}",
    r"https://(?:\w+\.)?discord(?:app)?\.com/api/webhooks/\d{15,}/[\w-]{50,}",
)

# These begin with no letters of their own: a set of rules would count from every word on, and each text would be slow.
_LOOSE = (
    "[0-9a-f]{32}-us\\d{1,2}",
    "[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}",
    "[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk",
    "[A-Za-z0-9]{14}\\.atlasv1\\.[\\w=-]{60,70}",
    r"[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,40}",
    r"[\w~.-]{3}\dQ~[\w~.-]{31,36}",
)
LOOSE_SIGN = r"-us\d|_mmk|\.atlasv1\.|\dQ~|[0-9a-f]{8}-[0-9a-f]{8}-|[MNO][\w-]{22}[\w-]*\.[\w-]{6}\."
"""Sign of a text that may hold a token in a form without a unique prefix."""
LOOSE = f"{PROVIDER_TOKEN}/loose"

PROVIDERS = {
    LOOSE: r"\b(?:" + "|".join(_LOOSE) + r")\b",
    f"{PROVIDER_TOKEN}/form": r"\b(?:" + "|".join(_WHOLE) + r")\b",
    **{
        f"{PROVIDER_TOKEN}/{number}": r"\b(?:" + "|".join(prefixes.split()) + f"){rest}(?:[._-][A-Za-z0-9]{{2,}})*"
        for number, (rest, prefixes) in enumerate(_PREFIXES.items())
    },
}
"""Patterns of tokens by kind; marks in redacted texts do not show the part of a kind after the slash."""
