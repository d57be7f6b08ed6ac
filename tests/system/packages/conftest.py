"""What `make dist` made, installed and used: `make dist TEST=1`, not the suite, since it fetches from indexes."""

import os

collect_ignore_glob = [] if os.environ.get("DIST_TEST") else ["test_*"]
