"""Conversations of a session: each request goes on from one of them, or begins one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rlm_loop.agents.meter import Meter
from rlm_loop.messages import Reply, common
from rlm_loop.meter.causes import LEAST, Causes, own_words, written
from rlm_loop.meter.request import RequestMessage

_Said = tuple[str, tuple[str | None, ...]]
_RECENT = 64  # conversations looked at where none begins alike


class MeteredConversation:
    """Requests that grow from each other.  `turn` counts its replies; it is `busy` while a request is under way."""

    def __init__(self, metered: Meter, known: Mapping[str, Sequence[str]] | None) -> None:
        self.metered = metered
        self.causes = Causes(known)
        self.said: tuple[RequestMessage, ...] = ()
        self.reply: Reply | None = None
        self.turn = 0
        self.busy = False
        self.ended = 0.0  # when its last reply was there
        self.began = self.turn_began = 0.0
        self.reply_open: Reply | None = None  # the last one, until a later request shows what came of it
        self.opening: tuple[RequestMessage, ...] = ()
        self.task = ""
        self.wrote = set[_Said]()  # the last reply, as later requests have it
        self._lines: Mapping[str, int] | None = None

    def asked(self, said: Sequence[RequestMessage]) -> None:
        """Its latest request is this one."""
        self.opening, self.said = opening(said), tuple(said)
        self.task = own_words(self.opening[-1].text)

    def replied(self, reply: Reply) -> None:
        """A reply came: the turn is done."""
        self.turn += 1
        self.reply = self.reply_open = reply
        self.causes.wrote(reply)
        self.wrote = _replies([RequestMessage("assistant", reply.text, reply.tool_calls)])
        self._lines = None

    def free(self, arrived: float) -> bool:
        """Return whether it waited for no reply then."""
        return not self.busy and self.ended <= arrived

    def echoed(self, lines: Mapping[str, int]) -> bool:
        """Return whether a request has a line of the last reply more often than the one before it."""
        if self.reply is None:
            return False
        if self._lines is None:
            asked = _counted(self.said, self.opening)
            self._lines = {line: asked[line] for line in written(self.reply) if len(line) >= LEAST}
        return any(lines.get(line, 0) > before for line, before in self._lines.items())


def _counted(said: Sequence[RequestMessage], begun: Sequence[RequestMessage]) -> Counter[str]:
    """Count each line of a request from the end of its opening on."""
    return Counter(line.strip() for one in said[len(begun) - 1 :] for line in one.text.splitlines())


def opening(said: Sequence[RequestMessage]) -> tuple[RequestMessage, ...]:
    """The messages up to the first user message that is more than blocks of a harness, that one included."""
    users = [i for i, one in enumerate(said) if one.role == "user"]
    first = next((i for i in users if own_words(said[i].text)), users[0] if users else len(said) - 1)
    return tuple(said[: first + 1])


def _replies(said: Sequence[RequestMessage]) -> set[_Said]:
    """Return what the assistant said: each text, and the ids of its calls."""
    ours = [one for one in said if one.role == "assistant" and (one.text.strip() or one.tool_calls)]
    return {(one.text.strip(), tuple(call.id for call in one.tool_calls)) for one in ours}


class Conversations:
    """The conversations of one session, oldest first.

    A request goes on from the conversation with which it shares the longest beginning, the first user message at
    least; else from one with the same task of whose replies it has one (a harness that changes its reminders or its
    system text); else from one with the same system text of whose last reply it has a line once more than before
    (frameworks that write their history anew into one message).  One that is waiting for its reply is never gone on
    from: what is asked beside it is a conversation of its own.  Nor is one that has replies by a request that has none:
    the same task is begun again.
    """

    def __init__(self) -> None:
        self.all: list[MeteredConversation] = []

    def find(self, said: Sequence[RequestMessage], arrived: float) -> MeteredConversation | None:
        """The conversation that a request which arrived then goes on from, `None` for a new one."""
        begun, again = opening(said), _replies(said)
        same = [c for c in self.all if c.opening == begun]
        alike = [c for c in same if c.free(arrived) and (again or not _replies(c.said))]
        if alike:
            return max(reversed(alike), key=lambda c: common(c.said, said))
        task = own_words(begun[-1].text)
        recent = [c for c in reversed(self.all[-_RECENT:]) if c.free(arrived)]
        for conversation in recent if again else ():
            if again & (_replies(conversation.said) | conversation.wrote) and conversation.task == task:
                return conversation
        lines = _counted(said, begun)
        return next((c for c in recent if c.opening[:-1] == begun[:-1] and c.echoed(lines)), None)
