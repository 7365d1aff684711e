r"""Runs `manage.py test` of a Django project and writes what happened as JUnit XML.

This file is run by the interpreter of the code under test, with nothing but its standard library and the project's own
Django; `unittest_junit.py` lies beside it:

    python redstart_django.py --out junit.xml [--ids ids.txt] [--order reversed|shuffled [--seed N]] \
        -- manage.py test [arguments]

manage.py itself is run, and Django's test runner (or the project's `TEST_RUNNER`) finds the tests and sets up the
databases as always; only how the suite is run is replaced. Tests run in one process, all of them, without questions.
The exit code is as that of `unittest_junit.py`; where Django ends before the tests, it is Django's own.
"""

import argparse
import os
import runpy
import sys
import unittest

import unittest_junit as junit


def recording(runner_class, options, recorders):
    """The runner that the project uses, whose results are recorded."""

    class RecordingRunner(runner_class):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            # Each would hide tests, mix their order, or wait for a person.
            self.failfast, self.shuffle, self.pdb, self.interactive = False, False, False, False
            self.parallel = 1

        def build_suite(self, *args, **kwargs):
            suite = junit.choose(super().build_suite(*args, **kwargs), options)
            watch = junit.sentinel()
            if watch:
                watch.pytest_collection_finish()
            return unittest.TestSuite(sorted(junit.flatten(suite), key=self.rank)) if options.order else suite

        def rank(self, test):
            """Tests that empty the database must still come after those that rely on what migrations put there."""
            classes = getattr(self, "reorder_by", ())
            return next((place for place, kind in enumerate(classes) if isinstance(test, kind)), len(classes))

        def run_suite(self, suite, **_):
            recorders.append(junit.run_suite(suite, options.out))
            return recorders[-1]

        def suite_result(self, _, result, **__):
            return result.red

    return RecordingRunner


def hook(options, recorders):
    """Has Django take our runner in place of the one that it would take, as soon as manage.py hands over to it."""
    from django.core.management import ManagementUtility  # noqa: PLC0415 (the project's own, once its path is set)

    execute = ManagementUtility.execute

    def execute_with_records(self):
        from django.test import utils  # noqa: PLC0415 (not before manage.py has named its settings)
        from django.test.runner import DiscoverRunner  # noqa: PLC0415

        get_runner = utils.get_runner

        def get_recording_runner(*args, **kwargs):
            found = get_runner(*args, **kwargs)
            return recording(found, options, recorders) if issubclass(found, DiscoverRunner) else found

        utils.get_runner = get_recording_runner
        return execute(self)

    ManagementUtility.execute = execute_with_records


def main():
    parser = argparse.ArgumentParser()
    junit.add_options(parser)
    own = sys.argv[1 : sys.argv.index("--")]
    manage, *arguments = sys.argv[len(own) + 2 :]
    options = parser.parse_args(own)
    sys.argv = [manage, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(manage))  # noqa: PTH100, PTH120
    recorders = []
    try:
        hook(options, recorders)
    except ImportError:
        sys.stderr.write("Django could not be imported:\n")  # manage.py says why
    try:
        runpy.run_path(manage, run_name="__main__")
    except SystemExit as ended:
        if not recorders:
            raise
        if ended.code not in (None, 0, 1):
            raise
    return junit.exit_code(recorders[-1]) if recorders else 0


if __name__ == "__main__":
    sys.exit(main())
