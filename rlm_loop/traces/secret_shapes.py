"""Secrets that are known by their shape: keys of providers, tokens, private keys, passwords in addresses.

The shapes are those of public lists (gitleaks, detect-secrets), a little wider where a provider may lengthen its keys.
Each begins with a fixed text (`MARKS`), so that a text without any is passed over at the speed of `in`;
what is looked for ahead is bounded, so that no text takes time that grows with its square.
"""

from __future__ import annotations

import re

#: A word begins here, also after an escape such as `\n` where a text holds JSON or the `repr` of another.
BEGIN = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf])|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4}))"

_WORDS = {
    "sk-": (  # OpenAI, Anthropic, OpenRouter, DeepSeek; not a class of a style sheet, such as sk-toggleable__label
        r"sk-(?:(?:proj|svcacct|admin|ant|or|lf)-[\w-]{12,}|[A-Za-z0-9]{16,}[\w-]*"
        r"|(?=[\w-]{0,99}[0-9])(?=[\w-]{0,99}[A-Z])(?=[\w-]{0,99}[a-z])[\w-]{20,})"
    ),
    "ghp_": r"ghp_[A-Za-z0-9]{16,}",
    "gho_": r"gho_[A-Za-z0-9]{16,}",
    "ghu_": r"ghu_[A-Za-z0-9]{16,}",
    "ghs_": r"ghs_[A-Za-z0-9]{16,}",
    "ghr_": r"ghr_[A-Za-z0-9]{16,}",
    "github_pat_": r"github_pat_\w{16,}",
    "glpat-": r"glpat-[\w-]{16,}",
    "AKIA": r"AKIA[A-Z0-9]{16}(?![A-Za-z0-9])",
    "ASIA": r"ASIA[A-Z0-9]{16}(?![A-Za-z0-9])",
    "AIza": r"AIza[\w-]{30,}",
    "GOCSPX-": r"GOCSPX-[\w-]{16,}",
    "ya29.": r"ya29\.[\w-]{16,}",
    "xox": r"xox[a-z]-[A-Za-z0-9-]{10,}",
    "xapp-": r"xapp-[A-Za-z0-9-]{16,}",
    "hooks.slack.com/": r"hooks\.slack\.com/(?:services|workflows)/[\w/+-]{16,}",
    "hf_": r"hf_[A-Za-z0-9]{20,}",
    "gsk_": r"gsk_[A-Za-z0-9]{20,}",
    "xai-": r"xai-[A-Za-z0-9]{20,}",
    "pplx-": r"pplx-[A-Za-z0-9]{20,}",
    "nvapi-": r"nvapi-[\w-]{20,}",
    "_live_": r"[sr]k_live_[A-Za-z0-9]{10,}",
    "k_test_": r"[sr]k_test_[A-Za-z0-9]{10,}",
    "npm_": r"npm_[A-Za-z0-9]{36}",
    "pypi-AgEI": r"pypi-AgEI[\w-]{16,}",
    "SG.": r"SG\.[\w-]{16,99}\.[\w-]{16,}",
    "eyJ": r"eyJ[\w-]{8,999}\.[\w-]{8,}(?:\.[\w-]*){0,3}",  # a JSON Web Token
}
_SPACE = r"(?:\s|\\+[nrt])"
_OTHERS = {
    "PRIVATE KEY": (  # a whole PEM block, or what is left of one that was clipped
        rf"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----(?:{_SPACE}+[\w-]+: [^\n\\]*)*"
        rf"(?:{_SPACE}+[A-Za-z0-9+/=]{{8,}})+(?:{_SPACE}*-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----)?"
    ),
    # the part of an address before the @, where it has a password; not the placeholders of a template
    "://": r"""(?<=://)[^/\s:@"'\\<>{}$%]*:(?![{$%<])[^/\s"'\\<>{}]+(?=@)""",
}

#: One of these is in every text that has a secret of a known shape.
MARKS = (*_WORDS, *_OTHERS)
SHAPES = re.compile("|".join([f"{BEGIN}(?:{'|'.join(_WORDS.values())})", *_OTHERS.values()]))
