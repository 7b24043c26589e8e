"""The set-up of `make demo` from a bare checkout: seconds, packages, megabytes, and torch's share.

The files that git knows are copied into a new folder and `make .venv/.demo-done` is run there; torch is
then installed alone, the same way, into a folder of its own. Unless `--warm no`, all of it is done once
before, so that the packages are in the installer's cache. `--installer pip` does without uv.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from _common import ROOT, report

STEP = ".venv/.demo-done"
GOAL = 90.0  # seconds


def checkout(folder: Path) -> Path:
    """The files that git knows, as they are now."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    return folder


def set_up(folder: Path, installer: str) -> float:
    """Seconds of what `make demo` does before the demo."""
    begin = time.monotonic()
    subprocess.run(["make", "-s", *_uv(installer), STEP], cwd=folder, check=True)
    return time.monotonic() - begin


def torch_alone(folder: Path, installer: str) -> float:
    """Seconds of torch and what it needs, in an environment of its own, by the Makefile's own lines."""
    (folder / "torch.mk").write_text(
        "include Makefile\ntorch-alone:\n\t$(subst --editable,,$(call install,torch))\n"
    )
    begin = time.monotonic()
    subprocess.run(
        ["make", "-s", "-f", "torch.mk", *_uv(installer), "torch-alone"], cwd=folder, check=True
    )
    return time.monotonic() - begin


def _uv(installer: str) -> list[str]:
    if installer == "pip":
        return ["UV="]
    found = shutil.which("uv")
    if found is None:
        raise SystemExit("uv should be on the path. Found none. Choose `--installer pip`.")
    return [f"UV={found}"]


def contents(folder: Path) -> tuple[int, float]:
    """How many packages an environment has, and its megabytes."""
    site = next((folder / ".venv" / "lib").glob("python*")) / "site-packages"
    sizes = (
        os.lstat(path).st_size
        for path in site.rglob("*")
        if path.is_file() and not path.is_symlink()
    )
    return len(list(site.glob("*.dist-info"))), sum(sizes) / 1e6


def measure(quick: bool, installer: str, warm: str) -> list[dict[str, Any]]:
    chosen = installer if installer != "auto" else "uv" if shutil.which("uv") else "pip"
    with tempfile.TemporaryDirectory() as name:
        places = [Path(name) / each for each in ("before", "all", "torch")]
        for place in places:
            place.mkdir()
            checkout(place)
        if warm == "yes":
            set_up(places[0], chosen)
        seconds = set_up(places[1], chosen)
        of_torch = seconds if quick else torch_alone(places[2], chosen)
        packages, megabytes = contents(places[1])
        torch_megabytes = megabytes if quick else contents(places[2])[1]
    alone = [] if quick else [
        _row(f"torch alone, by {chosen}", of_torch, "seconds", of=seconds),
        _row("megabytes of torch and what it needs", torch_megabytes, "MB", of=megabytes),
    ]  # fmt: skip
    return [
        _row(f"set-up of make demo, by {chosen}", seconds, "seconds", of=GOAL, name="goal"),
        _row("packages", packages, "packages"),
        _row("megabytes on the disk", megabytes, "MB"),
        *alone,
    ]


def _row(
    case: str, value: float, unit: str, *, of: float | None = None, name: str = "of all"
) -> dict[str, Any]:
    return {
        "case": case,
        "ours": value,
        "peer": of,
        "peer_name": name if of is not None else "",
        "ratio": None if of is None else value / of,
        "unit": unit,
    }


if __name__ == "__main__":
    report(
        "setup",
        measure,
        __doc__ or "",
        options={
            "--installer": {"default": "auto", "choices": ["auto", "uv", "pip"]},
            "--warm": {
                "default": "yes",
                "choices": ["yes", "no"],
                "help": "whether everything is installed once before, unmeasured",
            },
        },
    )
