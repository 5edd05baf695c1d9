"""The `maxmargin` command: `python -m maxmargin`, or the script of that name."""

import signal
import sys

from ._core import command


def main() -> int:
    """Runs the command line of this process and returns the exit code."""
    # The command handles Ctrl-C and stops at the next safe point. Python would wait until the command returns.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return command(["maxmargin", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
