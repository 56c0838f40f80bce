"""The sizes of a decoder, and what follows from them: shapes, floating-point operations, bytes. Needs
no PyTorch."""

import dataclasses
import json

from rows import LINEAR

ELEMENT_BYTES = 2  # fp16, bf16


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Qwen2.5-7B, or what a config.json of Hugging Face says, whose names these are."""

    hidden_size: int = 3584
    num_hidden_layers: int = 28
    num_attention_heads: int = 28
    num_key_value_heads: int = 4
    intermediate_size: int = 18944
    vocab_size: int = 152064
    rms_norm_eps: float = 1e-6
    rope_theta: float = 1e6

    @property
    def head_size(self):
        return self.hidden_size // self.num_attention_heads

    @property
    def key_value_size(self):
        return self.num_key_value_heads * self.head_size

    def shape(self, name):
        """(outputs, inputs) of a linear layer; q, k and v are one product, gate and up another."""
        hidden, inner = self.hidden_size, self.intermediate_size
        return {
            "qkv": (hidden + 2 * self.key_value_size, hidden),
            "o": (hidden, hidden),
            "gate_up": (2 * inner, hidden),
            "down": (hidden, inner),
        }[name]

    def tensors(self, layers):
        """{name in a checkpoint: shape} of the first `layers` layers and of what is around them."""
        hidden, inner, few = self.hidden_size, self.intermediate_size, self.key_value_size
        out = {"model.embed_tokens.weight": (self.vocab_size, hidden)}
        for layer in range(layers):
            attention, mlp = f"model.layers.{layer}.self_attn", f"model.layers.{layer}.mlp"
            for part, rows in (("q", hidden), ("k", few), ("v", few)):
                out[f"{attention}.{part}_proj.weight"] = (rows, hidden)
                out[f"{attention}.{part}_proj.bias"] = (rows,)
            out[f"{attention}.o_proj.weight"] = (hidden, hidden)
            out[f"{mlp}.gate_proj.weight"] = out[f"{mlp}.up_proj.weight"] = (inner, hidden)
            out[f"{mlp}.down_proj.weight"] = (hidden, inner)
            for norm in ("input_layernorm", "post_attention_layernorm"):
                out[f"model.layers.{layer}.{norm}.weight"] = (hidden,)
        out["model.norm.weight"] = (hidden,)
        out["lm_head.weight"] = (self.vocab_size, hidden)
        return out


QWEN = Sizes()


def read(path):
    """Sizes of a config.json; SystemExit in one line where it has none."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        fields = dataclasses.fields(Sizes)
        sizes = Sizes(**{field.name: field.type(told[field.name]) for field in fields})
    except OSError as error:
        raise SystemExit(f"{path}: {error.strerror}") from None
    except KeyError as error:
        raise SystemExit(f"{path}: has no {error.args[0]}") from None
    except (ValueError, TypeError) as error:
        raise SystemExit(f"{path}: no config.json of a model: {error}") from None
    if min(dataclasses.astuple(sizes)) <= 0:
        raise SystemExit(f"{path}: every size is above 0")
    heads, few = sizes.num_attention_heads, sizes.num_key_value_heads
    if sizes.hidden_size % (2 * heads) or heads % few:
        raise SystemExit(
            f"{path}: hidden_size {sizes.hidden_size}, {heads} heads and {few} key-value heads do not fit"
        )
    return sizes


def linear_flops(sizes, name, tokens):
    """Of one layer's product with dense weights."""
    rows, cols = sizes.shape(name)
    return 2 * tokens * rows * cols


def attention_flops(sizes, tokens):
    """Of the causal half of one layer: a token attends to itself and to those before."""
    return _flops_of_pairs(sizes, tokens * (tokens + 1) // 2)


def block_attention_flops(sizes, kept, diagonal, block):
    """Of `kept` blocks of pairs of tokens for each head, `diagonal` of which are cut in half."""
    pairs = (kept - diagonal) * block**2 + diagonal * block * (block + 1) // 2
    return _flops_of_pairs(sizes, pairs)


def _flops_of_pairs(sizes, pairs):
    return 4 * sizes.num_attention_heads * sizes.head_size * pairs  # scores, and values times them


def weight_bytes(sizes, layers):
    """Of the weights of `layers` layers, the embedding and the logits."""
    linear = sum(rows * cols for rows, cols in map(sizes.shape, LINEAR))
    return ELEMENT_BYTES * (layers * linear + 2 * sizes.vocab_size * sizes.hidden_size)


def activation_bytes(sizes, tokens):
    """The most that is alive at once. In the feed-forward: the residual, its normed form, gate and
    up, and their product. Twice the residual covers what the allocator keeps beside them."""
    return ELEMENT_BYTES * tokens * (4 * sizes.hidden_size + 3 * sizes.intermediate_size)


def prepare_bytes(sizes, zeros):
    """Of bringing the largest weight into blocks: its nonzeros with indices of 64 bits, and marks."""
    rows, cols = sizes.shape("gate_up")
    return int(rows * cols * ((1 - zeros) * 3 * 8 + 4))


def memory_bytes(sizes, layers, tokens, zeros=None):
    """What a run needs at least. `zeros`: share of zeros of sparse weights, None without them."""
    dense = weight_bytes(sizes, layers)
    activations = activation_bytes(sizes, tokens)
    if zeros is None:
        return dense + activations
    blocks = (1 - zeros) * (dense - weight_bytes(sizes, 0))
    return int(dense + blocks + max(activations, prepare_bytes(sizes, zeros)))
