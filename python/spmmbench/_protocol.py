"""The protocol of docs/methodology.md for Python callables: warm-up, hot and cold samples, when to
stop. The rules and numbers are those of src/timing and src/gpu."""

import contextlib
import math
import numbers
import operator
import os
import re
import statistics
import sys
import time

import numpy as np

from . import _dense, _random
from .errors import InvalidArgument

WARMUP_US = 5_000  # launches before the first sample, at least two
SAMPLE_US = 500  # hot: launches are batched until a sample lasts this long
MAX_BATCH = 256
LAUNCHES_AFTER_TIMING = 3
LEAST_SAMPLES, MOST_SAMPLES = 10, 200  # unless asked otherwise
HOLD_CYCLES_PER_LAUNCH = 20_000  # of the GPU, so that the host can enqueue ahead of it
MAX_HOLD_CYCLES = 1_000_000
LEAST_FLUSH_BYTES = 32 << 20  # on a GPU
UNKNOWN_CACHE_BYTES = 64 << 20  # of a processor that reports none
SYSCONF_L3_BYTES, SYSCONF_L2_BYTES = 194, 191  # of glibc; Python has no names for them
COPY_BYTES = 1 << 30
COPIES = 9


def whole_number(name, value, least, most, wanted):
    """`value` as an int, any whole number from least to most."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        raise InvalidArgument(f"{name} is {value!r}; {wanted} is wanted")
    return number


def _require_number(name, value, least, wanted):
    if not isinstance(value, numbers.Real) or not least <= value <= math.inf:
        raise InvalidArgument(f"{name} is {value!r}; a number {wanted} is wanted")


class Limits:
    """When enough samples were taken: see Stopping in docs/methodology.md."""

    def __init__(
        self, noise=0.01, min_samples=LEAST_SAMPLES, max_samples=MOST_SAMPLES, max_seconds=1.0
    ):
        _require_number("noise", noise, 0, "that is not negative")
        for name, samples in (("min_samples", min_samples), ("max_samples", max_samples)):
            whole_number(name, samples, 1, math.inf, "an integer from 1")
        _require_number("max_seconds", max_seconds, sys.float_info.min, "above 0")
        if min_samples > max_samples:  # where one of them was given, it moves the default of the other
            if min_samples == LEAST_SAMPLES:
                min_samples = max_samples
            elif max_samples == MOST_SAMPLES:
                max_samples = min_samples
            else:
                raise InvalidArgument(f"min_samples is {min_samples}, and max_samples {max_samples}")
        self.noise, self.min_samples = noise, min_samples
        self.max_samples, self.max_seconds = max_samples, max_seconds

    def enough(self, samples, elapsed_s):
        if not samples:
            return False
        if len(samples) >= self.max_samples or elapsed_s >= self.max_seconds:
            return True
        return len(samples) >= self.min_samples and relative_noise(samples) <= self.noise


def relative_noise(samples):
    """The standard error of the median, from the quartiles, over the median."""
    if len(samples) < 4:
        return math.inf
    q1, median, q3 = np.quantile(samples, (0.25, 0.5, 0.75))
    if median <= 0:
        return math.inf
    return 1.2533 * (q3 - q1) / 1.349 / median / math.sqrt(len(samples))


def summarise(samples, launches_per_sample):
    """The fields of `hot` and `cold`."""
    q1, median, q3 = (float(q) for q in np.quantile(samples, (0.25, 0.5, 0.75)))
    return {
        "median_us": median,
        "q1_us": q1,
        "q3_us": q3,
        "min_us": min(samples),
        "n": len(samples),
        "launches_per_sample": launches_per_sample,
        "samples_us": samples,
    }


def _batch_for(each_us):
    """Launches of each_us that last as long as a sample."""
    return min(max(math.ceil(SAMPLE_US / max(each_us, 1e-3)), 1), MAX_BATCH)


def sample_hot(bench, launch, limits, before_first=lambda: None):
    """Back-to-back launches over one set of buffers, time per launch. before_first is called after
    any recording, just before the first sample."""
    warm_us = last_us = 0.0
    launches = 0
    while launches < 2 or (warm_us < WARMUP_US and launches < MAX_BATCH):
        last_us = bench.time_us(launch, 1)
        warm_us += last_us
        launches += 1
    each_us = bench.time_us(launch, 8) / 8 if last_us < SAMPLE_US else last_us
    batch = _batch_for(each_us)
    while True:
        replay = bench.record(launch, batch)
        replay()
        before_first()
        samples = []
        start = time.perf_counter()
        while not limits.enough(samples, time.perf_counter() - start):
            samples.append(replay() / batch)
        timing = summarise(samples, batch)
        # Where the host was held up, the eight launches looked longer than they are.
        if timing["median_us"] * batch >= SAMPLE_US / 2 or batch == MAX_BATCH:
            return timing
        batch = _batch_for(timing["median_us"])


def sample_cold(bench, launch, limits, before_first=lambda: None):
    """One launch at a time, the last-level cache flushed before each."""
    before_first()
    samples = []
    start = time.perf_counter()
    while not limits.enough(samples, time.perf_counter() - start):
        bench.flush()
        samples.append(bench.time_us(launch, 1))
    return summarise(samples, 1)


class _Bench:
    """Arrays, arithmetic in fp64 and a clock, of one array library on one device."""

    on_gpu = False
    copy_gb_per_s = None  # measured on a GPU, read plus written
    timer_floor_us = None

    def largest(self, x):
        """(index in row order, value) of the largest element; NaN counts as infinity. (0, 0.0) of an
        array without elements."""
        if 0 in x.shape:
            return 0, 0.0
        at = int(x.argmax())
        value = float(x.reshape(-1)[at])
        return at, math.inf if math.isnan(value) else value

    def absolute(self, x):
        return abs(x)

    def current(self):
        """A context in which the device of the arrays is the current one."""
        return contextlib.nullcontext()

    def uniform_b(self, seed, k, n, precision, layout):
        """B as the program makes it, K x n, rounded to the precision."""
        values = _random.uniform_b(seed, self.range(k).reshape(-1, 1), self.range(n).reshape(1, -1))
        b = self.rounded(self.float32(values) * 2.0**-24, precision)
        return b if layout == "row" else self.contiguous(b.T).T


class NumpyBench(_Bench):
    xp = np
    _flush = None

    def range(self, count):
        return np.arange(count, dtype=np.int64)

    def float32(self, x):
        return x.astype(np.float32)

    def float64(self, x):
        return x.astype(np.float64)

    def contiguous(self, x):
        return np.ascontiguousarray(x)

    def rounded(self, x, precision):
        if precision == "tf32":
            return _random.round_tf32_bits(x.view(np.int32)).view(np.float32)
        if precision == "bf16":
            raise InvalidArgument("NumPy has no bf16: pass like= of another library")
        return x.astype({"fp32": np.float32, "fp16": np.float16}[precision])

    def sparse64(self, a):
        exact = a.to_scipy()
        return exact, abs(exact), np.diff(exact.indptr).astype(np.float64).reshape(-1, 1)

    def poison(self, c):
        c.fill(np.nan)

    def synchronize(self):
        pass

    def time_us(self, launch, count):
        start = time.perf_counter()
        for _ in range(count):
            launch()
        return (time.perf_counter() - start) * 1e6

    def record(self, launch, count):
        return lambda: self.time_us(launch, count)

    def flush(self):
        if self._flush is None:
            self._flush = np.zeros(2 * _last_level_cache(), np.uint8)
        self._flush += 1


def _last_level_cache():
    """Bytes, as the program takes them: see src/gpu/host_device.cpp."""
    given = os.environ.get("SPMMBENCH_CACHE_MIB")
    if given is not None:
        if not re.fullmatch("[0-9]{1,10}", given) or not 0 < int(given) < 2**32:
            raise InvalidArgument(f"SPMMBENCH_CACHE_MIB={given}: expected a number from 1")
        return int(given) << 20
    for name in SYSCONF_L3_BYTES, SYSCONF_L2_BYTES:
        try:
            if (reported := os.sysconf(name)) > 0:
                return reported
        except OSError:  # no such name in this C library
            pass
    return UNKNOWN_CACHE_BYTES


class TorchBench(NumpyBench):
    """On the CPU the clock is NumpyBench's; TorchGpuBench has a GPU's."""

    def __init__(self, device):
        self.xp = _dense.loaded("torch")
        self.device = self.xp.device(device)

    def range(self, count):
        return self.xp.arange(count, device=self.device)

    def float32(self, x):
        return x.to(self.xp.float32)

    def float64(self, x):
        return x.to(self.xp.float64)

    def contiguous(self, x):
        return x.contiguous()

    def rounded(self, x, precision):
        torch = self.xp
        if precision == "tf32":
            return _random.round_tf32_bits(x.view(torch.int32)).view(torch.float32)
        names = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
        return x.to(names[precision])

    def sparse64(self, a):
        torch = self.xp
        row_ptr, col_idx, values = (
            torch.as_tensor(x, device=self.device) for x in (a.row_ptr, a.col_idx, a.values)
        )
        row_ptr, col_idx = row_ptr.long(), col_idx.long()
        values = values.double()
        matrices = [
            torch.sparse_csr_tensor(row_ptr, col_idx, x, size=a.shape)
            for x in (values, values.abs())
        ]
        return *matrices, row_ptr.diff().double().reshape(-1, 1)

    def poison(self, c):
        with self.xp.inference_mode():  # C may be of that mode
            c.fill_(math.nan)


class TorchGpuBench(TorchBench):
    on_gpu = True

    def __init__(self, device):
        super().__init__(device)
        cuda = self.xp.cuda
        with self.current():
            self._start, self._stop = (cuda.Event(enable_timing=True) for _ in range(2))
            self._capture_stream = cuda.Stream(self.device)  # torch's own is of the first device that captured
            floor = [self.time_us(lambda: None, 1) for _ in range(COPIES)]
            self.timer_floor_us = statistics.median(floor)
            self.copy_gb_per_s = _measure_copy(self, self._bytes, lambda to, x: to.copy_(x))
        self._flushed = None

    def current(self):
        return self.xp.cuda.device(self.device)

    def _bytes(self, count):
        free = self.xp.cuda.mem_get_info(self.device)[0]
        return self.xp.zeros(min(count, free // 4), dtype=self.xp.uint8, device=self.device)

    def synchronize(self):
        self.xp.cuda.synchronize(self.device)

    def time_us(self, launch, count):
        self.xp.cuda._sleep(min(count * HOLD_CYCLES_PER_LAUNCH, MAX_HOLD_CYCLES))
        self._start.record()
        for _ in range(count):
            launch()
        self._stop.record()
        self._stop.synchronize()
        return self._start.elapsed_time(self._stop) * 1e3

    def record(self, launch, count):
        graph = self.xp.cuda.CUDAGraph()
        self.synchronize()
        try:
            with self.xp.cuda.graph(graph, stream=self._capture_stream):
                for _ in range(count):
                    launch()
        except RuntimeError:  # does something that a capture forbids: launched one by one
            self.synchronize()
            return super().record(launch, count)
        return lambda: self.time_us(graph.replay, 1)

    def flush(self):
        if self._flushed is None:
            cache = self.xp.cuda.get_device_properties(self.device).L2_cache_size
            self._flushed = self._bytes(max(2 * cache, LEAST_FLUSH_BYTES)).view(self.xp.int32)
        self._flushed.sum()  # reads every byte of it


class CupyBench(_Bench):
    on_gpu = True

    def __init__(self):
        self.xp = cupy = _dense.loaded("cupy")
        self._hold = cupy.RawKernel(
            'extern "C" __global__ void hold(long long cycles) '
            "{ long long start = clock64(); while (clock64() - start < cycles) {} }",
            "hold",
        )
        self._stream = cupy.cuda.Stream(non_blocking=False)
        self._start, self._stop = cupy.cuda.Event(), cupy.cuda.Event()
        floor = [self.time_us(lambda: None, 1) for _ in range(COPIES)]
        self.timer_floor_us = statistics.median(floor)
        self.copy_gb_per_s = _measure_copy(self, self._bytes, self.xp.copyto)
        self._flushed = None

    def _bytes(self, count):
        free = self.xp.cuda.runtime.memGetInfo()[0]
        return self.xp.zeros(min(count, free // 4), dtype=self.xp.uint8)

    def range(self, count):
        return self.xp.arange(count, dtype=np.int64)

    def float32(self, x):
        return x.astype(np.float32)

    def float64(self, x):
        return x.astype(np.float64)

    def contiguous(self, x):
        return self.xp.ascontiguousarray(x)

    def rounded(self, x, precision):
        if precision == "tf32":
            return _random.round_tf32_bits(x.view(np.int32)).view(np.float32)
        if precision == "bf16":
            raise InvalidArgument("CuPy has no bf16: pass like= of another library")
        return x.astype({"fp32": np.float32, "fp16": np.float16}[precision])

    def sparse64(self, a):
        import cupyx.scipy.sparse

        exact = cupyx.scipy.sparse.csr_matrix(a.to_scipy())
        lengths = self.xp.diff(exact.indptr).astype(np.float64).reshape(-1, 1)
        return exact, abs(exact), lengths

    def poison(self, c):
        c.fill(np.nan)

    def synchronize(self):
        self.xp.cuda.runtime.deviceSynchronize()

    def time_us(self, launch, count):
        with self._stream:
            cycles = min(count * HOLD_CYCLES_PER_LAUNCH, MAX_HOLD_CYCLES)
            self._hold((1,), (1,), (np.int64(cycles),))
            self._start.record()
            for _ in range(count):
                launch()
            self._stop.record()
            self._stop.synchronize()
        return self.xp.cuda.get_elapsed_time(self._start, self._stop) * 1e3

    def record(self, launch, count):
        self.synchronize()
        with self._stream:
            self._stream.begin_capture()
            captured = True
            try:
                for _ in range(count):
                    launch()
            except Exception:  # does something that a capture forbids: launched one by one
                captured = False
            try:
                graph = self._stream.end_capture()
            except self.xp.cuda.runtime.CUDARuntimeError:
                captured = False
        if not captured:
            return lambda: self.time_us(launch, count)
        return lambda: self.time_us(lambda: graph.launch(self._stream), 1)

    def flush(self):
        if self._flushed is None:
            cache = self.xp.cuda.Device().attributes["L2CacheSize"]
            self._flushed = self._bytes(max(2 * cache, LEAST_FLUSH_BYTES)).view(np.int32)
        self._flushed.sum()


def _measure_copy(bench, allocate, copy):
    """Gigabytes per second of a large copy on the device, read plus written."""
    source = allocate(COPY_BYTES)
    target = allocate(COPY_BYTES)
    copy(target, source)
    times = [bench.time_us(lambda: copy(target, source), 1) for _ in range(COPIES)]
    return 2 * source.nbytes / statistics.median(times) / 1e3


def bench_for(like):
    """The bench of the library and the device of an array."""
    if _dense.is_torch(like):
        kind = TorchGpuBench if like.is_cuda else TorchBench
        return kind(like.device)
    if isinstance(like, np.ndarray):
        return NumpyBench()
    if _dense.is_cupy(like):
        return CupyBench()
    raise InvalidArgument(
        f"arrays of {type(like).__module__} cannot be measured; those of NumPy, torch and CuPy can"
    )
