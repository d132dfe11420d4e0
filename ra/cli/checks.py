"""Checks everything that a run needs, with one function for each item of `ra doctor`."""

import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from ra.app import App, open_prices, open_store
from ra.cli.output import Streams
from ra.config import paths
from ra.config.discovered import DiscoveredFiles
from ra.config.load import Resolved
from ra.config.options import Options
from ra.core.errors import RaError, UserError
from ra.core.value import Value
from ra.providers import account, connect, local, local_weights
from ra.providers.settings import ProviderName, ProviderSettings
from ra.providers.vendors import IN_PROCESS, VENDORS
from ra.timeline.sqlite import SqliteStore
from ra.tools.mcp.listing import Shelf, problem
from ra.tools.policy.paths import Project
from ra.tools.sandbox.find import find_sandbox

ROOM_BYTES = 200_000_000
CHECK_S = 5.0  # to look for damage in a store; a huge one is looked at in part
Env = Mapping[str, str]


class Check(Value, frozen=True):
    """`fix` is what to do about it; a verdict of ok needs none."""

    name: str
    verdict: Literal["ok", "warning", "problem"]
    words: str
    fix: str = ""
    details: tuple[str, ...] = ()


def config(resolved: Resolved) -> Iterator[Check]:
    files = ", ".join(str(file) for file in resolved.files)
    yield Check("config", "ok", files or "no files; the defaults apply")
    for note in resolved.notes:
        foreign = "project's file" in note
        fix = "move the key into your own file: `ra config path` says where it is" if foreign else "fix that file"
        yield Check("config", "warning", note, fix)


def files(resolved: Resolved, env: Env) -> Iterator[Check]:
    """Instruction files, skills and commands: which are used, and which are ignored and why."""
    discovered = DiscoveredFiles(resolved, env)
    used = [section.name for section in (*discovered.instructions.sections, *discovered.skill_sections())]
    slash = [f"/{name}" for name, _ in discovered.offers]
    names = ", ".join([*(name for name in used if name != "skills"), *slash])
    yield Check("files", "ok", names or "no instruction files, skills or commands")
    if ignored := tuple(f"{item.name}: {item.why}" for item in discovered.ignored()):
        yield Check("files", "ok", f"{len(ignored)} not used", details=ignored)


def trust(resolved: Resolved) -> Iterator[Check]:
    if resolved.untrusted or resolved.waiting:
        lines = tuple(item.line for item in (*resolved.untrusted, *resolved.waiting))
        fix = "look at it, then run `ra trust`; --ignore-untrusted runs without it"
        yield Check(
            "trust", "warning", f"{len(lines)} things in this project are not trusted and do not run", fix, lines
        )
    else:
        words = (
            f"{len(resolved.items)} things in this project are trusted" if resolved.items else "nothing to trust here"
        )
        yield Check("trust", "ok", words)


def keys(resolved: Resolved, env: Env) -> Iterator[Check]:
    """Shows no key, and tries none: that would cost money."""
    vendors: list[str] = []
    for vendor in VENDORS:
        name = vendor.name
        settings = resolved.config.app.providers.get(name, ProviderSettings())
        if not vendor.by_key or not account.has_key(name, settings, env):
            continue
        try:
            account.account(name, settings, env)
            vendors.append(name)
        except UserError as error:
            yield Check("keys", "problem", str(error), f"set {vendor.key} anew")
    if vendors:
        yield Check("keys", "ok", f"for {', '.join(vendors)}")
    else:
        yield Check("keys", "ok", "no key is set; a local model or your own server needs none")


def model(resolved: Resolved, env: Env) -> Iterator[Check]:
    agent, providers = resolved.config.agent, resolved.config.app.providers
    try:
        name, model_name = App(resolved, Options(), env=env).chosen_model
        settings = providers.get(name, ProviderSettings())
        connect.connect(name, model_name, settings, env, transport=agent.transport, data_dir=resolved.data_dir)
        info = connect.info(name, model_name)
    except RaError as error:
        lines = str(error).splitlines()
        fix = "set a provider's API key, or `ra local install`"
        yield Check("model", "problem", lines[0], fix, tuple(line.strip() for line in lines[1:]))
        return
    window = f"window {info.window:,}" if info.window else "window unknown until the first overflow"
    priced = open_prices(resolved).row(model_name, name) is not None or name in IN_PROCESS
    yield Check("model", "ok", f"{name} {model_name}, {window}{'' if priced else ', price unknown'}")
    if not priced:
        yield Check(
            "model", "warning", "no price is known for it, so costs are not shown", "set app.prices for the model"
        )
    yield from _own_server(name, settings, env)


