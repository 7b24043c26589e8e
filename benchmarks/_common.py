"""What the benchmarks share: one JSON object out, and a peer's own environment."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENTS = ROOT / ".benchmarks"


Options = Mapping[str, Mapping[str, Any]]  # a flag, and what argparse should know of it


def arguments(
    description: str, *, device: bool = False, options: Options | None = None
) -> argparse.Namespace:
    """`--quick` and `--json`, which every benchmark takes, and `--device` where one can be chosen."""
    parser = argparse.ArgumentParser(description=description)
    for flag, words in (options or {}).items():
        parser.add_argument(flag, **words)
    if device:
        parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--quick", action="store_true", help="a version of a minute or so")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args()


def row(
    case: str,
    ours: float,
    peer: float | None,
    peer_name: str,
    unit: str,
    *,
    ratio: float | None = None,
) -> dict[str, Any]:
    """One comparison; the ratio is ours over the peer's unless given."""
    if ratio is None and peer:
        ratio = ours / peer
    return {
        "case": case,
        "ours": ours,
        "peer": peer,
        "peer_name": peer_name,
        "ratio": ratio,
        "unit": unit,
    }


def report(
    experiment: str,
    measure: Callable[..., list[dict[str, Any]]],
    description: str,
    *,
    device: bool = False,
    options: Options | None = None,
) -> None:
    """Measures, and prints the rows as a table or as one object.

    `measure` is given `quick`, the device where one can be chosen, and by name what `options` add.
    """
    chosen = arguments(description, device=device, options=options)
    begin = time.monotonic()
    more = {
        flag.removeprefix("--"): getattr(chosen, flag.removeprefix("--")) for flag in options or {}
    }
    rows = measure(chosen.quick, *([chosen.device] if device else []), **more)
    if chosen.json:
        command = f"python benchmarks/{Path(sys.argv[0]).name} " + " ".join(sys.argv[1:])
        found = {
            "experiment": experiment,
            "command": command.strip(),
            "seconds": round(time.monotonic() - begin, 1),
            "rows": rows,
        }
        print(json.dumps(found, indent=2))
        return
    for each in rows:
        ratio = "-" if each["ratio"] is None else f"{each['ratio']:.3f}"
        peer = "-" if each["peer"] is None else f"{each['peer']:.4g}"
        print(
            f"{each['case']:44} ours {each['ours']:10.4g}  {each['peer_name']} {peer:>10} "
            f"{each['unit']:16} ratio {ratio}"
        )


def environment(name: str, packages: list[str], *, alone: list[str] | None = None) -> Path:
    """The Python of an environment with a peer in it, made once.

    It sees this environment's packages, so that both sides run the same torch, and has the peer's
    own packages in front. Packages in `alone` are installed without what they depend on, for peers
    whose bounds exclude versions they run with.
    """
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    done = folder / ".done"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        site = next((folder / "lib").glob("python*")) / "site-packages"
        (site / "ours.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
        install = [str(python), "-m", "pip", "install", "-qq", "-c", str(ROOT / "constraints.txt")]
        subprocess.run([*install, *packages], check=True)
        if alone:
            subprocess.run([*install, "--no-deps", *alone], check=True)
        done.touch()
    return python
