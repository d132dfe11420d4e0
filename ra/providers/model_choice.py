"""Resolves a name to a provider and a model: short names, `provider/model`, families of vendors, near misses."""

import re
from collections.abc import Mapping, Sequence

from ra.core.errors import UserError
from ra.core.model_names import stems_of
from ra.core.value import Value
from ra.providers import catalog
from ra.providers.account import Env, base_url, has_key
from ra.providers.settings import ProviderName, ProviderSettings
from ra.providers.vendors import BY_NAME, IN_PROCESS

FAMILIES: dict[str, tuple[ProviderName, str]] = {
    "fable": ("anthropic", "claude-fable-"),
    "opus": ("anthropic", "claude-opus-"),
    "sonnet": ("anthropic", "claude-sonnet-"),
    "haiku": ("anthropic", "claude-haiku-"),
    "gpt": ("openai", "gpt-"),
    "gemini": ("google", "gemini-"),
    "flash": ("google", "gemini-"),
}
"""Short names: the vendor, and the prefix of the family's ids."""

VENDOR_OF = {"claude": "anthropic", "gpt": "openai", "chatgpt": "openai", "gemini": "google"}
"""The vendor by the first word of an id, for models that are newer than the catalog."""

ANY_NAME = ("openai-chat", "scripted")  # a compatible server, or a file: any name may be right there

CLOSE = 0.8  # lowest ratio of difflib between two names without digits


class ModelChoice(Value, frozen=True):
    """A model and its provider; None means the provider in force."""

    model: str
    provider: ProviderName | None = None


class UnknownModel(UserError):
    """A name that resembles one in the catalog. `suggestion` is the probably intended name."""

    def __init__(self, name: str, suggestion: str) -> None:
        super().__init__(
            f"There is no model {name!r} in the catalog; did you mean {suggestion}? Nothing was sent. "
            f"To use the name as it is, add the provider: -m PROVIDER/{name}"
        )
        self.name = name
        self.suggestion = suggestion


def newest(short: str) -> str:
    """The newest model of a family; of two with the same version, the first in the catalog."""
    provider, prefix = FAMILIES[short]
    word = short if short not in prefix else ""  # flash: only ids with this word
    ids = [
        row.info.id
        for row in catalog.rows()
        if row.provider == provider and row.info.id.startswith(prefix) and word in ("", *row.info.id.split("-"))
    ]
    return max(ids, key=version)  # of equal versions, max returns the first


def version(id: str) -> tuple[int, ...]:
    """The numbers of an id, for comparison: claude-opus-4-6 is older than claude-opus-5."""
    return tuple(int(number) for number in re.findall(r"(?<![a-z\d])\d{1,2}(?![a-z\d])", id))


def named(name: str) -> ModelChoice:
    """The meaning of a name by itself; without a provider if the catalog does not know it."""
    lower = name.lower()
    if lower in FAMILIES:
        return ModelChoice(newest(lower), FAMILIES[lower][0])
    owner, slash, model = name.partition("/")
    if slash and model and owner.lower() in (*BY_NAME, *IN_PROCESS):
        model = newest(model.lower()) if model.lower() in FAMILIES else model
        return ModelChoice(model, owner.lower())
    if lower.endswith(".gguf"):
        return ModelChoice(name, "local")
    provider_of = {row.info.id: row.provider for row in catalog.rows()}
    provider = next((provider_of[stem] for stem in stems_of(lower) if stem in provider_of), None)
    if provider is None:
        provider = VENDOR_OF.get(re.split(r"[-\d.]", lower, maxsplit=1)[0])
    # Open models have no vendor: the provider in force serves them.
    return ModelChoice(name, None if provider == "openai-chat" else provider)


def choose(
    name: str,
    in_force: ProviderName,
    settings: Mapping[str, ProviderSettings],
    env: Env,
    *,
    asked_for: bool,
) -> ModelChoice:
    """The provider of a name, `in_force` by default, and the name in that vendor's spelling.

    `asked_for`: the user named the provider in force together with the model. Raises UnknownModel for a near miss of a
    name in the catalog.
    """
    choice = _addressed(name, in_force, settings, env, asked_for=asked_for)
    if choice.provider is None or serves_any(choice.provider, settings, env):
        return choice  # a gateway has its own spelling
    return ModelChoice(_as_the_vendor_writes(choice.model), choice.provider)


def _addressed(
    name: str,
    in_force: ProviderName,
    settings: Mapping[str, ProviderSettings],
    env: Env,
    *,
    asked_for: bool,
) -> ModelChoice:
    choice = named(name)
    spelled = "/" in name and choice.model != name  # provider/model
    if not spelled and in_force not in ANY_NAME:
        _check(choice.model)
    if choice.provider == in_force:
        return choice
    gateway = serves_any(in_force, settings, env)
    if asked_for or (gateway and not _reachable(choice.provider, settings, env)):
        # A gateway has names of its own, and `anthropic/claude-opus-5` may be one of them.
        return ModelChoice(name if spelled else choice.model, in_force)
    return choice if choice.provider is not None else ModelChoice(choice.model, in_force)


def _as_the_vendor_writes(model: str) -> str:
    """A name in the catalog in its vendor's spelling: `Claude-Opus-4.5` is claude-opus-4-5. Others stay unchanged."""
    ids = {row.info.id for row in catalog.rows()}
    lower = model.lower()
    dashed = lower.replace(".", "-") if lower.startswith("claude") else lower
    return dashed if any(stem in ids for stem in stems_of(dashed)) and "/" not in model else model


