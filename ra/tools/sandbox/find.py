"""Finds the sandbox that works here and tests it before use; None without one."""

import platform

from ra.system.process import Launch
from ra.tools.policy.paths import Project
from ra.tools.sandbox.box import NOWHERE, Access, Box, Host
from ra.tools.settings import Sandbox


class Launcher:
    """Starts the commands of one session, in the sandbox or outside it."""

    def __init__(self, setting: Sandbox, place: Project, *, host: Host = NOWHERE) -> None:
        self._setting = setting
        self._place = place
        self._host = host
        self._box: Box | None = None
        self._searched = False

    @property
    def box(self) -> Box | None:
        """The sandbox, located and tested on first use."""
        if not self._searched:
            self._searched, self._box = True, find_sandbox(self._setting, self._place, host=self._host)
        return self._box

    def launch(self, script: str, cwd: str, access: Access) -> Launch:
        from ra.system.launch import under_reaper  # start-up time: ctypes and more, only for a command

        argv = ["bash", "--noprofile", "--norc", "-c", script]
        box = self.box
        if access.outside or box is None:
            return under_reaper(argv)
        return box.launch(argv, cwd, network=access.network, git=access.git)

    def close(self) -> None:
        if self._box:
            self._box.close()


def find_sandbox(setting: Sandbox, place: Project, *, host: Host = NOWHERE, system: str | None = None) -> Box | None:
    """`system` is the value of `platform.system()`, unless a test replaces it."""
    if setting == "off":
        return None
    system = system or platform.system()
    # Start-up time: only for the first command, and only for this system.
    if system == "Darwin":
        from ra.tools.sandbox import seatbelt

        return seatbelt.find(place, host)
    if system == "Linux":
        from ra.tools.sandbox import bubblewrap

        return bubblewrap.find(place, host)
    return None
