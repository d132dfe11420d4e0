"""How is a request body shown so that a person can read it and a byte that changes is seen?"""

from ra.core.value import JsonObject, encode
from ra.providers.dialects import dialect as dialect_of
from tests.providers.cases import Case


def lines(dialect: str, case: Case) -> list[str]:
    return shown(dialect_of(dialect).body(case.request(dialect), case.info))


def shown(body: JsonObject) -> list[str]:
    """One line for each field, and for each item of a list, as the JSON that goes out."""
    found: list[str] = []
    for key, value in body.items():
        if isinstance(value, list):
            found += [f"{key}[{i}] {encode(item).decode()}" for i, item in enumerate(value)]
        else:
            found.append(f"{key} {encode(value).decode()}")
    return found
