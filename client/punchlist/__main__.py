"""`python -m punchlist`: runs the command line without its installed script."""

import sys

from punchlist_apps.cli import main

if __name__ == "__main__":
    sys.exit(main())
