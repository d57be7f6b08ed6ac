"""Checks the packages for hosts and registries with the hosts themselves and with each format's validator.

`make shops` runs these tests. They aren't part of the suite, because the hosts are downloaded from npm.
"""

import os

collect_ignore_glob = [] if os.environ.get("SHOPS") else ["test_*"]