def _own_server(name: ProviderName, settings: ProviderSettings, env: Env) -> Iterator[Check]:
    """Asks a server on this machine whether it listens, which costs nothing."""
    if name in IN_PROCESS:
        return
    url = urlsplit(account.account(name, settings, env).base_url)
    if url.hostname not in ("127.0.0.1", "localhost", "::1"):
        return
    import socket

    port = url.port or (443 if url.scheme == "https" else 80)
    try:
        socket.create_connection((url.hostname, port), timeout=0.5).close()
        yield Check("model", "ok", f"{url.hostname}:{port} listens")
    except OSError as error:
        words = f"nothing answers at {url.hostname}:{port} ({error.strerror or error})"
        yield Check("model", "problem", words, "start that server, or change its base URL")


def local_model(resolved: Resolved) -> Iterator[Check]:
    if local.available(resolved.data_dir):
        yield Check("local", "ok", f"{local.MODEL} is installed")
    elif local_weights.installed(resolved.data_dir):
        fix = "pip install xllamacpp"
        yield Check("local", "warning", "the weights are there, but llama.cpp is not installed", fix)
    else:
        yield Check("local", "ok", "not installed; `ra local install` fetches a tiny one (98 MB)")


def sandbox(resolved: Resolved, env: Env, setting: Literal["auto", "off"]) -> Iterator[Check]:
    """Locates the sandbox and tries it out as a run would do it."""
    if setting == "off":
        yield Check("sandbox", "warning", "switched off: Bash asks for each command", "leave out --sandbox off")
        return
    root = str(resolved.root)
    from ra.config.toolboxes import host

    box = find_sandbox(setting, Project(root, str(resolved.cwd), env.get("HOME", "")), host=host(resolved, env))
    install = "install bubblewrap (apt install bubblewrap, dnf install bubblewrap)"
    if box is None:
        words = "no sandbox works here: Bash asks on a terminal and is refused elsewhere"
        yield Check("sandbox", "warning", words, install if sys.platform == "linux" else "allow what you need by rules")
        return
    limits = tuple(f"cannot stop this: {limit}" for limit in box.limits)
    trouble = box.trouble
    box.close()
    if trouble:
        words = f"{box.name} cannot hold this project: {trouble}"
        yield Check("sandbox", "warning", words, install, limits)
    else:
        yield Check("sandbox", "ok", f"{box.name}, tested: no capabilities, no network", details=limits)


def permissions(resolved: Resolved) -> Iterator[Check]:
    from ra.config.options import Options
    from ra.config.toolboxes import rules

    held = rules(resolved, Options())
    yield Check("rules", "ok", f"{len(held)} rules; `ra permissions list` shows them" if held else "none of yours")
    for rule in held:
        if rule.action == "allow" and rule.tool in ("Bash", "*") and rule.bare:
            words = f"allow {rule} gives every command the network"
            yield Check("rules", "warning", words, "name the commands: Bash(git diff:*)")


def terminal(streams: Streams, env: Env) -> Iterator[Check]:
    if not (streams.out_tty and streams.err_tty):
        yield Check("terminal", "ok", "no terminal: ra cannot ask, so calls that would ask are refused")
        return
    size = shutil.get_terminal_size()
    colours = "colours" if streams.colour else "no colours"
    yield Check("terminal", "ok", f"{env.get('TERM', 'unknown')}, {size.columns} × {size.lines}, {colours}")
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    if encoding != "utf8":
        yield Check("terminal", "warning", f"its encoding is {sys.stdout.encoding}", "export LANG=C.UTF-8")


