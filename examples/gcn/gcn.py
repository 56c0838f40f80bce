#!/usr/bin/env python3
"""Trains a graph convolutional network with its sparse product by several backends, and says how
long an epoch takes with each (the set-up of RSH-SpMM, section 4.4: six layers, hidden widths 64 and
256, all vertices in every step).

  gcn.py --out gcn.json data/*.mtx SNAP/com-Amazon 'gen:rmat?scale=18&edge_factor=8'
  gcn.py --out gcn.json --backends torch,auto --precision fp16 --widths 256 DD.mtx
  report.py gcn.json --figure gcn             a table, and gcn.svg and gcn.png, of it

Graphs are Matrix Market files, .npz of scipy.sparse, SuiteSparse names (GROUP/NAME, downloaded) or
gen: specifications of spmmbench. Features, labels and initial weights depend on the seed and the
graph alone. Every backend trains the same model by the same steps, from the same weights:

  H' = relu(A H W), A the normalised adjacency matrix, six times, the last without relu; softmax
  cross-entropy over all vertices; Adam. Weights are fp32. With fp16 they are rounded for the
  products, dense and sparse, which write fp16; gradients are scaled by a constant.

An epoch is timed twice: as Python launches it, and as one CUDA graph, for every backend alike. A
graph removes what the host takes to launch, which on small graphs is most of an epoch. Losses are
those of the epochs in the CUDA graph. How far losses part by rounding alone is shown by a second
training with torch.sparse whose initial weights are changed by an ulp of the precision.
"""

import argparse
import gc
import json
import math
import pathlib
import statistics
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from command_line import Parser, require, run  # noqa: E402

require("numpy", "scipy", "torch", "spmmbench")

import backends  # noqa: E402
import graphs  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

LAYERS = 6
CLASSES = 16
LEARNING_RATE = 0.003
LOSS_SCALE = {"fp32": 1.0, "tf32": 1.0, "fp16": 4096.0}  # keeps fp16 gradients above subnormals
BACKENDS = ("torch", "pyg", "auto", "rsh", "async_wcsr")
REFERENCE = "torch"
# Relative change of the initial weights that shows how far losses part by rounding alone: an ulp.
ULP = {"fp32": 2.0**-23, "tf32": 2.0**-10, "fp16": 2.0**-10}
WARM_UP_EPOCHS = 3
PRODUCTS_PER_SAMPLE, PRODUCT_SAMPLES = 10, 3
PREPARATIONS = 3  # whose median counts
SLOW_MS = 5.0  # of one product: one sample is enough
HOPELESS = 10  # times the fastest form of a backend: not measured further


class Gcn(torch.nn.Module):
    """H' = relu(A H W) for each weight matrix W, the last without relu."""

    def __init__(self, widths, seed, device):
        super().__init__()
        random = torch.Generator().manual_seed(seed)
        self.weights = torch.nn.ParameterList()
        for rows, columns in zip(widths, widths[1:]):
            bound = (6 / (rows + columns)) ** 0.5  # Glorot and Bengio, 2010
            weight = torch.rand((rows, columns), generator=random) * 2 * bound - bound
            self.weights.append(torch.nn.Parameter(weight.to(device)))

    def forward(self, product, x):
        last = len(self.weights) - 1
        for layer, weight in enumerate(self.weights):
            x = product(x @ weight.to(x.dtype))
            if layer < last:
                x = torch.relu(x)
        return x


class Task:
    """Features, and labels that a network can learn from them: the largest of CLASSES random
    projections of the features, averaged over neighbours twice."""

    def __init__(self, matrix, width, seed, device):
        random = torch.Generator(device).manual_seed(seed)
        self.features = torch.randn((matrix.shape[0], width), generator=random, device=device)
        projected = self.features @ torch.randn((width, CLASSES), generator=random, device=device)
        labels = (matrix @ (matrix @ projected.cpu().numpy())).argmax(1)
        self.labels = torch.as_tensor(labels, device=device)


