"""One arithmetic for every x86 processor with AVX2, so that a result has the same bytes on all of them.

Libraries of products, sums and functions pick code by the processor they meet; wider instructions add in another order,
and a training makes a visible difference of a last bit. Here they are told to take the code for AVX2. Importing the
package does this, before numpy or torch are loaded; a variable that is set already stays as it is. Products of numpy
and scipy run on one thread whatever is set: the number of threads is another order of sums, and engines set it.
"""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

CPU = Path("/proc/cpuinfo")  # of Linux
SET = {
    "MKL_CBWR": "AVX2,STRICT",  # products of torch; strict: whatever the alignment, and in a stack as alone
    "ATEN_CPU_CAPABILITY": "avx2",  # functions and sums of torch
    "ONEDNN_MAX_CPU_ISA": "AVX2",  # convolutions of torch
    "OPENBLAS_CORETYPE": "Haswell",  # products of numpy and scipy
}
ALWAYS = {"OPENBLAS_NUM_THREADS": "1"}
WIDER = {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR"}  # functions and sums of numpy


def flags() -> set[str]:
    """Return what the processor can do, in Linux's words; nothing where that is not known."""
    text = CPU.read_text(encoding="utf-8", errors="replace") if CPU.is_file() else ""
    match = re.search(r"^flags\s*: (.*)$", text, re.MULTILINE)
    return set(match[1].split()) if match else set()


def settle() -> None:
    """Set the variables: one thread everywhere, AVX2 where the processor has it; elsewhere the libraries choose."""
    os.environ.update(ALWAYS)
    able = flags() if platform.machine() == "x86_64" else set()
    if "avx2" in able:
        for name, value in (SET | (WIDER if "avx512f" in able else {})).items():
            os.environ.setdefault(name, value)
