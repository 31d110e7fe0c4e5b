"""Cut texts so that they fit into a line, where a token is taken for three bytes of UTF-8."""

from __future__ import annotations

from collections.abc import Iterable

BYTES = 3  # of a token


def width(text: str) -> int:
    """Bytes in UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))


def beginning(text: str, room: int) -> str:
    """The longest beginning of a text of at most so many bytes."""
    return text if width(text) <= room else text.encode("utf-8", "replace")[:room].decode("utf-8", "ignore")


def whole_items(head: str, items: Iterable[str], room: int) -> str:
    """`head` and as many whole items as so many bytes allow, with `...` where there are more.

    An item that does not fit as the first is cut; where none of it fits, the result is empty.
    """
    said: list[str] = []
    for item in items:
        longer = f"{said[-1]}, {item}" if said else head + item
        if width(longer) > room:
            break
        said.append(longer)
    else:
        return said[-1] if said else ""
    if not said:
        cut = beginning(longer, room)
        return cut if len(cut) > len(head) else ""
    return next((more for text in reversed(said) if width(more := f"{text}, ...") <= room), said[0])
