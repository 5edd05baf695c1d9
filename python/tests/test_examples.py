"""The example scripts run, and their claims hold."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_what_it_claims_holds(example, tmp_path):
    found = subprocess.run(
        [sys.executable, "-W", "error", str(example)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr
    assert not list(tmp_path.iterdir()), "it leaves files behind"
    text = example.read_text()
    assert text.count("# %%") >= 5 and "\nassert " in text
