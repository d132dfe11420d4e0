"""Lists the providers, one row each; a provider's dialect is the module of the same name."""

from ra.core.value import Value


class Vendor(Value, frozen=True):
    """A provider that is called over a wire.

    `home` is its base URL, `model` its default model, `small_model` the one for small side jobs. `keys` are the
    variables that may hold a key, in the order of the vendor's own client; messages name the last. The variable
    `url_key` may hold another base URL. `version` begins the path of every call; `home` ends with it if users' base
    URLs do, too.
    """

    name: str
    home: str
    model: str
    keys: tuple[str, ...]
    url_key: str
    small_model: str = ""
    version: str = "/v1"
    by_key: bool = True  # a key alone selects it

    @property
    def key(self) -> str:
        return self.keys[-1]

    @property
    def complete(self) -> bool:
        """Whether a path in the base URL replaces the version."""
        return self.home.endswith(self.version)


VENDORS = (
    Vendor(
        "anthropic",
        "https://api.anthropic.com",
        model="claude-sonnet-5-5",
        small_model="claude-haiku-5-5",
        keys=("ANTHROPIC_API_KEY",),
        url_key="ANTHROPIC_BASE_URL",
    ),
    Vendor(
        "openai",
        "https://api.openai.com/v1",
        model="gpt-6.1-sol",
        small_model="gpt-6-luna",
        keys=("OPENAI_API_KEY",),
        url_key="OPENAI_BASE_URL",
    ),
    Vendor(
        "openai-chat",
        "https://api.openai.com/v1",
        model="gpt-6.1-sol",
        small_model="gpt-6-luna",
        keys=("OPENAI_API_KEY",),
        url_key="OPENAI_BASE_URL",
        by_key=False,  # the key is OpenAI's, and selects OpenAI's newer dialect
    ),
    Vendor(
        "google",
        "https://generativelanguage.googleapis.com",
        model="gemini-4-argon",
        small_model="gemini-3.5-flash-lite",
        keys=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        url_key="GOOGLE_GEMINI_BASE_URL",
        version="/v1beta",
    ),
)
"""In the order in which ra looks for keys."""

BY_NAME = {vendor.name: vendor for vendor in VENDORS}
IN_PROCESS = ("local", "scripted")  # providers that answer in this process
