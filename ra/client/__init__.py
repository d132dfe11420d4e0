"""A typed client of `ra serve`: tasks, streams, runs and sessions. `from ra.client import Client`."""

from ra.client.client import Client, ClientError, RunEvent

__all__ = ["Client", "ClientError", "RunEvent"]
