"""The script of `ra tour`: a small project, the recorded answers of a model, and the comments beside them."""

from ra.core.value import Value

MODEL = "claude-sonnet-5-5"  # a script with this name costs as much as the model

FILES = {
    "cart.py": '''"""The shopping cart."""

from decimal import Decimal


def total(items: list[dict]) -> Decimal:
    """What the customer pays."""
    result = Decimal(0)
    for item in items:
        result += item["price"]
    return result


def count(items: list[dict]) -> int:
    return sum(item["quantity"] for item in items)
''',
}

LOG = "test-run.log"
CHECKS = (
    "the customer pays by card",
    "the order is sent to the right address",
    "the cart is empty again after the order",
    "a guest can order without an account",
    "the voucher is taken off the total",
)


def log() -> str:
    """A long log with one important line."""
    lines = [f"test_{n:03} ok: {CHECKS[n * 7 % len(CHECKS)]}" for n in range(420)]
    lines[137] = "test_137 FAILED: total() returned 9.99 for 3 items, expected 29.97 (cart.py:10, ticket SHOP-482)"
    return "\n".join(lines) + "\n"


ANSWERS: list[dict[str, object]] = [
    {"calls": [{"name": "Read", "args": {"path": "cart.py"}}]},
    {
        "text": "`total` adds one price per line and **ignores the quantity**: three of one thing cost as much as one. "
        "`count` does it right. I can fix `total`.",
        "paceS": 0.02,
    },
    {
        "calls": [
            {
                "name": "Edit",
                "args": {
                    "path": "cart.py",
                    "old_string": '        result += item["price"]\n',
                    "new_string": '        result += item["price"] * item["quantity"]\n',
                },
            }
        ]
    },
    {"text": "Done: each price is now multiplied by its quantity.", "paceS": 0.02},
    {"calls": [{"name": "Read", "args": {"path": LOG}}]},
    {"text": "420 tests ran; 419 passed and one failed. I can look at it whenever you like.", "paceS": 0.02},
    {"calls": [{"name": "Recall", "args": {"query": "FAILED"}}]},
    {
        "text": "It was `test_137`: `total()` returned 9.99, expected 29.97 (cart.py:10, ticket **SHOP-482**). "
        "That is the bug which is fixed now.",
        "paceS": 0.02,
    },
    {
        "text": "Here is the entry for the changelog.\n\n"
        "- The cart multiplies each price by its quantity (SHOP-482).\n"
        "- Three of one thing no longer cost as much as one.\n"
        "- A test covers carts with several of one thing.\n" * 3,
        "paceS": 0.12,
    },
]

ANSWERS_AFTER: list[dict[str, object]] = [
    {
        "text": "I was writing the changelog when the process ended. Here it is, whole:\n\n"
        "- The cart multiplies each price by its quantity (SHOP-482).\n"
        "- Three of one thing no longer cost as much as one.\n"
        "- A test covers carts with several of one thing.",
        "paceS": 0.02,
    },
]


class TourStep(Value, frozen=True):
    """The introduction, the text for the input line, and the keys that answer the following questions."""

    caption: str
    typed: str
    keys: tuple[str, ...] = ()
    killed_after_s: float = 0.0  # the process is killed in the middle of this step


STEPS = (
    TourStep(
        "1 of 6 · Reading. The model may read the project without asking.",
        "What does cart.py do? Is the total right?",
    ),
    TourStep(
        "2 of 6 · Edits. ra shows you every change before it is written. Press y to accept it.",
        "Fix it.",
        keys=("y",),
    ),
    TourStep(
        "3 of 6 · The window is all that the model can see in one call. This log fills a third of it: watch the bar in "
        "the status line.",
        f"Read {LOG} and tell me how the tests went.",
    ),
    TourStep(
        "What fills the window, which part is in the provider's cache, and what it has cost. In the status line, "
        '"hit" is the part of the last call that came from the cache, "warm" is how long the cache lasts.',
        "/context",
    ),
    TourStep(
        "4 of 6 · Compaction hides old messages from the model, so that every later call is smaller and cheaper. ra "
        "shows you the price first: of a call now, of a call afterwards, and of the change itself (the rewrite). "
        "truncate leaves a note in place of the messages, digest an index, summarize a summary. Press y to accept.",
        "/compact",
        keys=("y",),
    ),
    TourStep(
        "5 of 6 · Recall. The log is hidden from the model but not deleted. The model needs one line of it and reads "
        "it back.",
        "Which test failed, and what was the ticket?",
    ),
    TourStep(
        "6 of 6 · A crash. This process is killed (kill -9) in the middle of the next answer.",
        "Write the entry for the changelog.",
        killed_after_s=1.6,
    ),
)

STEPS_AFTER = (
    TourStep("The whole conversation is back, up to where it stopped. Press Enter to continue.", ""),
    TourStep("What a real model would have charged for this conversation, by source:", "/cost"),
)

OPENING = """\
A tour of ra. It takes two minutes and needs no key and no network.

This is the real program, working in a scratch project:
{folder}
Only the model is scripted: its answers were written beforehand.
The prices are those of {model}.
Each prompt is already typed for you: press Enter to send it.
Press Ctrl-D to end the tour at any time.

"""

CLOSING = """
What you have seen:
- Compaction hid the log from the model. A call used to send {before} tokens and now sends {after}. You saw what the \
change would cost before you accepted it.
- Nothing is deleted. To read a text back word for word, type /recall and a few of its words. The model has a tool \
that does the same.
- Each step is on disk before the next one begins, so ra -c continues after any crash.

Next: set ANTHROPIC_API_KEY (or OPENAI_API_KEY, GEMINI_API_KEY), then type ra. /help lists the commands.
"""

MORNING = """
A recorded morning of work, {calls} calls, cost ${nothing:.2f} without compaction. With --compaction auto it costs \
${auto:.2f}. To compare all strategies: ra bench context --trace docs/traces/demo.jsonl
"""
