"""`python -m punchlist.cli`: the command line without its installed script."""

import sys

from punchlist.cli import main

sys.exit(main())
