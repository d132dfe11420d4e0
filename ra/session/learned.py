"""What an endpoint taught about its window and tokens: read when a session opens, stored for that endpoint alone."""

import msgspec

from ra.core.errors import StoreError
from ra.core.text import clean
from ra.session.journal import Progress
from ra.session.recipe import Recipe, Services
from ra.timeline.store import Endpoint, Learned

BELIEVED_S = 7 * 86_400.0  # a window that an error named: servers may get a larger one later
GUESS_BELIEVED_S = 86_400.0  # a guessed window. After that time the next overflow teaches it again, at no cost
LONGEST_TEXT = 300  # characters of the error text that is stored
NOISE = 0.01  # a smaller relative change of the factor is not worth a write
WORTH_TELLING = 0.9  # report a window below this share of the catalog's


class LearnedEndpoint:
    """The endpoint of a recipe. A store that cannot be written causes a warning; the answer continues."""

    def __init__(self, recipe: Recipe, services: Services, progress: Progress, *, durable: bool, stores: bool) -> None:
        self._endpoint = Endpoint(recipe.provider, services.providers.address(recipe.provider), recipe.model)
        self._info = recipe.info
        self._services = services
        self._progress = progress
        self._stores = stores
        self.learned = self._read(durable=durable)

    @property
    def base_url(self) -> str:
        return self._endpoint.base_url

    def learn_window(self, window: int, text: str, *, guessed: bool = False) -> None:
        if (window, guessed) == (self.learned.window, self.learned.guessed):
            return
        self.learned = msgspec.structs.replace(self.learned, window=window, guessed=guessed)
        if not self._stores:
            return
        short = " ".join(clean(text).replace("\0", "").split())[:LONGEST_TEXT]
        try:
            self._services.store.learn_window(self._endpoint, window, text=short, guessed=guessed)
        except StoreError as error:
            self._warn_of(error)
            return
        self._tell(window, guessed=guessed)

    def learn_factor(self, factor: float) -> None:
        """Store the model's token factor when it changed by more than noise."""
        before = self.learned.factor or self._info.tokens_per_o200k
        if not self._stores or abs(factor - before) <= NOISE * before:
            return
        try:
            self._services.store.learn_factor(self._endpoint, factor)
        except StoreError as error:
            self._warn_of(error)

    def _read(self, *, durable: bool) -> Learned:
        """What was learned and is recent enough. A session in memory can do without the store."""
        try:
            learned = self._services.store.learned(self._endpoint)
        except StoreError as error:
            if durable:
                raise
            self._progress.warn(f"What ra learned about models cannot be read in this run: {error}")
            return Learned()
        age_s = self._services.clock() - learned.window_at
        if learned.window is not None and age_s > (GUESS_BELIEVED_S if learned.guessed else BELIEVED_S):
            return Learned(factor=learned.factor)
        return learned

    def _tell(self, window: int, *, guessed: bool) -> None:
        """Warn of a window smaller than the catalog's: users should know why sessions are cut, and how to undo it."""
        model, catalog = self._endpoint.model, self._info.window
        if catalog and window < catalog * WORTH_TELLING:
            verb = "seems to have" if guessed else "has"
            place = f" at {self._endpoint.base_url}" if self._endpoint.base_url else ""
            self._progress.warn(
                f"{model}{place} {verb} a window of {window:,} tokens (the catalog says {catalog:,}). "
                f"This is remembered for that address; `ra models forget {model}` drops it."
            )

    def _warn_of(self, error: StoreError) -> None:
        self._progress.warn(f"What ra learned about {self._endpoint.model} could not be stored: {error}")
