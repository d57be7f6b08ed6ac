"""One fuzzing target under atheris; the parent process gives its name and libFuzzer's options."""

import importlib
import sys
from typing import Any


def main() -> None:
    atheris: Any = importlib.import_module("atheris")
    target = sys.argv.pop(1)
    with atheris.instrument_imports(include=["punchlist", "punchlistd", "punchlist_schemas"]):
        targets = importlib.import_module("punchlist_faults.fuzz_targets").TARGETS
    atheris.Setup(sys.argv, targets[target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