class Training:
    """One model, one backend, one precision. `nudge`: relative change of the initial weights."""

    def __init__(self, product, task, width, precision, seed, nudge=0.0):
        self._product = product
        self._labels = task.labels
        self._scale = LOSS_SCALE[precision]
        device = task.features.device
        dtype = backends.dtype_of(precision)
        self._features = task.features.to(dtype)
        self._model = Gcn([width] * LAYERS + [CLASSES], seed, device)
        with torch.no_grad():
            torch._foreach_mul_(self.weights(), 1 + nudge)
        on_gpu = device.type == "cuda"
        self._optimiser = torch.optim.Adam(
            self._model.parameters(), lr=LEARNING_RATE, fused=on_gpu, capturable=on_gpu
        )
        self.loss = torch.zeros((), device=device)

    def weights(self):
        return list(self._model.parameters())

    def epoch(self):
        """One step over all vertices; afterwards `loss` is that of the step's forward pass."""
        self._optimiser.zero_grad(set_to_none=True)
        output = self._model(self._product, self._features).float()
        loss = torch.nn.functional.cross_entropy(output, self._labels)
        (loss * self._scale).backward()
        if self._scale != 1:
            torch._foreach_mul_([p.grad for p in self._model.parameters()], 1 / self._scale)
        self._optimiser.step()
        self.loss.copy_(loss.detach())


def quartiles(samples):
    q1, median, q3 = (float(q) for q in np.quantile(samples, (0.25, 0.5, 0.75)))
    return {"median": median, "q1": q1, "q3": q3, "n": len(samples)}


class Clock:
    """Milliseconds of a call, on the GPU between events, on the CPU by the wall."""

    def __init__(self, device):
        self._on_gpu = device.type == "cuda"
        if self._on_gpu:
            self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def ms(self, call):
        if not self._on_gpu:
            start = time.perf_counter()
            call()
            return (time.perf_counter() - start) * 1e3
        start, stop = self._events
        start.record()
        call()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop)


def recorded(call, device):
    """`call` as one CUDA graph, on a CPU itself. It has run before."""
    if device.type != "cuda":
        return call
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def launch_aside(call, device):
    """Calls on another stream than the default one: there what is to be captured must run first."""
    if device.type != "cuda":
        return call()
    with torch.cuda.stream(torch.cuda.Stream()):
        call()
    torch.cuda.synchronize()


def epochs_in_graph(args, training, epochs):
    """(milliseconds of each epoch but the first, loss of each epoch), in a CUDA graph."""
    launch_aside(training.epoch, args.device)  # makes the optimiser's state
    losses = [training.loss.clone()]
    replay = recorded(training.epoch, args.device)
    clock, times = Clock(args.device), []
    deadline = time.perf_counter() + args.seconds
    while len(losses) < epochs and (len(times) < 3 or time.perf_counter() < deadline):
        times.append(clock.ms(replay))
        losses.append(training.loss.clone())
    return times, [round(float(loss), 6) for loss in losses]


def train(args, product, task, width, precision, backend):
    """Times of an epoch and the losses, for one backend."""
    new = (product, task, width, precision, args.seed)
    clock, training = Clock(args.device), Training(*new)
    for _ in range(WARM_UP_EPOCHS):
        launch_aside(training.epoch, args.device)
    eager = [clock.ms(training.epoch) for _ in range(args.eager_epochs)]
    compared = backend in (REFERENCE, "auto")
    epochs = args.epochs if compared else min(args.epochs, args.other_epochs)
    times, losses = epochs_in_graph(args, Training(*new), epochs)
    row = {"epoch_ms": quartiles(times), "eager_epoch_ms": quartiles(eager), "losses": losses}
    if backend == REFERENCE:
        nudged = Training(*new, nudge=ULP[precision])
        row["losses_nudged"] = epochs_in_graph(args, nudged, epochs)[1]
    return row


