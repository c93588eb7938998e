"""Whose message is next: owners take turns, so that a flood of one owner's messages costs another little."""

from collections import OrderedDict, deque

from evalstopd.ports import Message

_Owner = tuple[bool, int]


class Turns:
    """At most `most` waiting messages: owners are served in turns, each one's own messages in order.

    Who was served last comes after all who wait, those that came meanwhile too. Not safe for several threads.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._lines: OrderedDict[_Owner, deque[Message]] = OrderedDict()
        self._waiting = 0
        self._served: _Owner | None = None

    def __len__(self) -> int:
        """Return how many messages wait."""
        return self._waiting

    def put(self, message: Message) -> Message | None:
        """Let a message wait, and return the one that has no place: the newest of who then has most waiting.

        Among those with equally many it is the new one, so that none is given up for an owner with no fewer.
        """
        own = _owner(message)
        self._lines.setdefault(own, deque()).append(message)
        self._waiting += 1
        if self._waiting <= self.most:
            return None
        return self._out(max(self._lines, key=lambda each: (len(self._lines[each]), each == own)), newest=True)

    def take(self) -> Message | None:
        """Return the message that is next, which waits no longer; None where none waits."""
        if self._served is not None and self._served in self._lines:
            self._lines.move_to_end(self._served)
        if not self._lines:
            return None
        self._served = next(iter(self._lines))
        return self._out(self._served, newest=False)

    def _out(self, owner: _Owner, *, newest: bool) -> Message:
        line = self._lines[owner]
        message = line.pop() if newest else line.popleft()
        self._waiting -= 1
        if not line:
            del self._lines[owner]
        return message


def _owner(message: Message) -> _Owner:
    """Return whose message it is: a user's by number, for names may be written in several ways; the admin is one."""
    return message.for_admin, message.key.uid
