"""Creates the vendor's client for an account; each SDK is imported only if it is needed."""

from typing import Any

from ra.providers.account import Account

CONNECT_S = 15.0


def make(account: Account) -> Any:
    """The vendor's client, without its own retries, and without redirects, which would pass on the key."""
    if account.provider == "google":
        return _google(account)
    if account.provider == "anthropic":
        return _anthropic(account)
    return _openai(account)


def _anthropic(account: Account) -> Any:
    import anthropic

    shared = _shared(account, anthropic.DefaultAsyncHttpxClient)
    match account.platform:
        case "bedrock":
            return anthropic.AsyncAnthropicBedrock(api_key=account.api_key or None, **shared)
        case "vertex":
            return anthropic.AsyncAnthropicVertex(**shared)
        case "foundry":
            return anthropic.AsyncAnthropicFoundry(api_key=account.api_key or None, **shared)
        case _:
            if account.auth_token:
                return anthropic.AsyncAnthropic(auth_token=account.auth_token, **shared)
            # Even a server without keys gets one, or the client would look for credentials elsewhere.
            return anthropic.AsyncAnthropic(api_key=account.api_key or "none", **shared)


def _openai(account: Account) -> Any:
    import openai

    shared = _shared(account, openai.DefaultAsyncHttpxClient)
    if account.platform == "azure":
        endpoint = shared.pop("base_url")
        return openai.AsyncAzureOpenAI(api_key=account.api_key or None, azure_endpoint=endpoint, **shared)
    return openai.AsyncOpenAI(api_key=account.api_key or "none", **shared)


def _google(account: Account) -> Any:
    from google import genai
    from google.genai import types

    options = types.HttpOptions(
        base_url=account.base_url or None,
        api_version="v1beta" if account.platform == "plain" else None,  # as in the dialect
        headers=account.headers,
        timeout=int(account.timeout_s * 1000),
        retry_options=types.HttpRetryOptions(attempts=1),
        async_client_args={"follow_redirects": False},
    )
    if account.platform == "vertex":
        return genai.Client(vertexai=True, http_options=options)
    return genai.Client(vertexai=False, api_key=account.api_key or "none", http_options=options)


def _shared(account: Account, http_client: Any) -> dict[str, Any]:
    import httpx2

    timeout = httpx2.Timeout(account.timeout_s, connect=CONNECT_S)
    return {
        "base_url": account.base_url or None,
        "default_headers": account.headers,
        "max_retries": 0,
        "timeout": timeout,
        "http_client": http_client(follow_redirects=False, timeout=timeout),
    }
