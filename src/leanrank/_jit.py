"""Compiling kernels: cached on disk, without the GIL, serial."""

from __future__ import annotations

import gc
import os
import time
import warnings
from collections.abc import Callable, Collection
from functools import cache
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
from numba.core import event
from numba.core.ccallback import CFunc
from numba.core.compiler_lock import global_compiler_lock

from leanrank.errors import CacheWarning


def kernel(
    function: Callable[..., Any], *, fastmath: Collection[str] = (), inline: str = "never"
) -> Any:
    """Return a compiled function on plain arrays.

    Division by zero follows NumPy (inf or nan), not Python. The result is cached, so that a process
    compiles only if the code or the machine changes: in ``NUMBA_CACHE_DIR``, else beside the module
    or in the user's cache. If no folder is writable, every process compiles for itself, with a
    ``CacheWarning``.

    ``fastmath`` lists permitted changes of arithmetic, such as "contract"; the result is the same
    in every thread. ``inline="always"`` inlines a function into its callers, which avoids reference
    counting of many arrays at every call.
    """
    options = {"error_model": "numpy", "fastmath": set(fastmath), "inline": inline}
    # A second entry point, for C, would be compiled along with every kernel and its helpers.
    compiled = numba.njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    template = compiled.get_call_template
    # otherwise a constant argument would compile the kernel for each of its values

    def plain_template(args: Any, kws: Any) -> Any:
        kws = {name: numba.types.unliteral(kind) for name, kind in kws.items()}
        return template(tuple(map(numba.types.unliteral, args)), kws)

    compiled.get_call_template = plain_template
    return _cached(compiled)


@cache
def pair_function(function: Callable[[float, float], tuple[float, float]]) -> Any:
    """Return a compiled function of two numbers, with two results, as an argument of kernels.

    All such functions have one type, so a kernel is compiled and cached once for all of them. To
    pass one to a kernel takes 0.1 ms.
    """
    number = numba.float64
    signature = (number, number), numba.types.UniTuple(number, 2)
    compiled = _cached(CFunc(function, signature, {}, {"error_model": "numpy"}))
    compiled.compile()
    return compiled


def _cached(compiled: Any) -> Any:
    """Return a function whose compiled code is cached on disk, if a folder is writable."""
    try:
        compiled.enable_caching()
    except RuntimeError:  # Numba found no writable folder
        _warn_once("no folder is writable")
    else:
        _warn_if_not_saved(compiled)
    return compiled


def compile_seconds() -> float:
    """Return the seconds that this process has compiled so far, without loads from the cache."""
    return _compiling.seconds + (time.perf_counter() - _compiling.began if _compiling.depth else 0)


class _Compiling(event.Listener):
    """Measures the total time of compilations; nested ones count once.

    Garbage collection is off meanwhile: the compiler makes millions of objects, and searching among
    them takes an eighth of its time.
    """

    def __init__(self) -> None:
        self.seconds = self.began = 0.0
        self.depth = 0
        self.collecting = False

    def on_start(self, event: Any) -> None:
        if self.depth == 0:
            self.began = time.perf_counter()
            self.collecting = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.seconds += time.perf_counter() - self.began
            if self.collecting:
                gc.enable()


_compiling = _Compiling()
event.register("numba:compile", _compiling)  # Numba compiles in one thread at a time
if hasattr(os, "register_at_fork"):  # a fork waits for a thread that compiles
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )


def kernel_view(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a view without the read-only flag, for which Numba would compile a kernel again.

    Kernels never write to their inputs.
    """
    if array.flags.writeable or array.dtype == object:
        return array
    described = dict(array.__array_interface__)
    described["data"] = (described["data"][0], False)
    # the result keeps the namespace, and so the array, alive
    return np.asarray(SimpleNamespace(__array_interface__=described, array=array))


def _warn_if_not_saved(compiled: Any) -> None:
    """Let a function warn, not fail, if its code cannot be saved, as on a full disk."""
    save = compiled._cache.save_overload

    def save_or_warn(*arguments: Any) -> None:
        try:
            save(*arguments)
        except OSError as error:
            _warn_once(error.strerror or str(error))

    compiled._cache.save_overload = save_or_warn


def _warn_once(reason: str) -> None:
    if _warned:
        return
    _warned.append(reason)
    warnings.warn(
        f"compiled code cannot be saved ({reason}), so every process compiles it again, which "
        "takes seconds: set NUMBA_CACHE_DIR to a writable folder",
        CacheWarning,
        stacklevel=3,
    )


_warned: list[str] = []


@kernel
def column_dot(
    data: np.ndarray[Any, Any],
    indices: np.ndarray[Any, Any],
    begin: int,
    end: int,
    g: np.ndarray[Any, Any],
) -> float:
    """Return the product of one sparse column with a vector."""
    # Four running sums hide the latency of the additions.
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    at = begin
    while at + 4 <= end:
        s0 += data[at] * g[indices[at]]
        s1 += data[at + 1] * g[indices[at + 1]]
        s2 += data[at + 2] * g[indices[at + 2]]
        s3 += data[at + 3] * g[indices[at + 3]]
        at += 4
    while at < end:
        s0 += data[at] * g[indices[at]]
        at += 1
    return (s0 + s1) + (s2 + s3)
