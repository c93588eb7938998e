"""The benchmarks that the documents name are targets of the Makefile: a bare `python -m bench` lacks its paths."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = (*sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("*.md")))


def named() -> set[str]:
    return {found for doc in DOCS for found in re.findall(r"make (bench[a-z-]*)", doc.read_text())}


def test_every_benchmark_of_the_documents_is_a_target_that_names_a_module() -> None:
    assert {"bench-priorities", "bench-orders"} <= named()
    for target in sorted(named()):
        said = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False)
        modules = re.findall(r"-m (bench[a-z.]*)", said.stdout)
        assert said.returncode == 0, said.stderr
        assert modules, target
        place = ROOT / modules[0].replace(".", "/")
        assert place.is_dir() or place.with_suffix(".py").is_file()


def test_no_document_names_a_benchmark_that_lacks_its_paths() -> None:
    assert not [doc.name for doc in DOCS if re.search(r"python3? -m bench", doc.read_text())]
