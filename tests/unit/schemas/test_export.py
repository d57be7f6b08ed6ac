import json
import subprocess
import sys
from pathlib import Path

import pytest

from punchlist_schemas import export

ROOT = Path(__file__).parents[3]


def test_generated_files_are_up_to_date() -> None:
    assert export.find_stale(ROOT) == []


def written(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def test_export_is_deterministic(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "root"
    assert export.main(["--out", str(out)]) == 0
    assert written(out) == export.build_documents()
    # Another process has a different hash seed, which reveals any order that depends on a set.
    again = tmp_path / "again"
    command = [sys.executable, "-m", "punchlist_schemas.export", "--out", str(again)]
    path = str(Path(export.__file__).parents[1])
    subprocess.run(command, check=True, timeout=30, env={"PYTHONPATH": path, "PYTHONHASHSEED": "7"})
    assert written(again) == export.build_documents()
    assert export.main(["--check", "--out", str(again)]) == 0
    (again / "schemas/json/errors.json").unlink()
    assert export.main(["--check", "--out", str(again)]) == 1


@pytest.mark.parametrize("name", ["schemas/json/events.schema.json", "schemas/json/things.schema.json"])
def test_references_of_schemas_are_defined(name: str) -> None:
    text = export.build_documents()[name].decode()
    schema = json.loads(text)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    references = {part.split('"')[1] for part in text.split('"$ref":')[1:]}
    assert references <= {f"#/$defs/{name}" for name in schema["$defs"]}
    assert "discriminator" not in text
