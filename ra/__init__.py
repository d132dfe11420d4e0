"""ra: a command-line agent that lets you see, budget and steer every token that the model sees."""

__version__ = "0.1.0"