def _check(model: str) -> None:
    if suggestion := near_miss(model):
        raise UnknownModel(model, suggestion)


def near_miss(name: str) -> str:
    """The name in the catalog that this one misspells; "" for a known name and for one that may be new.

    Only letters and separators are corrected, never numbers: `gpt-5.9` may be newer than the catalog.
    """
    ids = [row.info.id for row in catalog.rows()]
    lower = name.lower()
    if misnamed := _of_a_vendor(lower):
        return misnamed
    if any(stem in ids for stem in stems_of(lower)) or "/" in name or lower.startswith("ft:"):
        return ""
    if versioned := _family_and_version(lower, ids):
        return versioned
    same_parts = {_parts(id): id for id in reversed(ids)}
    same_characters = {_bare(id): id for id in reversed(ids)}
    if id := same_parts.get(_parts(lower)) or same_characters.get(_bare(lower)):
        return id
    if not re.search(r"\d", lower):
        return _family(lower)
    letters = _letters(lower)
    if not letters or lower.endswith(".gguf") or any(_letters(id) == letters for id in ids):
        return ""  # a file, or a correct family with a new number
    from difflib import SequenceMatcher  # start-up time: only for an unknown name

    numbers = re.findall(r"\d+", lower)
    candidates = [id for id in ids if re.findall(r"\d+", id) == numbers] or ids
    ratios = [SequenceMatcher(None, letters, _letters(id)).ratio() for id in candidates]
    best = max(ratios)
    return candidates[ratios.index(best)] if best >= CLOSE else ""


def _of_a_vendor(name: str) -> str:
    """`provider/model` for a name with another separator, an alias or a misspelt provider: `antropic/claude-opus-5`."""
    owner, sign, model = re.match(r"([a-z-]+)([/:]?)(.*)", name + " ").groups()  # type: ignore[union-attr]  # always matches
    if not sign or not model.strip() or (sign == "/" and owner in (*BY_NAME, *IN_PROCESS)):
        return ""
    from difflib import get_close_matches  # start-up time: only for a name with an unknown provider

    close = [] if sign == ":" else get_close_matches(owner, BY_NAME, n=1, cutoff=0.85)
    alias = "" if sign == ":" else VENDOR_OF.get(owner, "")  # in gpt:5 the 5 is a tag, as with open models
    vendor = alias or (owner if owner in BY_NAME else next(iter(close), ""))
    return f"{vendor}/{model.strip()}" if vendor else ""


def _family_and_version(name: str, ids: Sequence[str]) -> str:
    """The id for a short name with a version: `opus-4.5` is claude-opus-4-5; `opus-9` may be newer than the catalog."""
    match = re.fullmatch(r"(?:claude[- ]?)?([a-z]+)[- ]?(\d+(?:[-. ]\d+)*)", name)
    short = match[1] if match else ""
    if match is None or not (short == "claude" or FAMILIES.get(short, ("", ""))[0] == "anthropic"):
        return ""
    numbers = tuple(int(number) for number in re.findall(r"\d+", match[2]))
    if short == "claude":  # claude-4: its newest sonnet
        sonnets = [id for id in ids if id.startswith("claude-sonnet-")]
        return next((id for id in sonnets if version(id)[: len(numbers)] == numbers), "")
    id = next((id for id in ids if short in id.split("-") and version(id) == numbers), "")
    return id or ("" if name.startswith("claude") else f"claude-{short}-{'-'.join(map(str, numbers))}")


def _family(name: str) -> str:
    """The newest model of the family that a name without numbers resembles: `claude-opus`, `sonet`, `chatgpt`."""
    from difflib import get_close_matches  # start-up time: only for an unknown name

    names = {prefix.strip("-"): short for short, (_, prefix) in FAMILIES.items()}
    names |= {short: short for short in FAMILIES} | {"claude": "sonnet", "chatgpt": "gpt", "gemini-flash": "flash"}
    names |= {"anthropic": "sonnet", "google": "gemini", "openai": "gpt"}  # vendors
    matches = get_close_matches(name, names, n=1, cutoff=0.7)
    return newest(names[matches[0]]) if matches else ""


def _parts(name: str) -> tuple[str, ...]:
    """The words and numbers of a name, sorted: gemini-flash-2.5 equals gemini-2.5-flash."""
    return tuple(sorted(re.findall(r"[a-z]+|\d+", name)))


def _bare(name: str) -> str:
    return re.sub(r"[^a-z\d]", "", name)


def _letters(name: str) -> str:
    return re.sub(r"[^a-z]", "", name)


def serves_any(provider: ProviderName, settings: Mapping[str, ProviderSettings], env: Env) -> bool:
    """Whether this is a gateway, a compatible server or a script, whose models may have any name."""
    if provider in IN_PROCESS or provider in ANY_NAME:
        return provider in ANY_NAME
    return bool(base_url(provider, settings.get(provider, ProviderSettings()), env))


def _reachable(provider: ProviderName | None, settings: Mapping[str, ProviderSettings], env: Env) -> bool:
    if provider is None or provider in IN_PROCESS:
        return provider is not None
    return has_key(provider, settings.get(provider, ProviderSettings()), env)
