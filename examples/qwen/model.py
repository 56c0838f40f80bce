"""The decoder of Qwen2.5: weights, and its forward pass for the logits of the last token."""

import functools

import torch
from torch.nn.functional import embedding

import checkpoint
from rows import LINEAR

DEVIATION = 0.02  # of weights: initializer_range of the model's config.json


class Layer:
    """Weights of one layer: those of linear layers by name, the bias of qkv, two norms."""

    def __init__(self, linear, bias, norms):
        self.linear, self.bias, self.norms = linear, bias, norms


class Weights:
    """Of the embedding, `layers`, the last norm and the logits. Layers may be one object."""

    def __init__(self, embedded, layers, norm, head):
        self.embedded, self.layers, self.norm, self.head = embedded, layers, norm, head

    def distinct(self):
        return list(dict.fromkeys(self.layers))


def random_weights(sizes, layers, shared, seed, device, dtype):
    """As an untrained model has them: normal around 0, norms of 1. `shared`: all layers are one."""
    generator = torch.Generator(device).manual_seed(seed)

    def normal(*shape):
        weight = torch.empty(shape, device=device, dtype=dtype)
        return weight.normal_(0, DEVIATION, generator=generator)

    def ones():
        return torch.ones(sizes.hidden_size, device=device, dtype=dtype)

    def layer():
        linear = {name: normal(*sizes.shape(name)) for name in LINEAR}
        return Layer(linear, normal(sizes.shape("qkv")[0]), (ones(), ones()))

    made = [layer()] * layers if shared else [layer() for _ in range(layers)]
    vocabulary = (sizes.vocab_size, sizes.hidden_size)
    return Weights(normal(*vocabulary), made, ones(), normal(*vocabulary))


def checkpoint_weights(sizes, layers, folder, device, dtype):
    tensors = checkpoint.load(folder, sizes.tensors(layers), device, dtype)

    def joined(layer, names):
        return torch.cat([tensors.pop(f"model.layers.{layer}.{name}") for name in names])

    def layer(i):
        qkv = [f"self_attn.{part}_proj" for part in "qkv"]
        linear = {
            "qkv": joined(i, [f"{name}.weight" for name in qkv]),
            "o": joined(i, ["self_attn.o_proj.weight"]),
            "gate_up": joined(i, ["mlp.gate_proj.weight", "mlp.up_proj.weight"]),
            "down": joined(i, ["mlp.down_proj.weight"]),
        }
        norms = [joined(i, [f"{name}_layernorm.weight"]) for name in ("input", "post_attention")]
        return Layer(linear, joined(i, [f"{name}.bias" for name in qkv]), norms)

    made = [layer(i) for i in range(layers)]
    names = ("model.embed_tokens", "model.norm", "lm_head")
    embedded, norm, head = (tensors[f"{name}.weight"] for name in names)
    return Weights(embedded, made, norm, head)


def norm(x, weight, eps):
    """RMSNorm in fp32."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


def add_norm(x, y, weight, eps):
    """(x + y, its norm)."""
    x = x + y
    return x, norm(x, weight, eps)


def rotate(qkv, bias, cosines, sines, key_value_heads):
    """q, k, v of the biased product [tokens x heads and key-value heads x size]; q and k turned by the
    angles of their tokens, halves against each other."""
    tokens, size = cosines.shape[0], 2 * cosines.shape[1]
    heads = (qkv.float() + bias.float()).view(tokens, -1, size)
    turned, v = heads[:, :-key_value_heads], heads[:, -key_value_heads:]
    first, second = turned.chunk(2, -1)
    cosines, sines = cosines.unsqueeze(1), sines.unsqueeze(1)
    turned = torch.cat((first * cosines - second * sines, second * cosines + first * sines), -1)
    turned, v = turned.to(qkv.dtype), v.to(qkv.dtype)
    return turned[:, :-key_value_heads], turned[:, -key_value_heads:], v


def swiglu(gate_up):
    gate, up = gate_up.float().chunk(2, -1)
    return (torch.nn.functional.silu(gate) * up).to(gate_up.dtype)


def angles(sizes, tokens, device):
    """Cosines and sines [tokens x half of a head] of the rotary embedding."""
    exponents = torch.arange(0, sizes.head_size, 2, device=device, dtype=torch.float64)
    frequencies = sizes.rope_theta ** (-exponents / sizes.head_size)
    turns = torch.outer(torch.arange(tokens, device=device, dtype=torch.float64), frequencies)
    return turns.cos().float(), turns.sin().float()


@functools.cache
def compiled(step):
    """One kernel instead of one for each operation of PyTorch."""
    return torch.compile(step)


class Decoder:
    """Logits of the last token. `linear`: for each layer {name: product}; `attention`: of q, k, v."""

    def __init__(self, sizes, weights, tokens, device):
        self._sizes, self._weights = sizes, weights
        self._angles = angles(sizes, tokens, device)
        steps = (norm, add_norm, rotate, swiglu)
        if torch.device(device).type == "cuda":
            steps = map(compiled, steps)
        self._norm, self._add_norm, self._rotate, self._swiglu = steps

    @torch.no_grad()
    def __call__(self, ids, linear, attention, clock):
        """`clock.mark(operation)` is called behind each operation, `clock.next_layer()` behind a layer."""
        sizes, mark = self._sizes, clock.mark
        eps = sizes.rms_norm_eps
        clock.start()
        x, y = embedding(ids, self._weights.embedded), None
        mark("embedding")
        for layer, product in zip(self._weights.layers, linear):
            if y is None:
                normed = self._norm(x, layer.norms[0], eps)
            else:
                x, normed = self._add_norm(x, y, layer.norms[0], eps)
            mark("norm")
            y = product["qkv"](normed)
            mark("qkv")
            q, k, v = self._rotate(y, layer.bias, *self._angles, sizes.num_key_value_heads)
            mark("rotary")
            y = attention(q, k, v, mark).reshape(len(ids), sizes.hidden_size)
            del q, k, v
            mark("attention")
            y = product["o"](y)
            mark("o")
            x, normed = self._add_norm(x, y, layer.norms[1], eps)
            mark("norm")
            y = product["gate_up"](normed)
            del normed
            mark("gate_up")
            if not product["gate_up"].gates:
                y = self._swiglu(y)
                mark("swiglu")
            y = product["down"](y)
            mark("down")
            clock.next_layer()
        _, last = self._add_norm(x[-1:], y[-1:], self._weights.norm, eps)
        logits = torch.nn.functional.linear(last, self._weights.head)
        mark("logits")
        return logits[0].float()
