"""Answers one prompt and turns its outcome into an exit code."""

import argparse
import asyncio
import os
import select
import signal
import stat
import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from ra.app import App
from ra.cli import flags
from ra.cli.configuration import on_terminal, options, read_config
from ra.cli.output import EXIT, JsonFace, Streams, TextFace, no_start
from ra.cli.spinner import Spinner
from ra.config.load import Resolved
from ra.core.asking import Asker
from ra.core.errors import NoModel, RaError, UsageError, UserError
from ra.core.events import Event
from ra.core.messages import Message
from ra.core.text import visible_line
from ra.resolvers.resolver import AskOutside
from ra.session.session import Session

if TYPE_CHECKING:
    from ra.session.structured import SchemaFormat


class Terminated(BaseException):
    """SIGTERM arrived before there was a run to end."""


FIRST_BYTE_S = 3.0  # how long a pipe may stay silent before the prompt is sent without it
STALL_S = 30.0  # the same, after its first byte
NO_MODEL_TO_PRICE = (
    "No key is set, so --dry-run needs a model: "
    'name one whose vendor is known, such as ra --dry-run -m sonnet "your question".'
)
MAX_PIPED_BYTES = 64 * 1024 * 1024


def run_prompt(args: argparse.Namespace) -> int:
    env = os.environ
    streams = Streams(env, plain=args.plain)
    signal.signal(signal.SIGTERM, _terminated)
    try:
        return _run(args, env, streams) or int(streams.failed)
    except RaError as error:
        if args.output_format == "text":
            raise
        JsonFace(streams, stream=False).hear(no_start(str(error)))
        return error.exit_code
    except (KeyboardInterrupt, Terminated) as stop:
        if args.output_format != "text" and not streams.summed_up:
            JsonFace(streams, stream=False).hear(no_start("Interrupted.", "interrupted"))
        return 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)


def _terminated(number: int, frame: object) -> None:
    raise Terminated


def _run(args: argparse.Namespace, env: Mapping[str, str], streams: Streams) -> int:
    if args.version:
        from ra.core.version import __version__

        streams.out(f"ra {__version__}\n")
        return 0
    if args.show_completion or args.install_completion is not None:
        return _completion(args, env, streams)
    resolved = read_config(args, env)
    if args.show_config:
        from ra.config.show import shown

        streams.out(shown(resolved))
        return 0
    if resolved.notes or resolved.untrusted or resolved.waiting:
        from ra.cli.trust_prompt import settle  # start-up time: only if something needs trust

        resolved = settle(resolved, args, streams, partial(read_config, args, env), terminal=on_terminal(streams))
    face = face_for(args, streams)
    answer_format = _answer_format(args.json_schema) if args.json_schema else None
    prompt = " ".join(args.words).strip()
    piped = read_stdin(required=not prompt, face=face)
    if not prompt:
        prompt, piped = piped.strip(), ""
    if args.show_context:  # a list of files: it needs no user
        app = App(resolved, options(args, streams), env=env, warn=face.warn)
        return asyncio.run(_answer(app, args, prompt, piped, face, streams, answer_format))
    try:
        app = _app(args, resolved, env, face, streams)
    except NoModel as error:
        if args.dry_run:
            raise NoModel(NO_MODEL_TO_PRICE) from error
        if not on_terminal(streams) or args.output_format != "text":
            raise
        from ra.cli.welcome import offer_local_model, offer_server  # start-up time: only until a model is set up

        server = offer_server(streams)
        if server is not None:
            env = dict(env) | {"OPENAI_BASE_URL": server.url}
            args.provider, args.model = "openai-chat", args.model or server.model
            resolved = read_config(args, env)
        elif not offer_local_model(str(error), resolved.data_dir, streams):
            return error.exit_code
        app = _app(args, resolved, env, face, streams)
    if isinstance(face, TextFace) and not args.show_context:
        face.embedded = app.chosen_model[0] == "local"
    if not prompt and not piped:
        if args.dry_run:
            pass  # the constant context can be shown without a prompt
        elif sys.stdin is not None and sys.stdin.isatty() and streams.out_tty:
            if answer_format is not None:
                raise UsageError('--json-schema needs a prompt: ra --json-schema FILE "your question"')
            from ra.cli.repl import start  # start-up time: prompt_toolkit and Rich

            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            return start(app, args, streams)
        else:
            raise UsageError('There is no prompt. Write ra "your question", or pipe one in: echo question | ra')
    return asyncio.run(_answer(app, args, prompt, piped, face, streams, answer_format))


def read_stdin(*, required: bool, face: TextFace | JsonFace) -> str:
    """Piped text, "" without any; a silent pipe never delays a prompt on the command line.

    With `required`, the pipe is the prompt, so this waits for it.
    """
    try:
        descriptor = sys.stdin.fileno() if sys.stdin is not None else -1
        mode = os.fstat(descriptor).st_mode
    except (OSError, ValueError):
        return ""  # stdin is closed
    if os.isatty(descriptor):
        return ""
    waits = not required and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode))
    piped = bytearray()
    while True:
        limit = (STALL_S if piped else FIRST_BYTE_S) if waits else None
        if limit is not None and not select.select([descriptor], [], [], limit)[0]:
            face.warn(
                f"stdin sent nothing for {limit:g} s; continuing with the {len(piped)} bytes received."
                if piped
                else f"stdin is open but silent; continuing without it after {limit:g} s."
            )
            break
        chunk = os.read(descriptor, 1 << 16)
        if not chunk:
            break
        piped += chunk
        if len(piped) > MAX_PIPED_BYTES:
            face.warn(f"stdin holds more than {MAX_PIPED_BYTES} bytes; the rest was left out.")
            break
    return bytes(piped[:MAX_PIPED_BYTES]).decode("utf-8", "replace")


