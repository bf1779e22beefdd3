"""What of a machine decides the last bits of a result: its processor and the library of matrix products."""

from __future__ import annotations

import os
import platform
import re

from pipeline.arithmetic import CPU, flags

WIDE = {"avx2": "AVX2", "avx512f": "AVX-512", "amx_tile": "AMX"}


def description() -> str:
    """Return this machine in words: processor, cores, vector instructions, torch with its BLAS, threads.

    For instance ``AMD EPYC, 2 cores, x86_64 with AVX2, torch 2.13.0+cpu on mkl, one thread for each training``.
    """
    import torch

    text = CPU.read_text(encoding="utf-8", errors="replace") if CPU.is_file() else ""
    name = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    able = flags()
    wide = " and ".join(words for flag, words in WIDE.items() if flag in able)
    blas = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    return (
        f"{name[1] if name else platform.processor() or 'a processor'}, {os.cpu_count()} cores, "
        f"{platform.machine()}{f' with {wide}' if wide else ''}, torch {torch.__version__}"
        f"{f' on {blas[1]}' if blas else ''}, one thread for each training"
    )
