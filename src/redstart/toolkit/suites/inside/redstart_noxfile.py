"""Reads the project's noxfile, for sessions that install nothing: they run in the environment that is there.

nox has a switch for `session.install`, but `session.run_install` obeys it only in an environment that is used again. It
runs sessions in the folder of the noxfile that it was given, which is this one.
"""

import os
import sys
from pathlib import Path

import nox.sessions
import nox.virtualenv


class Reused:
    """In place of an attribute that nox sets."""

    def __get__(self, instance, owner=None):
        return True

    def __set__(self, instance, value):
        pass


def execute(runner, run=nox.sessions.SessionRunner.execute):
    runner.global_config.noxfile = __file__
    return run(runner)


os.chdir(os.environ.pop("REDSTART_NOX_ROOT"))
__file__ = str(Path(os.environ.pop("REDSTART_NOXFILE")).absolute())
os.chdir(str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent))
nox.virtualenv.PassthroughEnv._reused = Reused()
nox.sessions.SessionRunner.execute = execute
exec(compile(Path(__file__).read_bytes(), __file__, "exec"))  # noqa: S102 (as nox itself does)
