"""The small model that plans a turn: connected when the first turn is planned."""

from ra.core.ports import Provider
from ra.providers.retry import Retries
from ra.providers.settings import ProviderName
from ra.providers.vendors import IN_PROCESS
from ra.session.recipe import ProviderFactory


class PlannerModel:
    """`model` plans for a session that `answering` of this provider answers.

    Its connection does not try again. A model that runs in this process is not loaded twice.
    """

    def __init__(self, providers: ProviderFactory, name: ProviderName, model: str, *, answering: str) -> None:
        self.model = model
        self._name = name
        self._asked = answering
        self._providers = providers
        self._provider: Provider | None = None

    def provider(self) -> Provider | None:
        if self._name in IN_PROCESS:
            return None
        if self._provider is None:
            self._provider = self._providers.connect(self._name, self._asked, retries=Retries(tries=1))
        return self._provider

    async def close(self) -> None:
        if self._provider is not None:
            provider, self._provider = self._provider, None
            await provider.close()
