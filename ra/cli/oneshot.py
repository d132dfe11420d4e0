"""How does one prompt become one answer and one exit code?"""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from ra.agent.session import Session
from ra.app import App, Options
from ra.cli import flags, stdin
from ra.cli.output import EXIT, JsonFace, Streams, TextFace, no_start
from ra.cli.spinner import Spinner
from ra.config.load import Resolved, resolve
from ra.core.asking import Asker
from ra.core.errors import RaError, UsageError
from ra.core.events import Event
from ra.core.messages import Message
from ra.providers.connect import NoModel
from ra.resolvers.resolver import AskOutside


class Terminated(BaseException):
    """SIGTERM, while there is no run yet that it could end."""


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
        from ra import __version__

        streams.out(f"ra {__version__}\n")
        return 0
    if args.show_completion or args.install_completion is not None:
        return _completion(args, env, streams)
    resolved = read_config(args, env)
    if args.show_config:
        from ra.config.show import shown

        streams.out(shown(resolved))
        return 0
    if resolved.notes or resolved.untrusted:
        from ra.cli.trusting import settle  # only a project with something to trust needs it

        resolved = settle(resolved, args, streams, partial(read_config, args, env), terminal=_on_terminal(streams))
    face = face_for(args, streams)
    prompt = " ".join(args.words).strip()
    piped = stdin.read(required=not prompt, warn=lambda text: face.note(f"ra: {text}"))
    if not prompt:
        prompt, piped = piped.strip(), ""
    make = partial(App, resolved, options(args, streams), env=env, warn=lambda text: face.note(f"ra: {text}"))
    try:
        app = make()
    except NoModel as error:
        if not _on_terminal(streams) or args.output_format != "text":
            raise
        from ra.cli.welcome import offer_local_model  # once in a lifetime

        if not offer_local_model(str(error), resolved.data_dir, streams):
            return error.exit_code
        app = make()
    if not prompt and not piped:
        if args.show_context or args.dry_run:
            pass  # what is always sent can be shown without a prompt
        elif sys.stdin is not None and sys.stdin.isatty() and streams.out_tty:
            from ra.cli.repl import repl  # prompt_toolkit and Rich, for people only

            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            return repl(app, args, streams)
        else:
            raise UsageError('There is no prompt. Write ra "your question", or pipe one in: echo question | ra')
    return asyncio.run(_answer(app, args, prompt, piped, face, streams))


def _completion(args: argparse.Namespace, env: Mapping[str, str], streams: Streams) -> int:
    from ra.cli import completion

    if args.show_completion:
        streams.out(completion.script(args.show_completion))
        return 0
    file, start = completion.install(args.install_completion, env)
    named = f" and a line in {start}" if start else ""
    streams.err(f"Written: {file}{named}. It works in the next shell that you open.\n")
    return 0


def read_config(
    args: argparse.Namespace, env: Mapping[str, str], *, agent: str | None = None, trusting: bool = False
) -> Resolved:
    """The configuration as it is now, for this agent or the one that a flag named."""
    return resolve(
        cwd=Path.cwd(),
        env=env,
        config_file=Path(args.config) if args.config else None,
        assignments=args.set,
        flags=flags.settings(args),
        agent=agent or args.agent,
        trusting=trusting,
    )


def options(args: argparse.Namespace, streams: Streams | None) -> Options:
    """What the flags allow; without streams a program asks, and nobody can be asked back."""
    terminal = streams is not None and _on_terminal(streams)
    return Options(
        tools=not args.no_tools,
        allow=tuple(args.allow),
        deny=tuple(args.deny),
        sandbox=args.sandbox or "auto",
        write=args.write if args.write is not None else terminal,
        terminal=terminal,
        agent_file=args.agent_file,
        channel="api" if streams is None else "terminal" if streams.out_tty else "pipe",
        agent=args.agent or "",
        dry_run=args.dry_run,
    )


def _on_terminal(streams: Streams) -> bool:
    """Is there a person who can be asked?"""
    return streams.err_tty and sys.stdin is not None and sys.stdin.isatty()


def face_for(args: argparse.Namespace, streams: Streams) -> TextFace | JsonFace:
    if args.output_format == "text":
        return TextFace(streams, quiet=args.quiet, verbose=args.verbose)
    return JsonFace(streams, stream=args.output_format == "stream-json")


async def _answer(
    app: App, args: argparse.Namespace, prompt: str, piped: str, face: TextFace | JsonFace, streams: Streams
) -> int:
    ask: Asker | None = None
    outside: AskOutside | None = None
    if app.options.terminal:
        from ra.cli.ask import ask_on_terminal, ask_outside  # only where there is somebody to ask

        ask, outside = ask_on_terminal(streams), ask_outside(streams)
    prepared = await app.prepare(prompt, piped=piped, files=flags.attachments(args), ask_outside=outside)
    for warning in prepared.warnings:
        face.note(f"ra: {warning}")
    if args.show_context:
        from ra.cli.context_view import show_context

        return show_context(app, prepared, streams)
    session = app.open(resume=args.resume, latest=args.go_on, fork=args.fork, ephemeral=args.no_session or args.dry_run)
    try:
        if args.dry_run:
            from ra.cli.context_view import dry_run

            return await dry_run(session, prepared, app, streams, as_json=args.output_format != "text")
        return await follow(session, prepared.message, face, streams, ask=ask, quiet=args.quiet)
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
) -> int:
    """Run one prompt and let the face hear it. Signals end the run, not the process: what was said is kept."""
    run = session.start(message, ask=ask)
    received: list[signal.Signals] = []

    def interrupted(number: signal.Signals) -> None:
        if received:  # asked twice: do not wait for anybody
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
    return EXIT[run.ended.outcome] or int(bool(run.ended.error))  # answered, and yet not saved
