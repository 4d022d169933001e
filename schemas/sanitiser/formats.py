"""The shapes of keys that providers hand out.

Each row is a literal that must be in the text (a cheap test for all text that has none) and a pattern.
Sources: the provider's own documentation of its key format, and the rule of that provider in gitleaks'
`config/gitleaks.toml` (MIT) and in Yelp's detect-secrets, which the tests use as an oracle. Patterns are
looser than theirs: minimal lengths lie a little lower, and what follows a key without a gap belongs to it.

Linear time: behind its literal start every pattern is a run with a lower bound, so a failed attempt costs
at most that bound, and a successful one consumes the run. No pattern looks for something behind an
unbounded run.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Format(NamedTuple):
    """One shape of key."""

    trigger: str
    pattern: re.Pattern[str]


SHORTEST = 20  # characters; no format is shorter, so shorter words are not looked at
_GAPS = "/:"  # a format with one of these in it is spread over several words

_SHAPES: Final = (
    # Amazon Web Services: IAM unique identifiers (A3T, AKIA, ASIA, ABIA, ACCA), Bedrock API keys
    ("AKIA", r"AKIA[A-Z0-9]{16,}"),
    ("ASIA", r"ASIA[A-Z0-9]{16,}"),
    ("ABIA", r"ABIA[A-Z0-9]{16,}"),
    ("ACCA", r"ACCA[A-Z0-9]{16,}"),
    ("A3T", r"A3T[A-Z0-9]{17,}"),
    ("ABSK", r"ABSK[A-Za-z0-9+/=]{100,}"),
    # GitHub: "behind GitHub's new authentication token formats"
    ("gh", r"gh[pousr]_[A-Za-z0-9_]{17,}"),
    ("github_pat_", r"github_pat_[A-Za-z0-9_]{20,}"),
    # GitLab: token overview, prefixes
    ("gl", r"gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas|ffct|rtr|wt)-[\w-]{16,}"),
    ("GR1348941", r"GR1348941[\w-]{16,}"),
    # Slack: token types; incoming webhooks, workflows
    ("xox", r"xox[a-zA-Z](?:\.xox[a-zA-Z])?-[A-Za-z0-9-]{15,}"),
    ("xapp-", r"xapp-[A-Za-z0-9-]{15,}"),
    ("xwfp-", r"xwfp-[A-Za-z0-9-]{15,}"),
    ("hooks.slack.com/", r"hooks\.slack\.com/[A-Za-z]{1,20}/[\w+/-]{4,}"),
    # Discord and Microsoft Teams: webhooks
    ("/api/webhooks/", r"/api/webhooks/[0-9]{5,}/[\w-]{20,}"),
    ("webhook.office.com/", r"webhook\.office\.com/[\w@/-]{20,}"),
    # Stripe: API keys, webhook signing secrets
    ("k_live_", r"[rs]k_live_[A-Za-z0-9]{12,}"),
    ("k_test_", r"[rs]k_test_[A-Za-z0-9]{12,}"),
    ("k_prod_", r"[rs]k_prod_[A-Za-z0-9]{12,}"),
    ("whsec_", r"whsec_[A-Za-z0-9+/=]{14,}"),
    # OpenAI, and the many who took over its `sk-`
    ("sk-", r"sk-(?:proj|svcacct|admin|None|ant|or|lf)-[\w-]{16,}"),
    ("sk-", r"sk-[A-Za-z0-9]{20}T3BlbkFJ[\w-]{10,}"),
    ("T3BlbkFJ", r"sk-[\w-]{0,90}T3BlbkFJ[\w-]{10,}"),
    ("sk-", r"(?<![A-Za-z0-9])sk-(?=[A-Za-z_-]{0,40}[0-9])[\w-]{17,}"),
    ("sk-", r"(?<![A-Za-z0-9])sk-[A-Za-z0-9]{32,}"),
    # ElevenLabs; Groq, xAI, Perplexity, Replicate, Tavily, NVIDIA, Cerebras, Jina, Pinecone, E2B, LangSmith
    ("sk_", r"sk_[a-f0-9]{40,}"),
    ("gsk_", r"gsk_[A-Za-z0-9]{30,}"),
    ("xai-", r"xai-[A-Za-z0-9_]{40,}"),
    ("pplx-", r"pplx-[A-Za-z0-9]{30,}"),
    ("r8_", r"r8_[A-Za-z0-9]{30,}"),
    ("tvly-", r"tvly-[\w-]{16,}"),
    ("nvapi-", r"nvapi-[\w-]{40,}"),
    ("csk-", r"csk-[a-z0-9]{40,}"),
    ("jina_", r"jina_[A-Za-z0-9_-]{40,}"),
    ("pcsk_", r"pcsk_[A-Za-z0-9_]{40,}"),
    ("e2b_", r"e2b_[a-f0-9]{30,}"),
    ("lsv2_", r"lsv2_(?:pt|sk)_[A-Za-z0-9_]{30,}"),
    # Hugging Face
    ("hf_", r"hf_[A-Za-z0-9]{30,}"),
    ("api_org_", r"api_org_[A-Za-z0-9]{30,}"),
    # Google: API keys, OAuth access tokens, client secrets, refresh tokens, Gemini keys
    ("AIza", r"AIza[\w-]{30,}"),
    ("ya29.", r"ya29\.[\w-]{16,}"),
    ("GOCSPX-", r"GOCSPX-[\w-]{16,}"),
    ("1//0", r"1//0[\w-]{30,}"),
    ("AQ.Ab", r"AQ\.Ab[\w-]{30,}"),
    # Microsoft: Entra client secrets, Azure storage
    ("Q~", r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{30,}"),
    # Package registries: npm, PyPI (macaroons), RubyGems, crates.io, NuGet, Clojars, Docker Hub, JFrog
    ("npm_", r"npm_[A-Za-z0-9]{30,}"),
    ("pypi-", r"pypi-[\w-]{40,}"),
    ("rubygems_", r"rubygems_[a-f0-9]{40,}"),
    ("cio", r"(?<![A-Za-z0-9])cio[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("oy2", r"oy2[a-z0-9]{43}"),
    ("CLOJARS_", r"CLOJARS_[A-Za-z0-9]{40,}"),
    ("dckr_", r"dckr_[a-z]{3}_[\w-]{16,}"),
    ("AKCp", r"AKCp[A-Za-z0-9]{60,}"),
    ("cmVmd", r"cmVmd[A-Za-z0-9]{59,}"),
    # Mail and messages: SendGrid, Mailgun, Mailchimp, Resend, Twilio, Telegram
    ("SG.", r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    ("key-", r"(?<![A-Za-z0-9])key-[0-9a-f]{32,}"),
    ("-us", r"(?<![0-9a-z])[0-9a-z]{32}-us[0-9]{1,2}"),
    ("re_", r"(?<![A-Za-z0-9])re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}"),
    ("SK", r"SK[0-9a-z]{32,}"),
    (":AA", r"[0-9]{8,10}:AA[\w-]{30,}"),
    # Shops and payment: Square, Shopify, Braintree, Facebook, EasyPost, Flutterwave
    ("sq0", r"sq0[a-z]{3}-[\w-]{20,}"),
    ("shp", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{30,}"),
    ("access_token$", r"access_token\$[a-z]{3,20}\$[a-z0-9]{10,}\$[a-f0-9]{20,}"),
    ("EAA", r"EAA[MC][A-Za-z0-9]{90,}"),
    ("EZ", r"EZ[AT]K[A-Za-z0-9]{54,}"),
    ("FLWSECK", r"FLWSECK(?:_TEST)?-[A-Za-z0-9]{12,}"),
    # Clouds and platforms
    ("_v1_", r"do[opr]_v1_[a-f0-9]{40,}"),
    ("dapi", r"dapi[0-9a-f]{32,}"),
    ("LTAI", r"LTAI[A-Za-z0-9]{16,}"),
    ("HRKU-", r"HRKU-[\w-]{30,}"),
    ("fo1_", r"fo1_[\w-]{40,}"),
    ("fm", r"fm[12][ar]?_[A-Za-z0-9+/=_-]{80,}"),
    ("nfp_", r"nfp_[A-Za-z0-9]{30,}"),
    ("v1.0-", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}"),
    ("pscale_", r"pscale_[a-z]{2,6}_[\w.=-]{20,}"),
    ("pul-", r"pul-[a-f0-9]{40,}"),
    ("sbp_", r"sbp_[a-f0-9]{40,}"),
    ("sb_secret_", r"sb_secret_[\w-]{16,}"),
    ("tskey-", r"tskey-[a-z]{3,10}-[\w-]{16,}"),
    ("sha256~", r"sha256~[\w-]{40,}"),
    # Secrets managers: HashiCorp Vault and Terraform, Doppler, 1Password, age
    ("hv", r"hv[sbr]\.[\w-]{20,}"),
    (".atlasv1.", r"[A-Za-z0-9]{0,14}\.atlasv1\.[\w=-]{40,}"),
    ("dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{20,}"),
    ("ops_eyJ", r"ops_eyJ[\w+/=-]{40,}"),
    ("A3-", r"A3-[A-Z0-9]{6}-[A-Z0-9-]{20,}"),
    ("AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{40,}"),
    # Work: Atlassian, Airtable, Linear, Notion, Figma, Postman, Dropbox, Contentful, Typeform, Prefect, Adobe
    ("ATATT3", r"ATATT3[\w=-]{30,}"),
    ("ATCTT3", r"ATCTT3[\w=-]{30,}"),
    ("ATBB", r"ATBB[A-Za-z0-9]{30,}"),
    ("pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{40,}"),
    ("lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}"),
    ("ntn_", r"ntn_[A-Za-z0-9]{40,}"),
    ("secret_", r"secret_[A-Za-z0-9]{40,}"),
    ("figd_", r"figd_[\w-]{30,}"),
    ("PMAK-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{30,}"),
    ("sl.", r"sl\.[\w-]{100,}"),
    ("CFPAT-", r"CFPAT-[\w-]{30,}"),
    ("tfp_", r"tfp_[\w-]{40,}"),
    ("pnu_", r"pnu_[A-Za-z0-9]{30,}"),
    ("p8e-", r"p8e-[A-Za-z0-9]{32,}"),
    # Watching and building: Grafana, Sentry, New Relic, Dynatrace, CircleCI, Buildkite, Sourcegraph, Octopus
    ("glc_", r"glc_[A-Za-z0-9+/=]{30,}"),
    ("glsa_", r"glsa_[A-Za-z0-9_]{30,}"),
    ("sntry", r"sntry[su]_[\w+/=]{40,}"),
    ("NR", r"NR(?:AK|JS|II|RA|AL)-[\w-]{16,}"),
    ("dt0", r"dt0[a-zA-Z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{60,}"),
    ("CCIPAT_", r"CCIPAT_[\w]{30,}"),
    ("bkua_", r"bkua_[a-z0-9]{30,}"),
    ("sgp_", r"sgp_[\w]{30,}"),
    ("API-", r"API-[A-Z0-9]{26,}"),
)

FORMATS: Final = tuple(Format(trigger, re.compile(pattern)) for trigger, pattern in _SHAPES)
SPREAD_FORMATS: Final = tuple(
    shape for shape in FORMATS if any(gap in shape.pattern.pattern.replace("(?:", "") for gap in _GAPS)
)
WORD_FORMATS: Final = tuple(shape for shape in FORMATS if shape not in SPREAD_FORMATS)

_BETWEEN_WORDS: Final = str.maketrans(dict.fromkeys("/:?&\"',;()[]{}<>|@#!*`^\\", " "))


_HEX_DIGITS: Final = (
    "0123456789abcdef-"  # digests and UUIDs, the most common long words; no trigger is in one
)


def long_words(text: str) -> str:
    """The words of a text that are long enough to be a key, one a line."""
    words = text.translate(_BETWEEN_WORDS).split()
    return "\n".join([word for word in words if len(word) >= SHORTEST and word.strip(_HEX_DIGITS)])
