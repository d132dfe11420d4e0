"""`ra open`: show sessions in the browser, call by call."""

from pathlib import Path
from typing import Annotated

import typer

from ra.cli.commands import CommandContext
from ra.core.errors import UsageError

app = typer.Typer(add_completion=False, help="Show sessions in the browser, call by call.")


@app.command("open")
def open_sessions(
    ctx: typer.Context,
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="SESSION|FILE|FOLDER", help="what to show (default: the sessions of this project)"),
    ] = None,
    everywhere: Annotated[bool, typer.Option("--all", "-a", help="show the sessions of all projects")] = False,
    port: Annotated[
        int, typer.Option("--port", "-p", min=0, max=65535, help="the port to listen on; 0: any free one")
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="start a browser, or only print the address")
    ] = True,
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="PAGE.html", help="write one session to a page that you can share"),
    ] = None,
    without_text: Annotated[
        bool, typer.Option("--without-text", help="with --export: only figures, nothing that was said")
    ] = False,
) -> int:
    """Show sessions in the browser: for each call, what was in the window, what was cached, and what it cost.

    Reads sessions of ra, and transcripts of Claude Code, Codex, pi and lists of OpenAI messages. Only this machine can
    open the page. The address that is printed works once.
    """
    # Start-up time: Starlette, uvicorn and the bench, only for this command.
    from ra.web.sessions import ShownSessions

    call: CommandContext = ctx.obj
    if without_text and export is None:
        raise UsageError("--without-text goes with --export PAGE.html.")
    paths, sessions = _sorted(what or [])
    shown_sessions = ShownSessions(call.app(), paths=paths, sessions=sessions, everywhere=everywhere)
    if export is not None:
        from ra.web.export import export_page

        page_bytes = export_page(shown_sessions, export, with_text=not without_text)
        call.streams.err(f"{export}: {page_bytes / 1e6:.1f} MB. It opens in any browser, offline.\n")
        return 0
    from ra.web.server import open_page

    return open_page(shown_sessions, port=port, started=_Opener(call, browser=browser).started)


class _Opener:
    """Prints the address, and opens it if there is a browser."""

    def __init__(self, call: CommandContext, *, browser: bool) -> None:
        self._call, self._browser = call, browser

    def started(self, address: str) -> None:
        import threading  # a browser may start slowly, and the page must be served meanwhile

        self._call.streams.out(f"{address}\n")
        self._call.streams.err("Ctrl-C ends it.\n")
        if self._browser:
            threading.Thread(target=self._show, args=(address,), daemon=True).start()

    def _show(self, address: str) -> None:
        import webbrowser  # start-up time: only if a browser is wanted

        if not webbrowser.open(address):
            self._call.warn("No browser could be started here; open the address above in one.")


def _sorted(words: list[str]) -> tuple[list[Path], list[str]]:
    """Separates files and folders from session ids. An existing name is a file: the form of an id proves nothing."""
    paths = [Path(word).expanduser() for word in words if _is_path(word)]
    return paths, [word for word in words if not _is_path(word)]


def _is_path(word: str) -> bool:
    named = "/" in word or "." in word or word.startswith("~")
    return named or Path(word).exists()
