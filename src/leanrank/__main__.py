"""``python -m leanrank`` is the command line."""

import sys

from leanrank.cli import main

if __name__ == "__main__":
    sys.exit(main())