def wall_ms(device, call):
    """Milliseconds of a call and all that it has launched."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1e3


def whole_runs(args, a, task, width, precision, calls):
    """Milliseconds of trainings as a program of a few lines makes them: by a SparseMatrix that is told
    nothing, launched by Python, from the arrays of A to the last of args.planned_epochs epochs; and of the
    same epochs where all was prepared before."""
    first, prepared, ready = [], [], backends.Spmmbench(a, precision, calls=calls)
    new = (task, width, precision, args.seed)

    def epochs(product):
        training = Training(product, *new)
        for _ in range(args.planned_epochs):
            training.epoch()

    for _ in range(args.runs):
        first.append(wall_ms(args.device, lambda: epochs(backends.Spmmbench(a, precision))))
        prepared.append(wall_ms(args.device, lambda: epochs(ready)))
    return {"epochs": args.planned_epochs, "ms": quartiles(first), "prepared_ms": quartiles(prepared)}


def product_ms(args, backend, width, rows, dtype, best):
    """The sparse products of an epoch, each alone, back to back: LAYERS forward and backward, of
    which the last layer's are CLASSES wide. An estimate where it is far above `best`."""
    clock = Clock(args.device)
    total = 0.0
    with torch.no_grad():
        for columns, count in ((width, LAYERS - 1), (CLASSES, 1)):
            x = torch.randn((rows, columns), device=args.device).to(dtype)
            for product in (backend.product, backend.transposed):

                def several(product=product, x=x):
                    for _ in range(PRODUCTS_PER_SAMPLE):
                        product(x)

                product(x)
                ms = clock.ms(lambda product=product, x=x: product(x))
                if ms * 2 * LAYERS > HOPELESS * best + SLOW_MS:
                    return ms * 2 * LAYERS
                if ms < SLOW_MS:
                    replay = recorded(several, args.device)
                    replay()
                    times = [clock.ms(replay) for _ in range(PRODUCT_SAMPLES)]
                    ms = statistics.median(times) / PRODUCTS_PER_SAMPLE
                total += count * ms
    return total


def call_us(backend, width, rows, dtype, device):
    """What the host takes to launch one product, in microseconds."""
    x = torch.zeros((rows, width), device=device, dtype=dtype)
    calls = 20  # fewer than the queue of launches holds
    with torch.no_grad():
        backend.product(x)
        times = []
        for _ in range(PRODUCT_SAMPLES):
            if device.type == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(calls):
                backend.product(x)
            times.append((time.perf_counter() - start) / calls * 1e6)
    return statistics.median(times)


def measure(args, matrix, task, backend, width, precision):
    """The fields of a row that depend on the backend."""
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    dtype = backends.dtype_of(precision)
    made, tried, reasons = {}, {}, {}
    calls = {CLASSES: args.planned_epochs}  # of A, and as many of its transpose
    calls[width] = args.planned_epochs * (LAYERS - 1) + calls.get(width, 0)
    forms = backends.forms(backend, precision, calls)
    a = backends.on_device(matrix, args.device, precision)
    for form, make in forms.items():
        try:
            first = wall_ms(args.device, lambda: made.update({form: make(a)}))
            prepare = []  # once its code is loaded
            for _ in range(PREPARATIONS):
                made.pop(form)
                prepare.append(wall_ms(args.device, lambda: made.update({form: make(a)})))
            best = min((ms for ms, *_ in tried.values()), default=math.inf)
            ms = product_ms(args, made[form], width, matrix.shape[0], dtype, best)
            tried[form] = (ms, statistics.median(prepare), first)
        except Exception as error:  # this form cannot: another may
            made.pop(form, None)
            reasons[form] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            if args.device.type == "cuda":
                torch.cuda.empty_cache()
    row = {"status": "failed", "reason": "; ".join(f"{k}: {v}" for k, v in reasons.items())}
    if not tried:
        return row
    form = min(tried, key=lambda name: tried[name][0])
    chosen = made[form]
    made.clear()
    row.update(
        form=form,
        product_ms_of_forms={name: ms for name, (ms, *_) in tried.items()},
        product_ms=tried[form][0],
        prepare_ms=tried[form][1],
        first_prepare_ms=tried[form][2],
        call_us=call_us(chosen, width, matrix.shape[0], dtype, args.device),
    )
    if isinstance(chosen, backends.Spmmbench):
        row["picked"] = {str(n): chosen.picked(n) for n in (width, CLASSES)}
    try:
        row.update(train(args, chosen, task, width, precision, backend))
        if backend == "auto" and args.runs > 0:
            row["run"] = whole_runs(args, a, task, width, precision, calls)
        row["status"] = "ok"
    except Exception as error:
        row["reason"] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return row


def names(text):
    return text.split(",")


def numbers(text):
    return [int(x) for x in text.split(",")]


def parser_of(description, backends, precisions):
    """With the arguments that every training has; parsed and checked by `parsed`."""
    parser = Parser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH")
    parser.add_argument("--out", required=True, help="the result, rewritten after every row")
    parser.add_argument("--backends", type=names, default=list(backends))
    parser.add_argument("--precision", type=names, default=list(precisions))
    parser.add_argument("--widths", type=numbers, default=[64, 256])
    parser.add_argument("--device", type=torch.device, default=None, help="cuda or cpu")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spmmbench", default="spmmbench", help="the program, for gen: graphs")
    parser.add_argument("--downloads", default="suitesparse", help="folder of SuiteSparse's files")
    return parser


