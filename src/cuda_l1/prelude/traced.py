"""The Python that traces a short function once and compiles the C++ of what it computes, for tensors of any shape."""

from __future__ import annotations

from cuda_l1.prelude.cpp_loader import LOADER
from cuda_l1.prelude.cpp_vectors import ROUNDED, header

_ROWS = r"""
#if defined(__AVX512F__) && __has_builtin(__builtin_ia32_loadups512_mask)
INL vf first_of(const f32* p, int n) { return __builtin_ia32_loadups512_mask(p, vf{}, (1 << n) - 1); }
INL void put_first(f32* p, vf v, int n) { __builtin_ia32_storeups512_mask(p, v, (1 << n) - 1); }
#else
INL vf first_of(const f32* p, int n) { f32 t[W] = {}; for (int l = 0; l < n; ++l) t[l] = p[l]; return load<W>(t); }
INL void put_first(f32* p, vf v, int n) { for (int l = 0; l < n; ++l) p[l] = v[l]; }
#endif
template <int N> INL vf get(const f32* p, int n) { if constexpr (N) return load<W>(p); else return first_of(p, n); }
template <int N> INL void set(f32* p, vf v, int n) { if constexpr (N) store<W>(p, v); else put_first(p, v, n); }
template <int N> INL vf among(vf v, vf rest, int n) { if constexpr (N) return v; else return sel(live(n), v, rest); }
template <class F> INL void over(i64 low, i64 high, F f) {
  for (; low + W <= high; low += W) f(Lanes<W>{}, low, W);
  if (low < high) f(Lanes<0>{}, low, (int)(high - low));
}
INL i64 least(i64 a, i64 b) { return a < b ? a : b; }
// Where an argument's part of a row begins; of one that is constant along the row, a vector of it.
INL const f32* placed(const f32* p, const i64* strides, const i64* g, i64 row, i64 start, f32* constant) {
  for (i64 d = g[0] - 1; d > 0; row /= g[3 + d--]) p += row % g[3 + d] * strides[d];
  if (g[0]) p += row * strides[0];
  if (strides[g[0]]) return p + start;
  for (int l = 0; l < W; ++l) constant[l] = *p;
  return constant;
}
"""

