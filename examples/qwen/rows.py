"""The modes that are measured, and what a row says of the times of one. Needs no PyTorch."""

import statistics

MODES = ("dense", "flex", "attention", "pruned", "linear", "both")  # in the order in which they are measured
SPARSE_LINEAR, SPARSE_ATTENTION = ("linear", "both"), ("flex", "attention", "both")
LINEAR = ("qkv", "o", "gate_up", "down")
OPERATIONS = (
    "embedding", "norm", "qkv", "rotary", "find blocks", "attention", "o", "gate_up", "swiglu", "down", "logits",
)  # fmt: skip
AROUND = ("embedding", "logits")  # in no layer
# How far logits may part from those of dense weights with the same zeros and FlexAttention, over the
# largest logit: what rounding does in 28 layers, with room. A wrong product changes them by as much as
# they are.
LARGEST_DIFFERENCE = {"fp16": 0.05, "bf16": 0.3}


def totals(passes, layers, measured_layers):
    """What a row says of passes, each a list of (layer, operation, ms): totals of a model of `layers`
    layers, of which `measured_layers` were timed."""
    scale = layers / measured_layers

    def scaled_us(spans):
        return [1e3 * ms * (1 if operation in AROUND else scale) for _, operation, ms in spans]

    samples = [sum(scaled_us(spans)) for spans in passes]
    quartiles = statistics.quantiles(samples, n=4, method="inclusive") if samples[1:] else samples * 3
    operations, each_layer = {}, [0.0] * measured_layers
    for (layer, operation, _), *times in zip(passes[0], *map(scaled_us, passes)):
        us = statistics.median(times)
        operations[operation] = operations.get(operation, 0.0) + us
        if operation not in AROUND:
            each_layer[layer] += us / scale
    return {
        "hot": {
            "median_us": quartiles[1],
            "q1_us": quartiles[0],
            "q3_us": quartiles[2],
            "min_us": min(samples),
            "n": len(samples),
        },
        "metrics": {f"{operation}_us": us for operation, us in operations.items()},
        "layers_us": each_layer,
    }