def _answer_format(schema: str) -> "SchemaFormat":
    """The schema in a file, or the JSON itself. Raises UsageError."""
    from ra.session.structured import read_schema

    return read_schema(schema)


def _app(
    args: argparse.Namespace, resolved: Resolved, env: Mapping[str, str], face: TextFace | JsonFace, streams: Streams
) -> App:
    """The App that opens the session; on a terminal, asks about a misspelt model."""
    app = App(resolved, options(args, streams), env=env, warn=face.warn)
    if args.show_context:
        return app  # the context can be shown before there is a key or a model
    try:
        app.check()
    except UserError as error:
        from ra.providers.model_choice import UnknownModel  # start-up time: only for an unknown model

        may_ask = isinstance(error, UnknownModel) and on_terminal(streams) and args.output_format == "text"
        if not (may_ask and isinstance(error, UnknownModel)) or not _meant_model(error.name, error.suggestion, streams):
            raise
        args.model = error.suggestion
        app = App(read_config(args, env), options(args, streams), env=env, warn=face.warn)
        app.check()
    return app


def _meant_model(name: str, suggestion: str, streams: Streams) -> bool:
    from ra.cli.permission_prompt import choose_on_terminal  # start-up time: only with a user to ask

    question = f"There is no model {visible_line(name, 60)!r} in the catalog. Use {suggestion}?"
    return choose_on_terminal(question, {"y": "yes", "n": "no"}, streams) == "y"


def _completion(args: argparse.Namespace, env: Mapping[str, str], streams: Streams) -> int:
    from ra.cli import completion

    if args.show_completion:
        streams.out(completion.script(args.show_completion))
        return 0
    file, start = completion.install(args.install_completion, env)
    named = f" and a line in {start}" if start else ""
    streams.err(f"Written: {file}{named}. It works in the next shell that you open.\n")
    return 0


def face_for(args: argparse.Namespace, streams: Streams) -> TextFace | JsonFace:
    if args.output_format == "text":
        return TextFace(
            streams, quiet=args.quiet, verbose=args.verbose, stored=not args.no_session, at_once=bool(args.json_schema)
        )
    return JsonFace(streams, stream=args.output_format == "stream-json")


async def _answer(
    app: App,
    args: argparse.Namespace,
    prompt: str,
    piped: str,
    face: TextFace | JsonFace,
    streams: Streams,
    answer_format: "SchemaFormat | None",
) -> int:
    ask: Asker | None = None
    outside: AskOutside | None = None
    if app.options.terminal:
        from ra.cli.permission_prompt import ask_on_terminal, ask_outside  # start-up time: only with a user to ask

        ask, outside = ask_on_terminal(streams), ask_outside(streams)
    prepared = await app.prompts.prepare(prompt, piped=piped, files=flags.attachments(args), ask_outside=outside)
    for warning in prepared.warnings:
        if not (args.strict and warning in prepared.failed):
            face.warn(warning)
    if prepared.failed and args.strict:
        raise UsageError(f"{' '.join(prepared.failed)} Nothing was sent (--strict).")
    if prepared.failed and outside is not None and not (args.show_context or args.dry_run):
        from ra.cli.permission_prompt import choose

        if await choose("Send the prompt without it?", {"n": "no", "y": "yes"}, streams) != "y":
            streams.err("Nothing was sent.\n")
            return 2
    if args.show_context:
        from ra.cli.context_view import show_context

        return show_context(app, prepared, streams)
    session = app.open(resume=args.resume, latest=args.go_on, fork=args.fork, ephemeral=args.no_session or args.dry_run)
    try:
        if args.dry_run:
            from ra.cli.context_view import dry_run

            return await dry_run(session, prepared, streams, as_json=args.output_format != "text")
        return await follow(
            session, prepared.message, face, streams, ask=ask, quiet=args.quiet, answer_format=answer_format
        )
    finally:
        await session.close()


async def follow(
    session: Session,
    message: Message,
    face: TextFace | JsonFace,
    streams: Streams,
    *,
    ask: Asker | None,
    quiet: bool,
    answer_format: "SchemaFormat | None" = None,
) -> int:
    """Runs a prompt and passes its events to the face. Signals end the run, not the process: partial text is kept."""
    run = session.prompt(message, ask=ask, answer_format=answer_format)
    received: list[signal.Signals] = []

    def interrupted(number: signal.Signals) -> None:
        if received:  # the second signal: do not wait
            os._exit(128 + number)
        received.append(number)
        run.interrupt()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted, number)
    spinner = Spinner(streams) if streams.moving and not quiet and isinstance(face, TextFace) else None
    last: Event | None = None
    try:
        async for event in run:
            if spinner is not None:
                spinner.hear(event)
            face.hear(event)
            last = event
    finally:
        if spinner is not None:
            spinner.stop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
    if received:
        return 128 + received[0]
    if streams.failed or run.ended is None or last is not run.ended:
        return 1
    return EXIT[run.ended.outcome] or int(bool(run.ended.error))  # answered, but not saved
