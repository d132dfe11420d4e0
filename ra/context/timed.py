"""What is a message with its moment? What several sources are merged by."""

from ra.core.messages import Message
from ra.core.value import Value


class TimestampedMessage(Value, frozen=True):
    """A message with its moment (timeline position or time), so that several sources can be merged in order."""

    message: Message
    at: float | None = None
