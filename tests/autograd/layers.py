"""Small transformer layers as eager PyTorch runs them, and the bytes that autograd keeps of each.

Written from the definitions of the layers, not from preflop's data: it is the other side of the comparison.
Two choices stand in for the GPU where the CPU differs: dropout calls native_dropout, which CUDA uses (the CPU's
own keeps its mask in the tensor's type), and the statistics of a norm count 4 bytes a row, as CUDA keeps them for
bf16. Fused RMSNorm (aten._fused_rms_norm) is younger than the torch this runs on: a Function that keeps what it
keeps, the input and one statistic a row, takes its place.
"""
import math

import torch


class RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        rstd = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)
        ctx.save_for_backward(x, weight, rstd)
        return (x.float() * rstd).to(x.dtype) * weight

    @staticmethod
    def backward(ctx, grad):
        x, weight, rstd = ctx.saved_tensors
        n = x.float() * rstd
        g = grad.float() * weight
        dx = rstd * (g - n * (g * n).mean(-1, keepdim=True))
        return dx.to(x.dtype), (grad.float() * n).sum((0, 1)).to(weight.dtype)


def dropout(x, p):
    return torch.native_dropout(x, p, True)[0] if p > 0 else x


def matrix(rows, columns, bias):
    weight = torch.randn(rows, columns, dtype=torch.bfloat16) / math.sqrt(columns)
    return torch.nn.Parameter(weight), torch.nn.Parameter(torch.zeros(rows, dtype=torch.bfloat16)) if bias else None


class Layer:
    """hidden, heads, kv_heads, head_dim, ffn; gated: SwiGLU, RMSNorm, no biases; else GELU, LayerNorm, biases."""

    def __init__(self, hidden, heads, kv_heads, head_dim, ffn, gated, p):
        self.heads, self.kv, self.dim, self.gated, self.p = heads, kv_heads, head_dim, gated, p
        bias = not gated
        self.q = matrix(heads * head_dim, hidden, bias)
        self.k = matrix(kv_heads * head_dim, hidden, bias)
        self.v = matrix(kv_heads * head_dim, hidden, bias)
        self.out = matrix(hidden, heads * head_dim, bias)
        self.up = matrix(ffn, hidden, bias)
        self.gate = matrix(ffn, hidden, bias) if gated else None
        self.down = matrix(hidden, ffn, bias)
        one = lambda value: torch.nn.Parameter(torch.full((hidden,), value, dtype=torch.bfloat16))
        self.norms = [(one(1.0), one(0.0)) for _ in range(2)]

    def parameters(self):
        pairs = [self.q, self.k, self.v, self.out, self.up, self.down, *self.norms] + ([self.gate] if self.gated else [])
        return [p for pair in pairs for p in pair if p is not None]

    def norm(self, i, x):
        weight, bias = self.norms[i]
        if self.gated:
            return RmsNorm.apply(x, weight)
        return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias)

    def attention(self, x):
        b, s, _ = x.shape
        split = lambda t, n: t.view(b, s, n, self.dim)
        q, k, v = (split(torch.nn.functional.linear(x, *w), n)
                   for w, n in ((self.q, self.heads), (self.k, self.kv), (self.v, self.kv)))
        if self.kv < self.heads:  # every query head gets its key: a copy, as repeat_kv makes it
            k, v = (t[:, :, :, None, :].expand(b, s, self.kv, self.heads // self.kv, self.dim)
                    .reshape(b, s, self.heads, self.dim) for t in (k, v))
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        scores = q @ k.transpose(2, 3) / math.sqrt(self.dim)
        scores = scores + torch.full((s, s), -math.inf, dtype=x.dtype).triu(1)
        core = dropout(torch.softmax(scores, -1), self.p) @ v
        return torch.nn.functional.linear(core.transpose(1, 2).reshape(b, s, -1), *self.out)

    def mlp(self, x):
        linear = torch.nn.functional.linear
        if self.gated:
            return linear(torch.nn.functional.silu(linear(x, *self.gate)) * linear(x, *self.up), *self.down)
        return linear(torch.nn.functional.gelu(linear(x, *self.up)), *self.down)

    def __call__(self, x):
        x = x + dropout(self.attention(self.norm(0, x)), self.p)
        return x + dropout(self.mlp(self.norm(1, x)), self.p)


def saved_bytes(layer, batch, seq, hidden):
    """Bytes of the distinct storages that one layer keeps for its backward pass, parameters left out."""
    x = torch.randn(batch, seq, hidden, dtype=torch.bfloat16, requires_grad=True)
    known = {p.data_ptr() for p in layer.parameters()}
    kept = {}

    def pack(tensor):
        pointer = tensor.storage().data_ptr()
        if pointer not in known and tensor.dim() > 0:  # a constant factor is a scalar
            statistic = tensor.numel() == batch * seq and tensor.dtype != torch.int64
            kept[pointer] = (4 * tensor.numel() if statistic else tensor.storage().nbytes(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = layer(x)
    y.sum().backward()  # the graph is a real one
    assert x.grad is not None and bool(torch.isfinite(x.grad.float()).all())
    return sum(size for size, _ in kept.values())
