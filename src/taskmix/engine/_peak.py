"""What a device can do at best, by its vendor: the limit that speeds are compared with."""

from __future__ import annotations

import torch

# Dense bfloat16 products, operations a second. "GH200" has "H200" in it, and the same chip.
PEAKS = {"B200": 2250e12, "H200": 989e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12}


def peak_operations(device: str) -> float | None:
    """Operations a second of products in bfloat16; None where it is not known, as of a CPU.

    >>> peak_operations("cpu") is None
    True
    """
    if torch.device(device).type != "cuda" or not torch.cuda.is_available():
        return None
    name = torch.cuda.get_device_name(torch.device(device))
    return next((value for part, value in PEAKS.items() if part in name), None)
