"""Tasks of many kinds, small ones: state in every place, randomness, integers, views, control flow by data, nested
inputs and outputs, arithmetic of all sorts. A candidate that is a task's own text is right by definition."""

from __future__ import annotations

from textwrap import dedent, indent


def own(inputs: str, forward: str, *, init: str = "pass", args: str = "x", head: str = "") -> str:
    """A task's text: what `get_inputs` lists, the body of `forward` and of the constructor, and what stands before."""
    return f"""{dedent(head).strip()}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
{_in(init)}

    def forward(self, {args}):
{_in(forward)}

def get_inputs():
    return [{inputs}]
"""


def _in(body: str) -> str:
    return indent(dedent(body).strip("\n"), " " * 8)


OWN_TEXTS = {
    "counter-scale": own(
        "torch.randn(16, 32)",
        """
        self.n += 1
        return self.l(x)
        """,
        init="""
        self.n = 0
        self.l = nn.Linear(32, 32)
        """,
    ),
    "ema-codebook": own(
        "torch.randn(64, 32)",
        """
        d = torch.cdist(x, self.code)
        i = d.argmin(1)
        oh = F.one_hot(i, 16).float()
        self.count.mul_(0.9).add_(oh.sum(0), alpha=0.1)
        self.code.mul_(0.9).add_(oh.t() @ x / (oh.sum(0).unsqueeze(1) + 1e-5), alpha=0.1)
        return self.code[i], i
        """,
        init="""
        self.register_buffer('code', torch.randn(16, 32))
        self.register_buffer('count', torch.zeros(16))
        """,
    ),
    "kv-cache-buf": own(
        "torch.randn(4, 8)",
        """
        p = int(self.pos) % 16
        self.k[:, p] = x
        self.pos += 1
        return torch.einsum('bd,bld->bl', x, self.k).softmax(-1)
        """,
        init="""
        self.register_buffer('k', torch.zeros(4, 16, 8))
        self.register_buffer('pos', torch.zeros((), dtype=torch.long))
        """,
    ),
    "kv-cache-list": own(
        "torch.randn(4, 8)",
        """
        self.keys.append(x)
        if len(self.keys) > 4: self.keys.pop(0)
        k = torch.stack(self.keys, 1)
        return (torch.einsum('bd,bld->bl', x, k)).softmax(-1) @ torch.ones(k.shape[1], 3)
        """,
        init="self.keys = []",
    ),
    "welford": own(
        "torch.randn(64, 32)",
        """
        self.n += x.shape[0]
        d = x.mean(0) - self.mean
        self.mean += d * x.shape[0] / self.n
        self.m2 += x.var(0, unbiased=False) * x.shape[0] + d * d
        return (x - self.mean) / (self.m2 / self.n + 1e-5).sqrt()
        """,
        init="""
        self.register_buffer('n', torch.zeros(()))
        self.register_buffer('mean', torch.zeros(32))
        self.register_buffer('m2', torch.zeros(32))
        """,
    ),
    "parametrized-spectral": own(
        "torch.randn(16, 32)",
        "return self.l(x)",
        init="self.l = torch.nn.utils.parametrizations.spectral_norm(nn.Linear(32, 32))",
    ),
    "weight-norm": own(
        "torch.randn(16, 32)",
        "return self.l(x)",
        init="self.l = torch.nn.utils.weight_norm(nn.Linear(32, 32))",
    ),
    "parametrized-weight-norm": own(
        "torch.randn(16, 32)",
        "return self.l(x)",
        init="self.l = torch.nn.utils.parametrizations.weight_norm(nn.Linear(32, 32))",
    ),
    "orthogonal": own(
        "torch.randn(16, 16)",
        "return self.l(x)",
        init="self.l = torch.nn.utils.parametrizations.orthogonal(nn.Linear(16, 16))",
    ),
    "tied": own(
        "torch.randint(0, 50, (8, 12))",
        "return self.o(torch.tanh(self.e(x).mean(1)))",
        init="""
        self.e = nn.Embedding(50, 16)
        self.o = nn.Linear(16, 50, bias=False)
        self.o.weight = self.e.weight
        """,
    ),
    "dict-out": own(
        "torch.randn(16, 16)",
        "return {'a': self.l(x), 'b': [x.sum(1), (x > 0).sum()]}",
        init="self.l = nn.Linear(16, 16)",
    ),
    "namedtuple-out": own(
        "torch.randn(16, 64)",
        "return torch.max(x, dim=1)",
    ),
    "topk": own(
        "torch.randn(16, 64)",
        "return torch.topk(x, 5, dim=-1)",
    ),
    "sort-desc": own(
        "torch.randn(16, 64)",
        """
        v, i = torch.sort(x, dim=-1, descending=True)
        return v, i
        """,
    ),
    "unique-counts": own(
        "torch.randint(0, 32, (1000,))",
        "return torch.bincount(x, minlength=32)",
    ),
    "masked-select": own(
        "torch.randn(16, 8)",
        "return x[x > 0].sum()",
    ),
    "inplace-arg": own(
        "torch.randn(32, 32)",
        """
        x.relu_()
        return x * 2
        """,
    ),
    "inplace-out": own(
        "torch.randn(32, 32), torch.empty(32, 32)",
        """
        out.copy_(torch.relu(x))
        return out
        """,
        args="x, out",
    ),
    "none-return-inplace": own(
        "torch.randn(32, 32)",
        "x.mul_(2)",
    ),
    "kwarg-scalar": own(
        "torch.randn(8, 16), 0.5, True",
        "return self.l(x) * scale + (1 if flag else 0)",
        init="self.l = nn.Linear(16, 16)",
        args="x, scale, flag=False",
    ),
    "str-arg": own(
        "torch.randn(2, 3, 8, 8), 'nearest'",
        "return F.interpolate(x, scale_factor=2, mode=mode)",
        args="x, mode",
    ),
    "complex-fft": own(
        "torch.randn(8, 64)",
        """
        f = torch.fft.rfft(x)
        return torch.fft.irfft(f * self.w, n=64)
        """,
        init="self.register_buffer('w', torch.randn(33))",
    ),
    "complex-out": own(
        "torch.randn(8, 64)",
        "return torch.fft.fft(x)",
    ),
    "complex-in": own(
        "torch.randn(8, 64, dtype=torch.complex64)",
        "return x * x.conj() + 1",
    ),
    "half-io": own(
        "torch.randn(8, 32).half()",
        "return self.l(x)",
        init="self.l = nn.Linear(32, 32).half()",
    ),
    "bf16-io": own(
        "torch.randn(8, 32).bfloat16()",
        "return F.gelu(self.l(x))",
        init="self.l = nn.Linear(32, 32).bfloat16()",
    ),
    "float64": own(
        "torch.randn(8, 32).double()",
        "return self.l(x)",
        init="self.l = nn.Linear(32, 32).double()",
    ),
    "int8-q": own(
        "torch.randn(8, 32)",
        "return (x @ self.w.float().t()) * self.s",
        init="""
        self.register_buffer('w', torch.randint(-128, 127, (32, 32), dtype=torch.int8))
        self.register_buffer('s', torch.rand(32))
        """,
    ),
    "int-matmul": own(
        "torch.randint(-5, 5, (16, 16)), torch.randint(-5, 5, (16, 16))",
        "return x @ y",
        args="x, y",
    ),
    "uint8-image": own(
        "torch.randint(0, 256, (2, 3, 16, 16), dtype=torch.uint8)",
        "return (x.float() / 255 - 0.5) * 2",
    ),
    "bool-ops": own(
        "torch.rand(16, 16) > 0.5, torch.rand(16, 16) > 0.5",
        "return x & y, (x | y).any(1)",
        args="x, y",
    ),
    "embedding-bag": own(
        "torch.randint(0, 100, (40,)), torch.tensor([0, 5, 12, 30])",
        "return self.e(x, o)",
        init="self.e = nn.EmbeddingBag(100, 16, mode='mean')",
        args="x, o",
    ),
    "packed-seq": own(
        "torch.randn(4, 10, 8), torch.tensor([10, 3, 7, 5])",
        """
        p = nn.utils.rnn.pack_padded_sequence(x, l, batch_first=True, enforce_sorted=False)
        o, h = self.g(p)
        return nn.utils.rnn.pad_packed_sequence(o, batch_first=True)[0].sum(1), h
        """,
        init="self.g = nn.GRU(8, 16, batch_first=True)",
        args="x, l",
    ),
    "lstm-states": own(
        "torch.randn(10, 4, 8), torch.randn(2, 4, 16), torch.randn(2, 4, 16)",
        "return self.g(x, (h, c))",
        init="self.g = nn.LSTM(8, 16, 2)",
        args="x, h, c",
    ),
    "lstm-hidden-kept": own(
        "torch.randn(10, 4, 8)",
        """
        o, self.h = self.g(x, self.h)
        return o
        """,
        init="""
        self.g = nn.LSTM(8, 16)
        self.h = None
        """,
    ),
    "mha-mask": own(
        "torch.randn(4, 10, 16), torch.arange(10).expand(4, 10) >= torch.tensor([10, 7, 5, 8]).unsqueeze(1)",
        "return self.a(x, x, x, key_padding_mask=k)[0]",
        init="self.a = nn.MultiheadAttention(16, 4, batch_first=True)",
        args="x, k",
    ),
    "transformer-layer": own(
        "torch.randn(4, 10, 16)",
        "return self.a(x)",
        init="self.a = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)",
    ),
    "transformer-eval": own(
        "torch.randn(4, 10, 16)",
        "return self.a(x)",
        init="""
        self.a = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        self.eval()
        """,
    ),
    "dropout-train": own(
        "torch.randn(64, 32)",
        "return F.dropout(self.l(x), 0.3, True)",
        init="self.l = nn.Linear(32, 32)",
    ),
    "gumbel": own(
        "torch.randn(64, 32)",
        "return F.gumbel_softmax(x, tau=0.7)",
    ),
    "gumbel-hard": own(
        "torch.randn(64, 32)",
        "return F.gumbel_softmax(x, tau=0.7, hard=True)",
    ),
    "multinomial": own(
        "torch.randn(64, 32)",
        "return torch.multinomial(x.softmax(-1), 1)",
    ),
    "bernoulli-mask": own(
        "torch.randn(64, 32)",
        "return x * torch.bernoulli(torch.full_like(x, 0.5)) * 2",
    ),
    "vae": own(
        "torch.randn(64, 32)",
        """
        mu, lv = self.m(x), self.s(x)
        z = mu + torch.randn_like(mu) * (0.5 * lv).exp()
        return z, mu, lv
        """,
        init="""
        self.m = nn.Linear(32, 8)
        self.s = nn.Linear(32, 8)
        """,
    ),
    "noise-eval": own(
        "torch.randn(64, 32)",
        "return self.l(x + 0.1 * torch.randn_like(x))",
        init="self.l = nn.Linear(32, 32)",
    ),
    "randperm": own(
        "torch.randn(64, 8)",
        "return x[torch.randperm(x.shape[0])]",
    ),
    "stochastic-depth": own(
        "torch.randn(64, 32)",
        """
        keep = (torch.rand(x.shape[0], 1) < 0.8).float() / 0.8
        return x + keep * self.l(x)
        """,
        init="self.l = nn.Linear(32, 32)",
    ),
    "rrelu": own(
        "torch.randn(64, 32)",
        "return self.r(x)",
        init="self.r = nn.RReLU()",
    ),
    "alpha-dropout": own(
        "torch.randn(64, 32)",
        "return self.r(x)",
        init="self.r = nn.AlphaDropout(0.2)",
    ),
    "dropout2d": own(
        "torch.randn(8, 16, 4, 4)",
        "return self.r(x)",
        init="self.r = nn.Dropout2d(0.2)",
    ),
    "bn-momentum-none": own(
        "torch.randn(64, 32)",
        "return self.b(x)",
        init="self.b = nn.BatchNorm1d(32, momentum=None)",
    ),
    "bn-no-track": own(
        "torch.randn(64, 32)",
        "return self.b(x)",
        init="self.b = nn.BatchNorm1d(32, track_running_stats=False)",
    ),
    "instance-norm-track": own(
        "torch.randn(4, 8, 8, 8)",
        "return self.b(x)",
        init="self.b = nn.InstanceNorm2d(8, affine=True, track_running_stats=True)",
    ),
    "param-list": own(
        "torch.randn(8, 16)",
        """
        for p in self.p: x = x * p
        return x + self.d['a']
        """,
        init="""
        self.p = nn.ParameterList([nn.Parameter(torch.randn(16)) for _ in range(3)])
        self.d = nn.ParameterDict({'a': nn.Parameter(torch.randn(16))})
        """,
    ),
    "module-dict": own(
        "torch.randn(8, 16)",
        "return self.d['relu'](self.d['l'](x))",
        init="self.d = nn.ModuleDict({'relu': nn.ReLU(), 'l': nn.Linear(16, 16)})",
    ),
    "list-inputs": own(
        "[torch.randn(8, 4), torch.randn(8, 6)]",
        "return torch.cat([a.relu() for a in xs], 1)",
        args="xs",
    ),
    "dict-inputs": own(
        "{'x': torch.randn(8, 4), 'w': torch.randn(4, 6)}",
        "return b['x'] @ b['w']",
        args="b",
    ),
    "zero-dim": own(
        "torch.randn(8, 4)",
        "return x.sum(), x.mean()",
    ),
    "scalar-tensor-in": own(
        "torch.randn(8, 4), torch.tensor(3.0)",
        "return x * t",
        args="x, t",
    ),
    "empty-batch": own(
        "torch.randn(0, 4)",
        "return self.l(x)",
        init="self.l = nn.Linear(4, 4)",
    ),
    "view-out": own(
        "torch.randn(8, 4)",
        "return x.view(4, -1).t()",
    ),
    "identity-out": own(
        "torch.randn(8, 4)",
        "return self.i(x)",
        init="self.i = nn.Identity()",
    ),
    "expand-out": own(
        "torch.randn(8, 4)",
        "return x.unsqueeze(1).expand(-1, 5, -1)",
    ),
    "noncontig-in": own(
        "torch.randn(8, 16).t()",
        "return self.l(x)",
        init="self.l = nn.Linear(8, 8)",
    ),
    "channels-last-in": own(
        "torch.randn(2, 3, 16, 16).to(memory_format=torch.channels_last)",
        "return self.c(x)",
        init="self.c = nn.Conv2d(3, 8, 3)",
    ),
    "grad-inside": own(
        "torch.randn(8, 8)",
        """
        with torch.enable_grad():
            y = x.detach().requires_grad_(True)
            s = self.l(y).pow(2).sum()
            g, = torch.autograd.grad(s, y)
        return g
        """,
        init="self.l = nn.Linear(8, 8)",
    ),
    "autograd-function": own(
        "torch.randn(8, 8)",
        "return Sq.apply(x)",
        head="""
        class Sq(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x
            @staticmethod
            def backward(ctx, g):
                return 2 * g * ctx.saved_tensors[0]
        """,
    ),
    "checkpoint": own(
        "torch.randn(8, 8)",
        "return torch.utils.checkpoint.checkpoint(self.l, x, use_reentrant=False)",
        init="self.l = nn.Linear(8, 8)",
        head="import torch.utils.checkpoint",
    ),
    "script-fn": own(
        "torch.randn(8, 8)",
        "return f(x)",
        head="""
        @torch.jit.script
        def f(x):
            return torch.relu(x) * 2
        """,
    ),
    "vmap": own(
        "torch.randn(4, 8, 8)",
        "return torch.func.vmap(self.l)(x)",
        init="self.l = nn.Linear(8, 8)",
    ),
    "svd-vals": own(
        "torch.randn(4, 16, 8)",
        "return torch.linalg.svdvals(x)",
    ),
    "eigh": own(
        "torch.randn(16, 16)",
        "return torch.linalg.eigvalsh(x @ x.t())",
    ),
    "qr-abs": own(
        "torch.randn(16, 8)",
        """
        q, r = torch.linalg.qr(x)
        return q @ r
        """,
    ),
    "cholesky-solve": own(
        "torch.randn(16, 16), torch.randn(16, 3)",
        """
        a = x @ x.t() + 16 * torch.eye(16)
        return torch.linalg.solve(a, b)
        """,
        args="x, b",
    ),
    "det": own(
        "torch.randn(4, 8, 8)",
        "return torch.linalg.slogdet(x)",
    ),
    "inverse": own(
        "torch.randn(4, 8, 8)",
        "return torch.inverse(x + 8 * torch.eye(8))",
    ),
    "matrix-exp": own(
        "torch.randn(4, 8, 8)",
        "return torch.matrix_exp(0.1 * x)",
    ),
    "cumprod": own(
        "torch.randn(8, 64)",
        "return torch.cumprod(1 + 0.01 * x, 1)",
    ),
    "logcumsumexp": own(
        "torch.randn(8, 64)",
        "return torch.logcumsumexp(x, 1)",
    ),
    "scatter-add": own(
        "torch.randn(32, 8), torch.randint(0, 10, (32, 8))",
        "return torch.zeros(10, 8).scatter_add_(0, i, x)",
        args="x, i",
    ),
    "index-add-graph": own(
        "torch.randn(20, 8), torch.randint(0, 20, (2, 60))",
        """
        s, d = e
        return torch.zeros_like(x).index_add_(0, d, self.l(x)[s])
        """,
        init="self.l = nn.Linear(8, 8)",
        args="x, e",
    ),
    "sparse-mm": own(
        "torch.randint(0, 20, (2, 50)), torch.randn(50), torch.randn(20, 8)",
        """
        a = torch.sparse_coo_tensor(i, v, (20, 20))
        return torch.sparse.mm(a, x)
        """,
        args="i, v, x",
    ),
    "grid-sample": own(
        "torch.randn(2, 3, 8, 8), torch.rand(2, 6, 6, 2) * 2 - 1",
        "return F.grid_sample(x, g, align_corners=False)",
        args="x, g",
    ),
    "roi-like": own(
        "torch.randn(2, 3, 8, 8)",
        "return torch.stack([F.adaptive_max_pool2d(x[:, :, a:a + 4, b:b + 4], 2) for a, b in ((0, 0), (2, 3))])",
    ),
    "ctc": own(
        "torch.randn(20, 4, 10), torch.randint(1, 10, (4, 6)), torch.full((4,), 20), torch.randint(3, 7, (4,))",
        "return self.c(x.log_softmax(-1), t, il, tl)",
        init="self.c = nn.CTCLoss()",
        args="x, t, il, tl",
    ),
    "ce-ignore": own(
        "torch.randn(20, 10), torch.randint(0, 10, (20,))",
        "return self.c(x, t)",
        init="self.c = nn.CrossEntropyLoss(label_smoothing=0.1)",
        args="x, t",
    ),
    "triplet": own(
        "torch.randn(20, 10), torch.randn(20, 10), torch.randn(20, 10)",
        "return self.c(a, p, n)",
        init="self.c = nn.TripletMarginLoss()",
        args="a, p, n",
    ),
    "kl": own(
        "torch.randn(20, 10), torch.randn(20, 10)",
        "return F.kl_div(x.log_softmax(-1), t.softmax(-1), reduction='batchmean')",
        args="x, t",
    ),
    "bce": own(
        "torch.rand(20, 10), torch.rand(20, 10).round()",
        "return F.binary_cross_entropy(x, t)",
        args="x, t",
    ),
    "gaussian-nll": own(
        "torch.randn(20, 10), torch.randn(20, 10), torch.rand(20, 10) + 0.1",
        "return self.c(x, t, v)",
        init="self.c = nn.GaussianNLLLoss()",
        args="x, t, v",
    ),
    "while-newton": own(
        "torch.rand(32, 32) + 0.5",
        """
        y = x.clone()
        for _ in range(20):
            y = 0.5 * (y + x / y)
        return y
        """,
    ),
    "data-dep-branch": own(
        "torch.randn(8, 8)",
        "return self.l(x) if x.sum() > 0 else x",
        init="self.l = nn.Linear(8, 8)",
    ),
    "round-quant": own(
        "torch.randn(32, 64)",
        """
        s = x.abs().amax(1, keepdim=True) / 127
        return (x / s).round().clamp(-128, 127) * s
        """,
    ),
    "quant-int8-out": own(
        "torch.randn(32, 64)",
        """
        s = x.abs().amax() / 127
        return (x / s).round().to(torch.int8), s
        """,
    ),
    "fake-quant": own(
        "torch.randn(32, 64)",
        "return torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127)",
    ),
    "moe-top2": own(
        "torch.randn(32, 16)",
        """
        w, i = self.g(x).softmax(-1).topk(2, -1)
        out = torch.zeros_like(x)
        for n, e in enumerate(self.e):
            r, k = (i == n).nonzero(as_tuple=True)
            out.index_add_(0, r, w[r, k].unsqueeze(1) * e(x[r]))
        return out
        """,
        init="""
        self.g = nn.Linear(16, 4)
        self.e = nn.ModuleList([nn.Linear(16, 16) for _ in range(4)])
        """,
    ),
    "causal-mask-buf": own(
        "torch.randn(4, 10, 8)",
        """
        q, k, v = self.q(x).chunk(3, -1)
        a = (q @ k.transpose(1, 2)).masked_fill(~self.mask, float('-inf'))
        return a.softmax(-1) @ v
        """,
        init="""
        self.register_buffer('mask', torch.tril(torch.ones(10, 10)).bool(), persistent=False)
        self.q = nn.Linear(8, 24)
        """,
    ),
    "sdpa-causal": own(
        "torch.randn(2, 4, 16, 8)",
        "return F.scaled_dot_product_attention(x, x, x, is_causal=True)",
    ),
    "nan-to-num": own(
        "torch.randn(32, 32)",
        "return torch.nan_to_num(x / x.clamp(min=0))",
    ),
    "inf-out": own(
        "torch.randn(32, 32)",
        "return torch.log(x.clamp(min=0))",
    ),
    "sign-out": own(
        "torch.randn(32, 32)",
        "return torch.sign(x)",
    ),
    "argmax-out": own(
        "torch.randn(32, 16)",
        "return self.l(x).argmax(-1)",
        init="self.l = nn.Linear(16, 10)",
    ),
    "median": own(
        "torch.randn(32, 33)",
        "return x.median(-1)",
    ),
    "quantile": own(
        "torch.randn(32, 33)",
        "return torch.quantile(x, 0.3, dim=1)",
    ),
    "histogram": own(
        "torch.randn(1000)",
        "return torch.histc(x, 20, -3, 3)",
    ),
    "searchsorted": own(
        "torch.randn(20).sort()[0], torch.randn(64)",
        "return torch.searchsorted(s, x)",
        args="s, x",
    ),
    "bucketize": own(
        "torch.randn(64)",
        "return torch.bucketize(x, self.b)",
        init="self.register_buffer('b', torch.linspace(-2, 2, 9))",
    ),
    "string-attr-branch": own(
        "torch.randn(64, 8)",
        "return getattr(F, self.kind)(x)",
        init="self.kind = 'gelu'",
    ),
    "mutable-default-buf": own(
        "torch.randn(4, 8)",
        """
        self.state['h'] = 0.9 * self.state['h'] + 0.1 * x
        return self.state['h'] * 2
        """,
        init="self.state = {'h': torch.zeros(4, 8)}",
    ),
    "deque-window": own(
        "torch.randn(4, 8)",
        """
        self.w.append(x.detach())
        return sum(self.w) / len(self.w)
        """,
        init="self.w = deque(maxlen=3)",
        head="from collections import deque",
    ),
    "bn-track-dropout": own(
        "torch.randn(64, 16)",
        "return self.d(self.b(x))",
        init="""
        self.b = nn.BatchNorm1d(16)
        self.d = nn.Dropout(0.1)
        """,
    ),
    "gru-cell-state-buf": own(
        "torch.randn(4, 8)",
        """
        self.h = self.g(x, self.h)
        return self.h
        """,
        init="""
        self.g = nn.GRUCell(8, 8)
        self.register_buffer('h', torch.zeros(4, 8))
        """,
    ),
    "gru-cell-returns-state-view": own(
        "torch.randn(4, 8)",
        """
        self.h = self.g(x, self.h)
        return self.h[:, :4]
        """,
        init="""
        self.g = nn.GRUCell(8, 8)
        self.h = torch.zeros(4, 8)
        """,
    ),
    "cumulative-average-inplace": own(
        "torch.randn(16, 8)",
        """
        self.avg.lerp_(x.mean(0), 0.1)
        return x - self.avg
        """,
        init="self.register_buffer('avg', torch.zeros(8))",
    ),
    "reservoir-first-input": own(
        "torch.randn(16, 8)",
        """
        if self.first is None: self.first = x.clone()
        return x - self.first
        """,
        init="self.first = None",
    ),
    "lru-of-outputs": own(
        "torch.randn(4, 8)",
        """
        self.y = self.l(x) + 0.5 * self.y
        return self.y
        """,
        init="""
        self.y = torch.zeros(4, 8)
        self.l = nn.Linear(8, 8)
        """,
    ),
    "hook-module": own(
        "torch.randn(4, 8)",
        "return self.l(x)",
        init="""
        self.l = nn.Linear(8, 8)
        self.l.register_forward_hook(lambda m, i, o: o * 2)
        """,
    ),
    "generator-local": own(
        "torch.randn(4, 8)",
        """
        g = torch.Generator().manual_seed(0)
        return x + torch.randn(x.shape, generator=g)
        """,
    ),
    "seeded-inside": own(
        "torch.randn(4, 8)",
        """
        torch.manual_seed(0)
        return x + torch.randn(x.shape)
        """,
    ),
    "numpy-inside": own(
        "torch.randn(4, 8)",
        """
        import numpy as np
        return torch.from_numpy(np.tanh(x.numpy()))
        """,
    ),
    "view-of-buffer": own(
        "torch.randn(4, 8)",
        """
        y = self.l(x)
        self.k.mul_(0.5).add_(y)
        self.v.copy_(x)
        return self.cache.sum(0) * y
        """,
        init="""
        self.register_buffer('cache', torch.zeros(2, 4, 8))
        self.k = self.cache[0]
        self.v = self.cache[1]
        self.l = nn.Linear(8, 8)
        """,
    ),
    "view-of-weight": own(
        "torch.randn(4, 8)",
        "return x @ self.wt + self.l.bias",
        init="""
        self.l = nn.Linear(8, 8)
        self.wt = self.l.weight.detach().t()
        """,
    ),
    "weight-data-alias": own(
        "torch.randn(4, 8)",
        "return x @ self.raw",
        init="""
        self.w = nn.Parameter(torch.randn(8, 8))
        self.raw = self.w.data
        """,
    ),
    "dropblock": own(
        "torch.randn(8, 4, 16, 16)",
        """
        mask = (torch.rand(x.shape[0], 1, x.shape[2], x.shape[3]) < 0.1).float()
        mask = F.max_pool2d(mask, 3, 1, 1)
        k = 1 - mask
        return x * k * (k.numel() / k.sum())
        """,
        init="self.training_only = True",
    ),
    "mixup": own(
        "torch.randn(16, 8)",
        """
        lam = torch.distributions.Beta(0.4, 0.4).sample()
        p = torch.randperm(x.shape[0])
        return lam * x + (1 - lam) * x[p]
        """,
    ),
    "normal-dist": own(
        "torch.randn(16, 8)",
        """
        d = torch.distributions.Normal(self.l(x), 1.0)
        return d.rsample()
        """,
        init="self.l = nn.Linear(8, 8)",
    ),
    "poisson": own(
        "torch.rand(64, 8) * 5",
        "return torch.poisson(x)",
    ),
    "random-crop": own(
        "torch.randn(4, 3, 16)",
        """
        i = int(torch.randint(0, 9, ()))
        return x[:, :, i:i + 8]
        """,
    ),
    "python-random": own(
        "torch.randn(4, 3)",
        """
        import random
        return x * (1 if random.random() < 2 else 0)
        """,
    ),
    "zoneout": own(
        "torch.randn(6, 16, 8)",
        """
        h = torch.zeros(x.shape[1], 8)
        for t in range(x.shape[0]):
            n = self.c(x[t], h)
            z = (torch.rand_like(n) < 0.1).float()
            h = z * h + (1 - z) * n
        return h
        """,
        init="self.c = nn.GRUCell(8, 8)",
    ),
    "rms-ema-state": own(
        "torch.randn(16, 8)",
        """
        self.rms.mul_(0.99).add_(0.01 * x.pow(2).mean(0))
        return x / self.rms.sqrt()
        """,
        init="self.register_buffer('rms', torch.ones(8))",
    ),
    "momentum-encoder": own(
        "torch.randn(16, 8)",
        """
        with torch.no_grad():
            for a, b in zip(self.k.parameters(), self.q.parameters()): a.mul_(0.99).add_(b, alpha=0.01)
        return self.q(x) @ self.k(x).t()
        """,
        init="""
        self.q = nn.Linear(8, 8)
        self.k = nn.Linear(8, 8)
        self.k.requires_grad_(False)
        """,
    ),
    "queue-moco": own(
        "torch.randn(16, 8)",
        """
        q = F.normalize(x, dim=1)
        l = q @ self.queue
        p = int(self.ptr)
        self.queue[:, p:p + 16] = q.t()
        self.ptr[0] = (p + 16) % 32
        return l
        """,
        init="""
        self.register_buffer('queue', F.normalize(torch.randn(8, 32), dim=0))
        self.register_buffer('ptr', torch.zeros(1, dtype=torch.long))
        """,
    ),
    "sinkhorn": own(
        "torch.randn(16, 16)",
        """
        p = x.exp()
        for _ in range(20):
            p = p / p.sum(1, keepdim=True)
            p = p / p.sum(0, keepdim=True)
        return p
        """,
    ),
    "kmeans-step": own(
        "torch.randn(64, 4)",
        """
        a = torch.cdist(x, self.c).argmin(1)
        return torch.stack([x[a == i].mean(0) if (a == i).any() else self.c[i] for i in range(8)])
        """,
        init="self.c = nn.Parameter(torch.randn(8, 4))",
    ),
    "viterbi": own(
        "torch.randn(10, 6)",
        """
        s = x[0]
        b = []
        for t in range(1, x.shape[0]):
            v, i = (s.unsqueeze(1) + self.t).max(0)
            b.append(i)
            s = v + x[t]
        path = [s.argmax()]
        for i in reversed(b): path.append(i[path[-1]])
        return torch.stack(path[::-1]), s.max()
        """,
        init="self.t = nn.Parameter(torch.randn(6, 6))",
    ),
    "beam-topk": own(
        "torch.randn(3, 2, 8)",
        """
        lp = self.l(x).log_softmax(-1)
        v, i = lp.flatten(1).topk(4)
        return v, i // 20, i % 20
        """,
        init="self.l = nn.Linear(8, 20)",
    ),
    "nms-like": own(
        "torch.rand(20, 4), torch.rand(20)",
        """
        o = s.argsort(descending=True)
        b = b[o]
        k = torch.ones(len(b), dtype=torch.bool)
        for i in range(len(b)):
            if k[i]:
                d = (b[i + 1:] - b[i]).abs().sum(1)
                k[i + 1:] &= d > 0.5
        return k
        """,
        args="b, s",
    ),
    "segment-mean": own(
        "torch.randn(40, 8), torch.randint(0, 5, (40,)).sort()[0]",
        """
        out = torch.zeros(5, 8).index_add_(0, i, x)
        n = torch.bincount(i, minlength=5).clamp(min=1).unsqueeze(1)
        return out / n
        """,
        args="x, i",
    ),
    "ragged-offsets": own(
        "torch.randn(40, 8), torch.tensor([0, 10, 10, 25, 40])",
        "return torch.stack([x[a:b].sum(0) for a, b in zip(o[:-1].tolist(), o[1:].tolist())])",
        args="x, o",
    ),
    "conv-transpose-groups": own(
        "torch.randn(2, 8, 8, 8)",
        "return self.c(x)",
        init="self.c = nn.ConvTranspose2d(8, 8, 3, stride=2, padding=1, output_padding=1, groups=4)",
    ),
    "fold-unfold": own(
        "torch.randn(2, 3, 8, 8)",
        """
        u = F.unfold(x, 3, padding=1)
        return F.fold(u, (8, 8), 3, padding=1)
        """,
    ),
    "pixel-shuffle": own(
        "torch.randn(2, 12, 8, 8)",
        "return F.pixel_shuffle(x, 2).clamp(0, 1)",
    ),
    "local-response-norm": own(
        "torch.randn(2, 12, 8, 8)",
        "return self.n(x)",
        init="self.n = nn.LocalResponseNorm(3)",
    ),
    "max-unpool": own(
        "torch.randn(2, 3, 8, 8)",
        """
        y, i = self.p(x)
        return self.u(y, i)
        """,
        init="""
        self.p = nn.MaxPool2d(2, return_indices=True)
        self.u = nn.MaxUnpool2d(2)
        """,
    ),
    "fractional-pool": own(
        "torch.randn(2, 3, 16, 16)",
        "return self.p(x)",
        init="self.p = nn.FractionalMaxPool2d(2, output_size=4)",
    ),
    "embedding-maxnorm": own(
        "torch.randint(0, 50, (4, 5))",
        "return self.e(x)",
        init="self.e = nn.Embedding(50, 8, max_norm=1.0)",
    ),
    "embedding-padding": own(
        "torch.randint(0, 50, (4, 5))",
        "return self.e(x).sum(1)",
        init="self.e = nn.Embedding(50, 8, padding_idx=0)",
    ),
    "adaptive-softmax": own(
        "torch.randn(8, 16)",
        "return self.a.log_prob(x)",
        init="self.a = nn.AdaptiveLogSoftmaxWithLoss(16, 50, [10, 25])",
    ),
    "bilinear": own(
        "torch.randn(4, 8), torch.randn(4, 8)",
        "return self.b(x, y)",
        init="self.b = nn.Bilinear(8, 8, 4)",
        args="x, y",
    ),
    "cosine-clip": own(
        "torch.randn(16, 8), torch.randn(16, 8)",
        "return F.cosine_similarity(x, y).clamp(min=0)",
        args="x, y",
    ),
    "hinge-count": own(
        "torch.randn(16, 8)",
        """
        self.hits += (x > 0).sum()
        return x.relu(), self.hits
        """,
        init="self.register_buffer('hits', torch.zeros((), dtype=torch.long))",
    ),
    "returns-state": own(
        "torch.randn(16, 8)",
        """
        self.s = self.s * 0.5 + x.sum(0)
        return self.s
        """,
        init="self.register_buffer('s', torch.zeros(8))",
    ),
    "returns-param": own(
        "torch.randn(16, 8)",
        "return self.p, x + self.p",
        init="self.p = nn.Parameter(torch.randn(8))",
    ),
    "returns-input-too": own(
        "torch.randn(16, 8)",
        "return x, x * 2",
    ),
    "same-twice": own(
        "torch.randn(16, 8)",
        """
        y = x * 2
        return y, y
        """,
    ),
    "list-of-views": own(
        "torch.randn(16, 8)",
        """
        y = x * 2
        return list(y.chunk(4, 1))
        """,
    ),
    "nested-list": own(
        "torch.randn(16, 8)",
        """
        out = []
        for l in self.l:
            x = l(x)
            out.append([x, {'n': x.norm()}])
        return out
        """,
        init="self.l = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])",
    ),
    "scalar-float-out": own(
        "torch.randn(16, 8)",
        "return float(x.sum())",
    ),
    "item-and-tensor": own(
        "torch.randn(16, 8)",
        "return x * 2, x.shape[0], 'ok', None",
    ),
    "half-inside": own(
        "torch.randn(16, 8)",
        "return (x.half() @ self.l.weight.half().t()).float()",
        init="self.l = nn.Linear(8, 8)",
    ),
    "autocast-inside": own(
        "torch.randn(16, 8)",
        """
        with torch.autocast('cpu', torch.bfloat16):
            return self.l(x)
        """,
        init="self.l = nn.Linear(8, 8)",
    ),
    "no-grad-decor": own(
        "torch.randn(16, 8)",
        """
        with torch.inference_mode():
            return self.l(x)
        """,
        init="self.l = nn.Linear(8, 8)",
    ),
    "shape-cache-dict": own(
        "torch.randn(4, 8)",
        """
        k = x.shape[-1]
        if k not in self.c: self.c[k] = torch.arange(k).float().mul(0.1).sin()
        return x * self.c[k]
        """,
        init="self.c = {}",
    ),
    "lru-global": own(
        "torch.randn(4, 8)",
        "return x * table(x.shape[-1])",
        head="""
        import functools
        @functools.lru_cache(None)
        def table(n):
            return torch.arange(n).float().mul(0.1).cos()
        """,
    ),
    "einops-like": own(
        "torch.randn(2, 3, 8, 8)",
        """
        b, c, h, w = x.shape
        return x.reshape(b, c, h // 2, 2, w // 2, 2).permute(0, 1, 3, 5, 2, 4).reshape(b, -1, h // 2, w // 2)
        """,
    ),
    "tensordot-out": own(
        "torch.randn(16, 8)",
        "return torch.einsum('bi,kij,bj->bk', x, self.r, x)",
        init="self.r = nn.Parameter(torch.randn(4, 8, 8))",
    ),
    "ssm-scan": own(
        "torch.randn(4, 12, 8)",
        """
        h = torch.zeros(x.shape[0], 8)
        o = []
        for t in range(x.shape[1]):
            h = self.a.sigmoid() * h + x[:, t]
            o.append(h)
        return torch.stack(o, 1)
        """,
        init="self.a = nn.Parameter(torch.rand(8))",
    ),
    "flash-window": own(
        "torch.randn(2, 16, 8)",
        """
        s = x @ x.transpose(-1, -2) / 8 ** 0.5
        i = torch.arange(16)
        s = s.masked_fill((i[:, None] - i).abs() > 3, -1e9)
        return s.softmax(-1) @ x
        """,
    ),
    "complex-param": own(
        "torch.randn(4, 8)",
        "return (x * self.w).abs()",
        init="self.w = nn.Parameter(torch.randn(8, dtype=torch.cfloat))",
    ),
    "bool-buffer-toggle": own(
        "torch.randn(4, 8)",
        """
        y = -x if bool(self.flip) else x.clone()
        self.flip.logical_not_()
        return y
        """,
        init="self.register_buffer('flip', torch.tensor(False))",
    ),
    "int-step-schedule": own(
        "torch.randn(4, 8)",
        """
        self.step += 1
        return x * torch.cos(self.step * 0.1)
        """,
        init="self.register_buffer('step', torch.zeros((), dtype=torch.long))",
    ),
    "dropconnect": own(
        "torch.randn(32, 8)",
        """
        w = F.dropout(self.l.weight, 0.2, True)
        return F.linear(x, w, self.l.bias)
        """,
        init="self.l = nn.Linear(8, 8)",
    ),
    "noisy-linear": own(
        "torch.randn(32, 8)",
        """
        self.eps.normal_()
        return x @ (self.mu + self.sg * self.eps).t()
        """,
        init="""
        self.mu = nn.Parameter(torch.randn(8, 8))
        self.sg = nn.Parameter(torch.full((8, 8), 0.1))
        self.register_buffer('eps', torch.zeros(8, 8))
        """,
    ),
    "lsh": own(
        "torch.randn(32, 8)",
        "return ((x @ self.r) > 0).long() @ torch.tensor([1, 2, 4, 8])",
        init="self.register_buffer('r', torch.randn(8, 4))",
    ),
    "erfinv": own(
        "torch.rand(32, 8) * 1.9 - 0.95",
        "return torch.erfinv(x)",
    ),
    "lgamma": own(
        "torch.rand(32, 8) + 0.5",
        "return torch.lgamma(x) + torch.digamma(x)",
    ),
    "atan2": own(
        "torch.randn(32, 8), torch.randn(32, 8)",
        "return torch.atan2(x, y)",
        args="x, y",
    ),
    "fmod": own(
        "torch.randn(32, 8)",
        "return torch.fmod(x, 0.7), torch.remainder(x, 0.7)",
    ),
    "bitops": own(
        "torch.randint(0, 1000, (32, 8))",
        "return (x << 2) ^ (x >> 1) & 0xff",
    ),
    "int32-overflow": own(
        "torch.randint(0, 2**31 - 1, (32, 8))",
        "return (x * 1103515245 + 12345) & 0x7fffffff",
    ),
    "attention-mask-in-eval": own(
        "torch.randn(2, 10, 16), torch.rand(10, 10) > 0.7",
        "return self.a(x, x, x, attn_mask=mask, need_weights=False)[0]",
        init="""
        self.a = nn.MultiheadAttention(16, 4, batch_first=True)
        self.eval()
        """,
        args="x, mask",
    ),
}
