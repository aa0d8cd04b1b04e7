"""``python -m delegraph`` is the ``delegraph`` command."""

import sys

from delegraph.cli import main

if __name__ == "__main__":
    sys.exit(main())