def store(resolved: Resolved) -> Iterator[Check]:
    folder = resolved.data_dir
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    if not os.access(existing, os.W_OK):
        fix = "make it writable, or set RA_HOME; --no-session stores nothing"
        yield Check("store", "problem", f"{folder} cannot be written", fix)
        return
    in_database = "://" in (resolved.config.app.store or "")
    fix = (
        "check app.store, and that the database is up"
        if in_database
        else (f"move {folder / 'ra.db'} away, or restore it from a backup")
    )
    began = time.monotonic()
    try:
        opened = open_store(resolved)
        count = len(opened.sessions())
        if isinstance(opened, SqliteStore):
            opened.check(limit_s=CHECK_S)
    except (RaError, sqlite3.Error) as error:
        yield Check("store", "problem", str(error), fix)
        return
    took = f", asked in {(time.monotonic() - began) * 1000:.0f} ms" if in_database else ""
    place = opened.place if in_database else folder
    yield Check("store", "ok", f"{place}, {count} session{'s' * (count != 1)}{took}")
    if folder.exists() and folder.stat().st_mode & 0o077:
        yield Check("store", "warning", "others can look into it", f"chmod 700 {folder}")
    if (free := shutil.disk_usage(existing).free) < ROOM_BYTES:
        yield Check("store", "warning", f"only {free // 1_000_000} MB are free there", "make room, or set RA_HOME")


def mcp(resolved: Resolved, *, now: float) -> Iterator[Check]:
    """Reports what is known of the servers without starting any."""
    servers = [server for server in resolved.config.agent.mcp_servers if server.enabled]
    shelf = Shelf(resolved.data_dir / "mcp")
    if not servers:
        yield Check("mcp", "ok", "no servers")
    for place, server in enumerate(servers):
        wrong = problem(server, [earlier.name for earlier in servers[:place]])
        command = server.command or ""
        if not wrong and command and not (shutil.which(command) or (resolved.root / command).is_file()):
            wrong = f"the command {command!r} is not found"
        listing = shelf.get(server, now=now)
        if wrong:
            yield Check("mcp", "problem", f"{server.name}: {wrong}", "fix it under agent.mcpServers")
        elif listing is None:
            yield Check("mcp", "ok", f"{server.name}: not started yet; `ra mcp list` tries it")
        elif listing.failed:
            yield Check("mcp", "warning", f"{server.name}: {listing.failed}", "`ra mcp list` tries again")
        else:
            yield Check("mcp", "ok", f"{server.name}: {len(listing.tools)} tools, {listing.tokens:,} tokens")


def unreadable(error: RaError, env: Env) -> Check:
    """The only check when the configuration cannot be read."""
    return Check("config", "problem", str(error), f"fix it; your own file is {paths.user_file(env)}")


def programs() -> Iterator[Check]:
    missing = [name for name in ("git", "bash") if not shutil.which(name)]
    search = "ripgrep" if shutil.which("rg") else "the built-in search (ripgrep is not installed)"
    if missing:
        yield Check("programs", "warning", f"{', '.join(missing)} not found", f"install {' and '.join(missing)}")
    else:
        yield Check("programs", "ok", f"git, bash, {search}")


def everything(
    resolved: Resolved, env: Env, streams: Streams, setting: Literal["auto", "off"], now: float
) -> list[Check]:
    return [
        *config(resolved),
        *files(resolved, env),
        *keys(resolved, env),
        *model(resolved, env),
        *local_model(resolved),
        *sandbox(resolved, env, setting),
        *permissions(resolved),
        *terminal(streams, env),
        *store(resolved),
        *trust(resolved),
        *mcp(resolved, now=now),
        *programs(),
    ]


def as_json(checks: list[Check]) -> bytes:
    fine = all(check.verdict != "problem" for check in checks)
    return msgspec.json.encode({"ok": fine, "checks": [msgspec.to_builtins(check) for check in checks]})


def home_short(text: str, home: str) -> str:
    """Abbreviates the home folder: `/home/ann/x` becomes `~/x`."""
    return text.replace(str(Path(home)), "~") if home and home != "/" else text
