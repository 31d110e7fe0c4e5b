"""How much of a text fits into so many tokens, without a tokenizer: an estimate that errs on the high side.

The rule was fitted to Qwen's byte-level BPE (151,643 merges) and is checked against it where its vocabulary is at hand
(`tests/repl/test_preview.py`).  Per piece of text:

- a run of ASCII letters: 1, plus 0.6 for each pair of neighbours that is rare in English, plus 1 for each 6 letters
  beyond 8, rounded up;
- a word that descriptions themselves use: 1;
- a digit, a punctuation mark, a run of blanks (but for one blank before a word): 1 each;
- any other character: as many as it has bytes in UTF-8, which byte-level tokenizers never exceed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

_PIECES = re.compile(r" ?([A-Za-z]+)|( +)|([\x00-\x7f])|([^\x00-\x7f])")
_COMMON = (
    "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri "
    "ro ic ne ea ra ce li ch ll be ma si om ur ca el ta la ns di fo ho pe ec pr no ct us ac ot il tr ly nc et ut "
    "ss so rs un lo wa ge ie wh ee wi em ad ol rt po we na ul ni ts mo ow pa im mi ai sh ir su id os iv ia am fi "
    "ci vi pl ig tu ev ld ry mp fe bl ab gh ty op wo sa ay ex ke ui fr oo ag ey ap gr if bo sp rd do uc bu ei ov "
    "by rm ep tt oc fa ef cu rn sc gi da yo cr cl du ga qu ue ff ba ey ls va um pp ua up lu go ht ru ug ds lt pi "
    "rc rr eg au ck ew mu br bi pt"
)
_PAIRS = frozenset(_COMMON.split())


#: One token each, with or without a blank before: what descriptions of a context are made of.
_OURS = (
    "The the variable context exists already do not assign it its a an of in str bytes list tuple dict set item items "
    "entries entry keys key characters lines rows columns starts with first files file text texts by relative path "
    "shape empty and is read when used has with code such as already Read"
)
_WHOLE = frozenset(_OURS.split())


def estimate_tokens(text: str) -> int:
    """About how many tokens a text takes; rather too many than too few."""
    return sum(cost for cost, _ in _costs(text))


def first_tokens(text: str, tokens: int) -> str:
    """The longest beginning of a text that is estimated at no more than so many tokens; words are cut as need be."""
    left = tokens
    for cost, match in _costs(text):
        left -= cost
        if left < 0:
            start = match.start()
            for end in range(match.end() - 1, start, -1):
                if estimate_tokens(text[start:end]) <= left + cost:
                    return text[:end]
            return text[:start]
    return text


def whole_items(head: str, items: Iterable[str], tokens: int) -> str:
    """`head` and as many whole items as so many tokens allow, with `...` where there are more.

    An item that does not fit as the first is cut; where none of it fits, the result is empty.
    """
    said: list[str] = []
    for item in items:
        longer = f"{said[-1]}, {item}" if said else head + item
        if estimate_tokens(longer) > tokens:
            break
        said.append(longer)
    else:
        return said[-1] if said else ""
    if not said:
        cut = first_tokens(longer, tokens)
        return cut if len(cut) > len(head) else ""
    return next((more for text in reversed(said) if estimate_tokens(more := f"{text}, ...") <= tokens), said[0])


def _costs(text: str) -> list[tuple[int, re.Match[str]]]:
    return [(_cost(match), match) for match in _PIECES.finditer(text)]


def _cost(match: re.Match[str]) -> int:
    word, blanks, _, other = match.groups()
    if word in _WHOLE:
        return 1
    if word:
        low = word[0].lower() + word[1:]  # a capital elsewhere makes a pair rare
        rare = sum(low[i : i + 2] not in _PAIRS for i in range(len(low) - 1))
        return math.ceil(1 + 0.6 * rare + max(0, len(word) - 8) / 6)
    if other:
        return len(other.encode("utf-8", "surrogatepass"))
    return 1 if not blanks else 1 + len(blanks) // 16