def parsed(parser, backends, counts):
    """`counts`: options that are numbers, or lists of them, from 1."""
    args = parser.parse_args()
    if args.device is None:
        args.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if args.device.type not in ("cuda", "cpu"):
        parser.error(f"--device {args.device}: expected cuda or cpu")
    if args.device.type == "cuda" and not torch.cuda.is_available():
        parser.error(f"--device {args.device}: no CUDA device")
    if wrong := set(args.precision) - set(LOSS_SCALE):
        parser.error(f"precision {', '.join(wrong)}: {', '.join(LOSS_SCALE)} are possible")
    if wrong := set(args.backends) - set(backends):
        parser.error(f"backend {', '.join(wrong)}: {', '.join(backends)} are possible")
    if min(np.min(getattr(args, count)) for count in counts) < 1:
        parser.error(f"{', '.join(counts[:-1])} and {counts[-1]} are numbers from 1")
    return args


def parse():
    parser = parser_of(__doc__, BACKENDS, ("fp32", "tf32", "fp16"))
    parser.add_argument("--epochs", type=int, default=100, help="of torch and auto")
    parser.add_argument("--other-epochs", type=int, default=20, help="of the other backends")
    parser.add_argument("--eager-epochs", type=int, default=10, help="without a CUDA graph")
    parser.add_argument(
        "--planned-epochs", type=int, default=500, help="of which `auto` is told, and of a whole run"
    )
    parser.add_argument(
        "--runs", type=int, default=0, help="whole runs of `auto`, with all that it prepares, to measure"
    )
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="most that the epochs of one row may take"
    )
    return parsed(parser, BACKENDS, ("other_epochs", "eager_epochs", "planned_epochs", "epochs", "widths"))


def context(args, layers):
    import spmmbench

    library = spmmbench.load()
    told = {
        "torch": torch.__version__,
        "spmmbench": library.version,
        "device": "CPU",
        "layers": layers,
        "classes": CLASSES,
        "seed": args.seed,
        "started_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    if args.device.type == "cuda":
        told.update(device=torch.cuda.get_device_name(), cuda=torch.version.cuda)
    try:
        import torch_geometric

        told["torch_geometric"] = torch_geometric.__version__
    except ImportError:
        pass
    return told


def write(path, document):
    """The document with a line per row."""
    rows = ",\n".join(json.dumps(row) for row in document["rows"])
    context_text = json.dumps(document["context"])
    path.write_text(f'{{"context": {context_text},\n"rows": [\n{rows}\n]}}\n')


def main():
    args = parse()
    start = time.perf_counter()
    rows = []
    out = pathlib.Path(args.out)
    told = {"epochs": args.epochs, "planned_epochs": args.planned_epochs}
    document = {"context": {**context(args, LAYERS), **told}, "rows": rows}
    gc.disable()
    for source in args.graphs:
        name, adjacency = graphs.load(source, args.spmmbench, args.downloads)
        matrix = graphs.normalised(adjacency)
        about = {"name": name, "vertices": matrix.shape[0], "nonzeros": matrix.nnz}
        for width in args.widths:
            task = Task(matrix, width, args.seed, args.device)
            for precision in args.precision:
                for backend in args.backends:
                    if precision == "fp32" and backend in ("rsh", "async_wcsr"):
                        continue  # kernels of the tensor cores, which have no fp32
                    row = {"graph": about, "width": width, "precision": precision}
                    row["backend"] = backend
                    gc.collect()  # memory that is freed during a capture would end it
                    row.update(measure(args, matrix, task, backend, width, precision))
                    rows.append(row)
                    write(out, document)
                    line = f"{time.perf_counter() - start:.0f} s: "
                    line += f"{name} width {width} {precision} {backend}: "
                    if row["status"] == "ok":
                        line += f"{row['epoch_ms']['median']:.3f} ms an epoch, loss "
                        line += f"{row['losses'][0]:.4f} to {row['losses'][-1]:.4f}"
                    else:
                        line += row["reason"]
                    print(line, flush=True)


if __name__ == "__main__":
    run(main)