_TRACER = r'''
import math
import types

_HEAVY = {"exp", "exp2", "expm1", "log", "log1p", "tanh", "sigmoid", "erf", "erfc", "sin", "cos", "pow", "tan", "atan",
          "asin", "acos", "sinh", "cosh"}
_FUNCTIONS = {*_HEAVY, "sqrt", "rsqrt", "reciprocal", "floor", "ceil", "trunc", "round", "sign", "maximum", "minimum"}
_FOLDS = {  # kind -> what it begins with, a step, its result
    "sum": ("{}", "{0}s += among<N>({1}, vf{{}}, k);", "total({0}d)"),
    "max": (" = splat(-__builtin_inff())", "{0}s = vmax(among<N>({1}, {0}s, k), {0}s);", "largest({0}s)"),
    "min": (" = splat(__builtin_inff())", "{0}s = vmin(among<N>({1}, {0}s, k), {0}s);", "smallest({0}s)"),
}


def _operator(text, kind="vf"):
    """The method of a binary operator, and that for a number on its left."""
    return (
        lambda self, other: _Symbol(text, self, other, kind=kind),
        lambda self, other: _Symbol(text, other, self, kind=kind),
    )


class _Symbol:
    """A value of a traced function: its C++, with a place for each of the values it is computed from.

    `row`: it is one number per row, as the result of a reduction is (`fold`: of which kind, `dims`: over how many
    dimensions). `level`: how many reductions come one after the other before it is known. `heavy`: to keep it is
    cheaper than to compute it again.
    """

    def __init__(self, text, *args, kind="vf", fold="", dims=0):
        self.args = [arg if isinstance(arg, _Symbol) else _constant(arg) for arg in args]
        self.text, self.kind, self.fold, self.dims, self.squeezed = text, kind, fold, dims, False
        self.level = max((arg.level for arg in self.args), default=0) + bool(fold)
        self.row = bool(text) and (bool(fold) or all(arg.row for arg in self.args))
        self.heavy = not self.row and (text[1:].split("(")[0] in _HEAVY or any(arg.heavy for arg in self.args))

    __add__, __radd__ = _operator("{} + {}")
    __sub__, __rsub__ = _operator("{} - {}")
    __mul__, __rmul__ = _operator("{} * {}")
    __truediv__, __rtruediv__ = _operator("{} / {}")
    __and__, __rand__ = _operator("{} & {}", "vi")
    __or__, __ror__ = _operator("{} | {}", "vi")
    __xor__, __rxor__ = _operator("{} ^ {}", "vi")
    __eq__, __ne__ = (_operator(text, "vi")[0] for text in ("mask({} == {})", "mask({} != {})"))
    __lt__, __gt__ = (_operator(text, "vi")[0] for text in ("mask({} < {})", "mask({} > {})"))
    __le__, __ge__ = (_operator(text, "vi")[0] for text in ("mask({} <= {})", "mask({} >= {})"))
    __hash__ = object.__hash__

    def __neg__(self):
        return _Symbol("-{}", self)

    def __invert__(self):
        return _Symbol("~{}", self, kind="vi")

    def __abs__(self):
        return _Symbol("vabs({})", self)

    def __bool__(self):
        raise TypeError("a traced function has maximum, minimum, where, & and | in place of max, min, if, and and or")


def _constant(value):
    size = abs(float(value))
    text = {"inf": "__builtin_inff()", "nan": '__builtin_nanf("")'}.get(str(size), f"{size!r}f")
    return _Symbol(f"splat({'-' if math.copysign(1, value) < 0 else ''}{text})")


def _squeeze(value):
    result = _Symbol("{}", value)
    result.squeezed = True
    return result


def _language():
    """What a traced function may call. Reductions go over the last dimensions, which stay with size 1."""
    def function(name):
        return lambda *args: _Symbol(f"v{name}({', '.join(['{}'] * len(args))})", *args)

    def reduction(fold):
        return lambda value, dims=1: _Symbol("{}", value, fold=fold, dims=dims)

    found = {name: function(name) for name in _FUNCTIONS}
    found |= {"sum": reduction("sum"), "amax": reduction("max"), "amin": reduction("min"), "squeeze": _squeeze}
    found["mean"] = lambda value, dims=1, correction=0: (
        found["sum"](value, dims) / _Symbol(f"splat((f32)(n - {correction}))")
    )
    found["where"] = lambda condition, left, right: _Symbol("sel({}, {}, {})", condition, left, right)
    return found


def _ordered(roots, known=lambda value: False):
    """`roots` and what they are computed from, arguments first, as far as what is known."""
    found, pending = {}, [(root, False) for root in reversed(roots)]
    while pending:
        value, ready = pending.pop()
        if value in found:
            continue
        if ready or known(value):
            found[value] = None
        else:
            pending += [(value, True), *((arg, False) for arg in reversed(value.args))]
    return found


def _passes(names, inputs, results):
    """The body of the loop over rows: passes over a row, and between them what is constant along it.

    What is heavy and needed in two passes is kept in between where a result is stored at last.
    """
    whole = [(result, f"r{number} + i") for number, result in enumerate(results) if not result.row]
    depth = max(value.level for value in names)
    folds = [[value for value in names if value.fold and value.level == level + 1] for level in range(depth + 1)]
    roots = [[value.args[0] for value in level] for level in folds[:depth]] + [[result for result, _ in whole]]
    peaked = {value.args[0] for value in names if value.fold in ("max", "min")}
    lines, kept = [], None

    def defined(value, text=""):
        if not text:
            text = value.text.format(*map(names.get, value.args))
            text = f"rounded({text})" if value in peaked else text
        return f"const {value.kind} {names[value]} = {text};"

    for level in range(depth + 1):
        lines += [defined(value) for value in names if value.row and value.level == level and not value.fold]
        needed = _ordered(roots[level], lambda value, kept=kept: value.row or value is kept)
        later = _ordered(roots[level + 1], lambda value: value.row) if whole and level < depth else {}
        keep = next((v for v in reversed(needed) if v in later and v.heavy and v.kind == "vf"), kept)
        body = []
        for value in needed:
            if value is kept:
                body.append(defined(value, f"get<N>({whole[0][1]}, k)"))
            elif value in inputs:
                body.append(defined(value, f"get<N>(p{inputs[value]} + i * s{inputs[value]}, k)"))
            elif not value.row:
                body.append(defined(value))
        stores = whole if level == depth else [(keep, whole[0][1])] if keep is not kept else []
        body += [f"set<N>({place}, {names[value]}, k);" for value, place in stores]
        kept = keep
        lines += _loop(body, {names[value]: (value.fold, names[value.args[0]]) for value in folds[level]})
    return lines


def _loop(body, folds):
    """A pass over a row; sums are carried into doubles after each block of it. `folds`: name -> kind and operand."""
    sums = [name for name, (fold, _) in folds.items() if fold == "sum"]
    return [] if not body and not folds else [
        *(f"vf {name}s{_FOLDS[fold][0]};" for name, (fold, _) in folds.items()),
        *(f"vd {name}d{{}};" for name in sums),
        "for (i64 low = 0; low < count; low += 4096) {",
        "over(low, least(low + 4096, count), [&](auto lanes, i64 i, int k) __attribute__((always_inline)) {",
        "constexpr int N = decltype(lanes)::n;",
        *body,
        *(_FOLDS[fold][1].format(name, operand) for name, (fold, operand) in folds.items()),
        "});",
        *(f"{name}d += to_f64({name}s); {name}s = vf{{}};" for name in sums),
        "}",
        *(f"const vf {name} = splat((f32){_FOLDS[fold][2].format(name)});" for name, (fold, _) in folds.items()),
    ]


def _source(inputs, results):
    """One C++ function `kernel`. `g`: number of outer dimensions, rows, length of a row, outer sizes, and for each
    input its strides in elements, of which the last is 0 or 1."""
    names = {value: f"v{number}" for number, value in enumerate(_ordered([*inputs, *results]))}
    folds = any(value.fold for value in names)
    whole = [number for number, result in enumerate(results) if not result.row]
    pointers = [f"const f32* a{number}" for number in inputs.values()] + [f"f32* o{n}" for n in range(len(results))]
    lines = [
        f'extern "C" void kernel({", ".join(pointers)}, const i64* g, int threads) {{',
        "const i64 rows = g[1], n = g[2];",
        f"const i64 piece = {'n' if folds else '4096'}, pieces = {'1' if folds else '(n + 4095) / 4096'};",
        *(f"if (rows * n >= 1 << 20) huge_pages(o{number}, rows * n * 4);" for number in whole),
        "parallel(rows * pieces, enough(threads, rows * n), [&](i64 begin, i64 end) {",
        "for (i64 unit = begin; unit < end; ++unit) {",
        "const i64 row = pieces == 1 ? unit : unit / pieces, start = (unit - row * pieces) * piece;",
        "const i64 count = least(n - start, piece);",
    ]
    for number in inputs.values():
        lines += [
            f"const i64 *t{number} = g + 3 + g[0] + {number} * (g[0] + 1), s{number} = t{number}[g[0]];",
            f"alignas(64) f32 c{number}[W];",
            f"const f32* const p{number} = placed(a{number}, t{number}, g, row, start, c{number});",
        ]
    lines += [f"f32* const r{number} = o{number} + row * n + start;" for number in whole]
    lines += _passes(names, inputs, results)
    lines += [f"o{number}[row] = {names[result]}[0];" for number, result in enumerate(results) if result.row]
    return "\n".join([_VECTORS, *lines, "}", "});", "}", ""])


def _loops(shape, strides):
    """(size, strides) of the loops over dimensions; neighbours that are one loop in all tensors are joined."""
    loops = []
    for size, step in zip(shape, zip(*strides)):
        if loops and all(outer == inner * size for outer, inner in zip(loops[-1][1], step)):
            loops[-1] = (loops[-1][0] * size, step)
        elif size != 1:
            loops.append((size, step))
    return loops


def _plan(tensors, results, dims):
    """Tensors like the results, in which shape each argument must be made contiguous, and the kernel's numbers."""
    if any(tensor.dtype != torch.float32 or not tensor.is_cpu for tensor in tensors):
        raise TypeError("a traced function takes float32 tensors on a CPU")
    shape = torch.broadcast_shapes(*(tensor.shape for tensor in tensors))
    head = len(shape) - dims if dims else 0  # where the dimensions begin that make up a row

    def strides(tensor):
        return [stride if size != 1 else 0 for size, stride in zip(shape, tensor.expand(shape).stride())]

    def fits(tensor):
        loops = _loops(shape[head:], [strides(tensor)[head:]])
        return (not dims or len(loops) < 2) and all(step in (0, 1) for _, (step,) in loops[-1:])

    copies = [None if fits(t) else t.shape if fits(t.contiguous()) else shape for t in tensors]
    steps = [strides(t if copy is None else t.expand(copy).contiguous()) for t, copy in zip(tensors, copies)]
    loops = _loops(shape[:head], [step[:head] for step in steps])
    loops += _loops(shape[head:], [step[head:] for step in steps]) or [(1, [0] * len(tensors))]
    *outer, length = [size for size, _ in loops]
    numbers = [len(outer), math.prod(outer), length, *outer]
    numbers += [step[number] for number in range(len(tensors)) for _, step in loops]
    row = {True: shape[:head], False: (*shape[:head], *[1] * dims)}
    number = torch.empty((), dtype=torch.float32, device="cpu")
    like = [number.expand(row[result.squeezed] if result.row else shape) for result in results]
    return like, copies if any(copy is not None for copy in copies) else (), (ctypes.c_long * len(numbers))(*numbers)


def traced(function):
    """Compiles what `function` says of float32 tensors: it is called once, with symbols in their place.

    It holds operators, numbers and the functions of `_language`. A result is a new contiguous tensor of the shape that
    all arguments broadcast to, of a reduction with ones in place of the last sizes, or without them if it is squeezed.
    """
    inputs = {_Symbol(""): number for number in range(function.__code__.co_argcount)}
    results = types.FunctionType(function.__code__, {**function.__globals__, **_language()})(*inputs)
    several = isinstance(results, tuple)
    results = list(results) if several else [results]
    if any(not isinstance(one, _Symbol) or one.kind != "vf" or (one.row and not one.level) for one in results):
        raise TypeError("a traced function returns numbers that it computes from its arguments")
    folded = {value.dims for value in _ordered(results) if value.fold}
    dims, *others = folded or {0}
    if others or (folded and dims < 1):
        raise ValueError("all reductions of a traced function go over the same number of last dimensions")
    kernel, plans = compile_cpp(_source(inputs, results)).kernel, {}
    kernel.argtypes = [*[ctypes.c_void_p] * (len(inputs) + len(results) + 1), ctypes.c_int]
    kernel.restype, address, dense = None, torch.Tensor.data_ptr, torch.contiguous_format

    def call(*tensors):
        key = tuple([(tensor.shape, tensor.stride(), tensor.dtype) for tensor in tensors])
        if key not in plans:
            if len(tensors) != len(inputs):
                raise TypeError(f"{function.__name__} takes {len(inputs)} tensors, not {len(tensors)}")
            plans[key] = _plan(tensors, results, dims)
        like, copies, numbers = plans[key]
        if copies:
            tensors = [t if copy is None else t.expand(copy).contiguous() for t, copy in zip(tensors, copies)]
        made = [torch.empty_like(one, memory_format=dense) for one in like]  # quicker than `torch.empty` of a shape
        kernel(*map(address, tensors), *map(address, made), numbers, torch.get_num_threads())
        return tuple(made) if several else made[0]

    return call
'''

TRACED = f'{LOADER}\n_VECTORS = r"""{header(4)}{ROUNDED}{_ROWS}"""\n{_TRACER}'
