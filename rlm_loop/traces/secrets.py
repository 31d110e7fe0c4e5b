"""Where the secrets of a text are: known by their shape, or by the name in front of them.

Shapes are those of public lists (gitleaks, detect-secrets), a little wider where a provider may lengthen its keys.
Each begins with a fixed text (`MARKS`), so that a text without any is passed over at the speed of `in`;
what is looked for ahead is bounded, so that no text takes time that grows with its square.

Names are `password=`, `"api_key": "..."`, `Authorization: Bearer ...`.  Traces hold code that models write, so a name
alone says little: `password = input()`, `token=tokens[i]` and `{"token": "the"}` are left as they are.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Literal

#: A word begins here, also after an escape such as `\n` where a text holds JSON or the `repr` of another.
BEGIN = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf])|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4}))"

_WORDS = {
    "sk-": (  # OpenAI, Anthropic, OpenRouter, DeepSeek; not a class of a style sheet, such as sk-toggleable__label
        r"sk-(?:(?:proj|svcacct|admin|ant|or|lf)-[\w-]{12,}|[A-Za-z0-9]{16,}[\w-]*"
        r"|(?=[\w-]{0,99}[0-9])(?=[\w-]{0,99}[A-Z])(?=[\w-]{0,99}[a-z])[\w-]{20,})"
    ),
    **{mark: f"{mark}[A-Za-z0-9]{{16,}}" for mark in ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")},
    **{mark: f"{mark}[A-Za-z0-9]{{20,}}" for mark in ("hf_", "gsk_", "xai-", "pplx-")},
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

Kind = Literal["password", "key", "token", "bearer", "basic"]

#: One of these is, in lower case, in every text that names a secret.
STEMS = ("passw", "passphrase", "pwd", "secret", "token", "key", "credential", "authorization", "bearer", "basic")

_STEM = re.compile("|".join(STEMS), re.IGNORECASE)
#: What may follow a name that has a value: a quote, a sign between the two, the rest of the name.
_GOES_ON = frozenset("\"'`\\] \t=:-_sS")
_PASSWORD = ("passw", "passphrase", "pwd")
#: What goes on after the stem and is still the name.
_REST = {"passw": re.compile(r"(?:or)?d\b", re.I), "secret": re.compile(r"(?:[_-]?(?:access[_-]?)?key)?", re.I)}
#: What makes a `key` one to a lock, and a `token` one that lets somebody in.
_LOCKED = re.compile(
    r"(?:api|access|secret|private|auth|account|client|master|service|session|security|refresh|signing|subscription"
    r"|encryption|shared|bot|csrf|oauth|id|app|hub|hf|gh|github|gitlab)[_\- ]?$",
    re.IGNORECASE,
)
_QUERY = re.compile(r"[?&;]$|&amp;$")
_OPTION = re.compile(r"(?:^|[\s\"'\[])--[\w-]*$")
_QUOTE = r"\\*[\"'`]"
_ANNOTATION = r":\s*(?:str|bytes|SecretStr|Optional\[str\]|str\s*\|\s*None)\s*(?==)"
_BETWEEN = re.compile(rf"(?:{_QUOTE})?\]?\s*(?:{_ANNOTATION})?(?:=>|:=|=(?!=)|:(?!:))\s*")
_BETWEEN_BEGINS = frozenset("\"'`\\] \t=:")
_SCHEME = re.compile(r"(?:[fFrRbBuU]{0,2}" + _QUOTE + r")?(?:Bearer|Basic|Token|ApiKey)\s+", re.IGNORECASE)
_QUOTED = re.compile(rf"[rRbBuU]{{0,2}}(?P<quote>{_QUOTE})(?P<value>[^\"'`\s]{{1,400}}?)(?P=quote)")
_BARE = re.compile(r"(?P<value>[^\s\"'`,;&<>()\[\]{}|\\]{4,400})(?![(\[{])")
_CREDENTIAL = re.compile(r"(?P<value>[A-Za-z0-9._~+/-]{8,}=*)")

#: Words that stand where a secret would, and what begins an expression or a blank to be filled in.
_BLANK = re.compile(
    r"[{$%<\[(*]|\.\.\.|\[redacted|(?:none|null|nil|true|false|str|string|bytes|text|int|required|optional|hidden"
    r"|undefined|username|email|user|name|value|bearer|basic|(?:my|your|the|new|old|current|confirm|user|db)?[-_]?"
    r"(?:password|passwd|pass|pwd|token|secret|api[-_]?key|key|credentials?))$|x{3,}|[A-Z]+(?:_[A-Z]+)+$|(.)\1*$",
    re.IGNORECASE,
)
#: A variable that itself is named for a secret, or a path.
_VARIABLE = re.compile(r"\w*?(?:pass|pw|token|key|secret|cred|hash|auth)|self\.|os\.|[~.]?/|[A-Za-z]:\\", re.IGNORECASE)
_PART = re.compile(r"[a-z_]\w*(?:\.[a-z_]\w*)+$")


def named_secrets(text: str) -> Iterator[tuple[int, int]]:
    """Where the named secrets of a text begin and end, in order and apart."""
    done = 0
    for start, word in _stems(text):
        if start < done:
            continue
        found = _after(text, start, word)
        if found is not None and found[0] >= done:
            done = found[1]
            yield found


def speaks_of_secret(name: str) -> bool:
    """Whether the name of a field is one for a secret, perhaps."""
    return _STEM.search(name) is not None


def holds_secret(name: str, value: str) -> bool:
    """Whether a field of that name holds a secret as its value."""
    for stem in _STEM.finditer(name):
        kind, end = _kind(name, stem.start(), stem[0].lower())
        if kind is not None and end == len(name) and _is_secret(value, kind, quoted=True):
            return True
    return False


def _stems(text: str) -> list[tuple[int, str]]:
    """Where the stems stand, in order."""
    low = text.lower()
    if len(low) != len(text):  # a letter whose lower case is two
        return [(m.start(), m[0].lower()) for m in _STEM.finditer(text)]
    found: list[tuple[int, str]] = []
    for stem in STEMS:
        at, long = low.find(stem), len(stem)
        while at >= 0:
            if stem == "passw" or low[at + long : at + long + 1] in _GOES_ON:
                found.append((at, stem))
            at = low.find(stem, at + long)
    return sorted(found)


def _kind(text: str, start: int, word: str) -> tuple[Kind | None, int]:
    """What is named there, and where the name ends."""
    before, end = text[max(0, start - 16) : start], start + len(word)
    if (rest := _REST.get(word)) is not None:
        more = rest.match(text, end)
        if more is None:
            return None, end
        end = more.end()
    if word in _PASSWORD:
        return "password", end
    if word in ("secret", "credential", "authorization"):
        return "key", end + (word == "credential" and text[end : end + 1] in ("s", "S"))
    if word == "key" and not _LOCKED.search(before) and not _QUERY.search(before):
        return None, end
    if word in ("key", "token"):
        return ("key" if _LOCKED.search(before) or _QUERY.search(before) else "token"), end
    return ("bearer" if word == "bearer" else "basic"), end


def _after(text: str, start: int, word: str) -> tuple[int, int] | None:
    kind, end = _kind(text, start, word)
    if kind is None:
        return None
    if kind in ("bearer", "basic"):
        return _credential(text, end, kind)
    between = _BETWEEN.match(text, end) if text[end : end + 1] in _BETWEEN_BEGINS else None
    if between is not None:
        begin = between.end()
    elif text[end : end + 1] == " " and _OPTION.search(text, max(0, start - 40), start):
        begin = end + 1
    else:
        return None
    if (scheme := _SCHEME.match(text, begin)) is not None:
        found = _CREDENTIAL.match(text, scheme.end())
        return found.span("value") if found and not _BLANK.match(found["value"]) else None
    for pattern, quoted in ((_QUOTED, True), (_BARE, False)):
        found = pattern.match(text, begin)
        if found is not None:
            return found.span("value") if _is_secret(found["value"], kind, quoted=quoted) else None
    return None


def _credential(text: str, end: int, kind: Kind) -> tuple[int, int] | None:
    """What follows the word `Bearer` or `Basic`; most that does is prose."""
    if text[end : end + 1] != " ":
        return None
    found = _CREDENTIAL.match(text, end + 1)
    if found is None:
        return None
    value = found["value"]
    if kind == "basic":
        try:
            return found.span() if b":" in base64.b64decode(value, validate=True) else None
        except (binascii.Error, ValueError):
            return None
    plain = not re.search(r"[0-9]", value)
    return None if _BLANK.match(value) or (plain and len(value) < 20) else found.span()


def _is_secret(value: str, kind: Kind, *, quoted: bool) -> bool:
    if _BLANK.match(value):
        return False
    letters, digits = len(re.findall(r"[^\W\d_]", value)), len(re.findall(r"\d", value))
    if quoted and kind != "token" and len(value) >= 16:
        return not _VARIABLE.match(value) or digits > 1
    if not letters or not digits or (not quoted and (_VARIABLE.match(value) or _PART.match(value))):
        return False  # a word, a number, a variable: code says such things all the time
    if kind == "token":
        return len(value) >= 12 and digits > 1 and letters > 3
    return len(value) >= (6 if kind == "password" else 8)
