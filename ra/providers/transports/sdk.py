"""Carries requests with the vendors' own clients, for credentials that only they support: Bedrock, Vertex, Azure.

Importing them takes 0.6 to 1.5 s, so it happens with the first call. They send exactly our body, and their parsed
events are turned back into the dicts that the server sent, so that dialects see no difference.
"""

import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from ra.core.errors import AuthFailed, BadStream, ProviderError, Unavailable, UserError
from ra.core.model import Request
from ra.core.value import JsonObject, encode
from ra.providers.errors import failure
from ra.providers.settings import ProviderName
from ra.providers.transports.route import CERTIFICATES
from ra.providers.transports.sse import decode
from ra.providers.wire import SENT, Dialect

Events = AsyncGenerator[JsonObject, None]


class SdkTransport:
    """Sends through a client that `make` creates on first use."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._client: Any = None  # one of a dozen classes without a common type

    async def events(self, dialect: Dialect, request: Request, body: JsonObject) -> Events:
        if dialect.name not in _SENDERS:
            raise UserError(f"No vendor's client speaks {dialect.name}; set agent.transport to http or auto.")
        if self._client is None:
            self._client = self._made()
        yield SENT  # approximately: the clients do not report the moment
        try:
            async with aclosing(_SENDERS[dialect.name](self._client, request, body)) as events:
                async for event in events:
                    yield event
        except ImportError as error:  # signing for AWS needs boto3, which is imported only during the call
            raise _missing(error) from error

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await (client.aio.aclose() if hasattr(client, "aio") else client.close())

    def _made(self) -> Any:
        try:
            return self._make()
        except ImportError as error:
            raise _missing(error) from error
        except Exception as error:  # each vendor raises its own types for a missing setting
            raise UserError(f"The vendor's client cannot be set up: {error}") from error


async def _anthropic(client: Any, request: Request, body: JsonObject) -> Events:
    import anthropic
    import google.auth.exceptions
    import httpx2

    begun = False
    try:
        async with await client.messages.create(**body) as stream:
            begun = True
            if _is_json(stream.response):
                if isinstance(document := decode(await stream.response.aread()), dict):
                    yield document
                return
            async for event in stream:
                yield event.to_dict(mode="json", warnings=False)
    except anthropic.APIStatusError as error:
        raise _refused(error, "anthropic") from error
    except anthropic.APIConnectionError as error:
        raise _unreachable(error) from error
    except (httpx2.HTTPError, ValueError) as error:
        raise _cut(error) from error
    except (anthropic.AnthropicError, google.auth.exceptions.GoogleAuthError) as error:
        raise AuthFailed(str(error)) from error
    except RuntimeError as error:  # from Bedrock and Vertex, if credentials or the project are missing
        if begun:
            raise
        raise AuthFailed(str(error)) from error


async def _openai(client: Any, request: Request, body: JsonObject) -> Events:
    async with aclosing(_openai_events(client.responses.create, body, "openai")) as events:
        async for event in events:
            yield event


async def _openai_chat(client: Any, request: Request, body: JsonObject) -> Events:
    async with aclosing(_openai_events(client.chat.completions.create, body, "openai-chat")) as events:
        async for event in events:
            yield event


async def _openai_events(create: Callable[..., Any], body: JsonObject, provider: ProviderName) -> Events:
    import httpx2
    import openai

    begun = False
    try:
        async with await create(**body) as stream:
            begun = True
            if _is_json(stream.response):
                if isinstance(document := decode(await stream.response.aread()), dict):
                    yield document
                return
            async for event in stream:
                yield event.to_dict(mode="json", warnings=False)
    except openai.APIStatusError as error:
        raise _refused(error, provider) from error
    except openai.APIConnectionError as error:
        raise (_cut(error) if begun else _unreachable(error)) from error
    except openai.APIError as error:  # an error event inside the stream
        raise failure(0, {}, {"error": error.body}, provider=provider) from error
    except (httpx2.HTTPError, ValueError) as error:
        raise _cut(error) from error
    except openai.OpenAIError as error:
        raise AuthFailed(str(error)) from error


def _is_json(response: Any) -> bool:
    """Whether the server answered without streaming: the clients would find no events in that."""
    return "json" in response.headers.get("content-type", "")


async def _google(client: Any, request: Request, body: JsonObject) -> Events:
    import google.auth.exceptions
    import httpx2
    from google.genai import errors, types

    # As JSON, because the SDK decodes base64 only from JSON.
    contents = [types.Content.model_validate_json(encode(content)) for content in body["contents"]]
    settings = {name: value for name, value in body.items() if name not in ("contents", "generationConfig")}
    config = types.GenerateContentConfig.model_validate_json(encode(settings | body.get("generationConfig", {})))
    config.automatic_function_calling = types.AutomaticFunctionCallingConfig(disable=True)
    config.automatic_continuation = False
    begun = False
    try:
        stream = await client.aio.models.generate_content_stream(model=request.model, contents=contents, config=config)
        async with aclosing(stream):
            async for chunk in stream:
                begun = True
                yield _as_sent(chunk.model_dump(mode="json", by_alias=True, exclude_none=True))
    except errors.APIError as error:
        headers = dict(error.response.headers) if error.response is not None else {}
        raise failure(error.code or 0, headers, error.details, provider="google") from error
    except httpx2.HTTPError as error:
        raise (_cut(error) if begun else _unreachable(error)) from error
    except (ValueError, errors.UnknownApiResponseError) as error:
        raise _cut(error) from error
    except google.auth.exceptions.GoogleAuthError as error:
        raise AuthFailed(str(error)) from error


def _as_sent(chunk: JsonObject) -> JsonObject:
    """The chunk with signatures in the API's base64 alphabet: the SDK writes the URL-safe one."""
    for candidate in chunk.get("candidates", ()):
        for part in candidate.get("content", {}).get("parts", ()):
            if "thoughtSignature" in part:
                part["thoughtSignature"] = part["thoughtSignature"].replace("-", "+").replace("_", "/")
    return chunk


_SENDERS: dict[str, Callable[[Any, Request, JsonObject], Events]] = {
    "anthropic": _anthropic,
    "openai": _openai,
    "openai-chat": _openai_chat,
    "google": _google,
}


def _refused(error: Any, provider: ProviderName) -> ProviderError:
    """The error for a status error of the Anthropic and OpenAI clients. Inside a stream, its status is 200."""
    body = error.body if isinstance(error.body, dict) else (error.response.text if error.response.is_closed else "")
    return failure(error.response.status_code, dict(error.response.headers), body, provider=provider)


def _missing(error: ImportError) -> UserError:
    package = error.name or "it"
    return UserError(f"This model needs a package that is not installed: {error}. pip install {package}")


def _unreachable(error: Exception) -> ProviderError:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            # A retry would fail in the same way.
            return ProviderError(
                f"The certificate of the provider is not trusted: {cause.verify_message}. {CERTIFICATES}"
            )
        cause = cause.__cause__ or cause.__context__
    return Unavailable(f"No connection to the provider: {error.__cause__ or error}.")


def _cut(error: Exception) -> BadStream:
    return BadStream(f"The answer broke off or could not be read: {error.__cause__ or error}.")
