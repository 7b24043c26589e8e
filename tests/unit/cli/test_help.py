from __future__ import annotations

import subprocess
import sys

import pytest

import taskmix


def taskmix_command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "taskmix", *words], capture_output=True, text=True, timeout=120
    )


def test_help_needs_neither_torch_nor_arrow() -> None:
    code = (
        "import sys\n"
        "for name in ('torch', 'pyarrow', 'sklearn', 'scipy', 'numpy'): sys.modules[name] = None\n"
        "sys.argv = ['taskmix', '--help']\n"
        "from taskmix.cli import run_command\n"
        "run_command()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "train" in done.stdout


@pytest.mark.parametrize(
    "command",
    [
        "demo",
        "check",
        "train",
        "report",
        "watch",
        "improve",
        "sequences",
        "swarm",
        "simulate",
        "laws",
        "plan",
        "reproduce",
    ],
)
def test_every_command_has_help_with_an_example(command: str) -> None:
    done = taskmix_command(command, "--help")
    assert done.returncode == 0
    assert f"taskmix {command} " in " ".join(done.stdout.split())


def test_the_version_is_the_packages() -> None:
    assert taskmix_command("--version").stdout.strip() == f"taskmix {taskmix.__version__}"
