"""The C++ that every generated file begins with: vectors, conversions, elementary functions, threads.

No header is included, so a file compiles in a fraction of a second. Vectors are GCC's own (`vector_size`), as wide as
the machine's registers. `ELEMENT` is 4, or 8 where a file holds 64-bit values, so that the widest vector fits one
register.
"""

from __future__ import annotations

from cuda_l1.prelude.cpp_functions import FUNCTIONS

VECTORS = r"""
#define INL static inline __attribute__((always_inline))
#define INL_METHOD inline __attribute__((always_inline))
typedef float f32; typedef double f64; typedef long i64; typedef int i32; typedef short i16;
typedef signed char i8; typedef unsigned char u8; typedef unsigned u32; typedef unsigned long u64;
struct bf16 { unsigned short bits; }; struct f16 { unsigned short bits; }; struct b8 { unsigned char bits; };
#if defined(__AVX512F__)
enum { W = 64 / ELEMENT };
#elif defined(__AVX__)
enum { W = 32 / ELEMENT };
#else
enum { W = 16 / ELEMENT };
#endif
typedef f32 vf __attribute__((vector_size(4 * W))); typedef f64 vd __attribute__((vector_size(8 * W)));
typedef i32 vi __attribute__((vector_size(4 * W))); typedef i64 vl __attribute__((vector_size(8 * W)));
typedef u32 vu __attribute__((vector_size(4 * W)));
typedef unsigned short vh __attribute__((vector_size(2 * W))); typedef i16 vs __attribute__((vector_size(2 * W)));
typedef u8 vb __attribute__((vector_size(W))); typedef i8 vc __attribute__((vector_size(W)));
template <int N> struct Lanes { static constexpr int n = N; };
extern "C" {
  float powf(float, float); float tanf(float); float atanf(float); float asinf(float); float acosf(float);
  float sinhf(float); float coshf(float); float erfcf(float);
  double exp(double); double exp2(double); double expm1(double); double log(double); double log1p(double);
  double sin(double); double cos(double); double tan(double); double tanh(double); double erf(double);
  double erfc(double); double atan(double); double asin(double); double acos(double); double sinh(double);
  double cosh(double); double pow(double, double); double rint(double); double floor(double); double ceil(double);
  double trunc(double);
  int omp_get_thread_num(void); int omp_get_num_threads(void);
  int madvise(void*, unsigned long, int); int mincore(void*, unsigned long, unsigned char*);
}

INL vf splat(f32 x) { return x - vf{}; }
INL vd splat(f64 x) { return x - vd{}; }
INL vi splat(i32 x) { return x - vi{}; }
INL vl splat(i64 x) { return x - vl{}; }
INL vi lanes() { vi v; for (int l = 0; l < W; ++l) v[l] = l; return v; }
INL vi as_int(vf x) { return (vi)x; }
INL vf as_float(vi x) { return (vf)x; }
INL vi mask(vi m) { return m; }
INL vi mask(vl m) { return __builtin_convertvector(m, vi); }
INL vf sel(vi m, vf a, vf b) { return m ? a : b; }
INL vi sel(vi m, vi a, vi b) { return m ? a : b; }
INL vd sel(vi m, vd a, vd b) { return __builtin_convertvector(m, vl) ? a : b; }
INL vl sel(vi m, vl a, vl b) { return __builtin_convertvector(m, vl) ? a : b; }
INL bool any(vi m) { i32 r = 0; for (int l = 0; l < W; ++l) r |= m[l]; return r != 0; }

INL vf to_f32(vf x) { return x; }
INL vf to_f32(vd x) { return __builtin_convertvector(x, vf); }
INL vf to_f32(vi x) { return __builtin_convertvector(x, vf); }
INL vf to_f32(vl x) { return __builtin_convertvector(x, vf); }
INL vd to_f64(vf x) { return __builtin_convertvector(x, vd); }
INL vd to_f64(vd x) { return x; }
INL vd to_f64(vi x) { return __builtin_convertvector(x, vd); }
INL vd to_f64(vl x) { return __builtin_convertvector(x, vd); }
INL vi to_i32(vi x) { return x; }
INL vi to_i32(vl x) { return __builtin_convertvector(x, vi); }
INL vi to_i32(vf x) { return __builtin_convertvector(x, vi); }
INL vi to_i32(vd x) { return __builtin_convertvector(x, vi); }
INL vl to_i64(vi x) { return __builtin_convertvector(x, vl); }
INL vl to_i64(vl x) { return x; }
INL vl to_i64(vf x) { return __builtin_convertvector(x, vl); }
INL vl to_i64(vd x) { return __builtin_convertvector(x, vl); }

INL vf widen(vh h, bf16) { return (vf)(__builtin_convertvector(h, vu) << 16); }
INL vh narrow(vf x, bf16) {
  vu u = (vu)x;
  vu r = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  r = (vu)sel(x != x, (vi)((u >> 16) | 0x40), (vi)r);
  return __builtin_convertvector(r, vh);
}
INL vf widen(vh h, f16) {
  vu u = __builtin_convertvector(h, vu), sign = (u & 0x8000) << 16, rest = u & 0x7fff;
  vf x = (vf)(rest << 13) * splat(0x1p112f);
  vu bits = (vu)x | ((vu)(rest >= 0x7c00) & 0x7f800000);
  return (vf)(bits | sign);
}
INL vh narrow(vf x, f16) {
  vu u = (vu)x, sign = (u >> 16) & 0x8000, a = u & 0x7fffffff;
  vu normal = (a + 0xc8000fffu + ((a >> 13) & 1)) >> 13;
  vu small = (vu)((vf)a + splat(0.5f)) - 0x3f000000;
  vu r = (vu)sel((vi)(a < 0x38800000), (vi)small, (vi)normal);
  r = (vu)sel((vi)(a >= 0x47800000), (vi)sel((vi)(a > 0x7f800000), splat(0x7e00), splat(0x7c00)), (vi)r);
  return __builtin_convertvector(r | sign, vh);
}
INL vf round_to(vf x, bf16 t) { return widen(narrow(x, t), t); }
INL vf round_to(vf x, f16 t) { return widen(narrow(x, t), t); }

template <int N, class V> INL V raw(const void* p) { V v{}; __builtin_memcpy(&v, p, sizeof(v) / W * N); return v; }
#if ELEMENT == 4 && defined(__AVX512F__) && __has_builtin(__builtin_ia32_loadups512_mask)
template <int N> INL vf part(const f32* p) { return __builtin_ia32_loadups512_mask(p, vf{}, (1 << N) - 1); }
template <int N> INL void put_part(f32* p, vf v) { __builtin_ia32_storeups512_mask(p, v, (1 << N) - 1); }
#elif ELEMENT == 4 && defined(__AVX__) && !defined(__AVX512F__) && __has_builtin(__builtin_ia32_maskloadps256)
template <int N> INL vf part(const f32* p) { return __builtin_ia32_maskloadps256((const vf*)p, lanes() < N); }
template <int N> INL void put_part(f32* p, vf v) { __builtin_ia32_maskstoreps256((vf*)p, lanes() < N, v); }
#else
template <int N> INL vf part(const f32* p) { return raw<N, vf>(p); }
template <int N> INL void put_part(f32* p, vf v) { __builtin_memcpy(p, &v, 4 * N); }
#endif
template <int N> INL vf load(const f32* p) { if constexpr (N == W) return raw<N, vf>(p); else return part<N>(p); }
template <int N> INL vd load(const f64* p) { return raw<N, vd>(p); }
template <int N> INL vi load(const i32* p) { return raw<N, vi>(p); }
template <int N> INL vl load(const i64* p) { return raw<N, vl>(p); }
template <int N> INL vf load(const bf16* p) { return widen(raw<N, vh>(p), bf16{}); }
template <int N> INL vf load(const f16* p) { return widen(raw<N, vh>(p), f16{}); }
template <int N> INL vi load(const i16* p) { return __builtin_convertvector(raw<N, vs>(p), vi); }
INL vi widen(vc v) { return __builtin_convertvector(__builtin_convertvector(v, vs), vi); }
INL vi widen(vb v) { return (vi)__builtin_convertvector(__builtin_convertvector(v, vh), vu); }
template <int N> INL vi load(const i8* p) { return widen(raw<N, vc>(p)); }
template <int N> INL vi load(const u8* p) { return widen(raw<N, vb>(p)); }
template <int N> INL vi load(const b8* p) { return widen(raw<N, vb>(p)) != 0; }
template <class T> struct Vector { typedef vi type; };
template <> struct Vector<f32> { typedef vf type; }; template <> struct Vector<bf16> { typedef vf type; };
template <> struct Vector<f16> { typedef vf type; }; template <> struct Vector<f64> { typedef vd type; };
template <> struct Vector<i64> { typedef vl type; };
INL auto one(const f32* p) { return splat(*p); }
INL auto one(const f64* p) { return splat(*p); }
INL auto one(const i64* p) { return splat(*p); }
INL auto one(const i32* p) { return splat(*p); }
template <class T> INL auto one(const T* p) {
  auto v = load<1>(p); auto x = v[0];
  for (int l = 1; l < W; ++l) v[l] = x;
  return v;
}
template <int N> INL vf backwards(const f32* p) {
  if constexpr (N == W) return __builtin_shuffle(load<W>(p - (W - 1)), (W - 1) - lanes());
  f32 t[W] = {};
  for (int l = 0; l < N; ++l) t[l] = p[-l];
  return load<W>(t);
}
template <int N, class T> INL auto strided(const T* p, i64 step) {
  T t[W] = {};
  for (int l = 0; l < N; ++l) t[l] = p[l * step];
  return load<W>(t);
}
INL i64 bounded(i64 i, i64 last) { return i < 0 ? 0 : i > last ? last : i; }
template <int N, class T> INL auto gather(const T* p, vl index, i64 step, i64 last, i64 along) {
  T t[W] = {};
  for (int l = 0; l < N; ++l) t[l] = p[bounded(index[l], last) * step + l * along];
  return load<W>(t);
}
template <int N, class V> INL void put(void* p, V v) { __builtin_memcpy(p, &v, sizeof(v) / W * N); }
template <int N> INL void store(f32* p, vf v) { if constexpr (N == W) put<N>(p, v); else put_part<N>(p, v); }
template <int N> INL void store(f64* p, vd v) { put<N>(p, v); }
template <int N> INL void store(i64* p, vl v) { put<N>(p, v); }
template <int N> INL void store(i32* p, vi v) { put<N>(p, v); }
template <int N> INL void store(bf16* p, vf v) { put<N>(p, narrow(v, bf16{})); }
template <int N> INL void store(f16* p, vf v) { put<N>(p, narrow(v, f16{})); }
template <int N> INL void store(i16* p, vi v) { put<N>(p, __builtin_convertvector(v, vs)); }
INL vc bytes(vi v) { return __builtin_convertvector(__builtin_convertvector(v, vs), vc); }
template <int N> INL void store(i8* p, vi v) { put<N>(p, bytes(v)); }
template <int N> INL void store(u8* p, vi v) { put<N>(p, bytes(v)); }
template <int N> INL void store(b8* p, vi v) { put<N>(p, bytes(v & 1)); }
typedef f32 wide __attribute__((vector_size(64))); typedef f32 half __attribute__((vector_size(32)));
template <class V> INL void past_caches(void* p, V v) {
  if (((u64)p & (sizeof(v) - 1)) == 0) {
#if defined(__AVX512F__)
    if constexpr (sizeof(v) == 64) return (void)__builtin_ia32_movntps512((f32*)p, (wide)v);
#endif
#if defined(__AVX__)
    if constexpr (sizeof(v) == 32) return (void)__builtin_ia32_movntps256((f32*)p, (half)v);
#endif
  }
  __builtin_memcpy(p, &v, sizeof(v));
}
template <int N> INL void stream(f32* p, vf v) { if constexpr (N == W) past_caches(p, v); else store<N>(p, v); }
template <int N> INL void stream(f64* p, vd v) { if constexpr (N == W) past_caches(p, v); else store<N>(p, v); }
template <int N, class T, class V> INL void stream(T* p, V v) { store<N>(p, v); }
INL void drain() {
#if defined(__SSE__)
  __builtin_ia32_sfence();
#endif
}
template <int N, class T, class V> INL void store_strided(T* p, i64 step, V v) {
  T t[W];
  store<W>(t, v);
  for (int l = 0; l < N; ++l) p[l * step] = t[l];
}
"""

REDUCTIONS = r"""
INL vi live(int n) { return lanes() < n; }
template <int N, class V> INL V only(V v, V rest) { if constexpr (N == W) return v; else return sel(live(N), v, rest); }
template <int N, class V> INL void add_to(V& total, V v) { total += only<N>(v, V{}); }
template <int N, class V> INL void max_to(V& peak, V v) { peak = vmax(only<N>(v, peak), peak); }
template <int N, class V> INL void min_to(V& low, V v) { low = vmin(only<N>(v, low), low); }
INL f64 larger(f64 a, f64 b) { return a > b || a != a ? a : b; }
INL f64 smaller(f64 a, f64 b) { return a < b || a != a ? a : b; }
template <int S> INL vf rotated(vf v) { return __builtin_shuffle(v, (lanes() + S) & (W - 1)); }
template <int S> INL vd rotated(vd v) { return __builtin_shuffle(v, to_i64((lanes() + S) & (W - 1))); }
struct Add { template <class V> INL_METHOD V operator()(V a, V b) const { return a + b; } };
struct Max { template <class V> INL_METHOD V operator()(V a, V b) const { return vmax(a, b); } };
struct Min { template <class V> INL_METHOD V operator()(V a, V b) const { return vmin(a, b); } };
template <int S, class V, class F> INL V folded(V v, F f) {
  v = f(rotated<S>(v), v);
  if constexpr (S > 1) return folded<S / 2>(v, f); else return v;
}
template <class V> INL f64 total(V v) { return folded<W / 2>(to_f64(v), Add{})[0]; }
template <class V> INL f64 largest(V v) { return folded<W / 2>(v, Max{})[0]; }
template <class V> INL f64 smallest(V v) { return folded<W / 2>(v, Min{})[0]; }
template <int S> INL vf shifted(vf v) {
  return __builtin_shuffle(vf{}, v, sel(lanes() < S, lanes(), lanes() + (W - S)));
}
template <int S> INL vd shifted(vd v) {
  vl l = to_i64(lanes());
  return __builtin_shuffle(vd{}, v, l < S ? l : l + (W - S));
}
template <class V> INL V prefix(V v) {
  v += shifted<1>(v); v += shifted<2>(v);
  if constexpr (W > 4) v += shifted<4>(v);
  if constexpr (W > 8) v += shifted<8>(v);
  return v;
}
INL vf running(vf v, f64& carry) {
  v = prefix(v);
  vd r = to_f64(v) + carry;
  carry = r[W - 1];
  return to_f32(r);
}
INL vd running(vd v, f64& carry) { v = prefix(v) + carry; carry = v[W - 1]; return v; }
INL vf running(vf v, vd& carry) { carry += to_f64(v); return to_f32(carry); }
INL vd running(vd v, vd& carry) { carry += v; return carry; }

template <class F> static void parallel(i64 count, int threads, F f) {
  if (threads > count) threads = (int)count;
  if (threads <= 1) { f(0, count); drain(); return; }
#pragma omp parallel num_threads(threads)
  { i64 t = omp_get_thread_num(), n = omp_get_num_threads(); f(count * t / n, count * (t + 1) / n); drain(); }
}
INL int enough(int threads, i64 work) {
  i64 most = work / 8192;
  return most >= threads ? threads : most < 1 ? 1 : (int)most;
}
static bool was_used(void* p, unsigned long bytes) {
  unsigned char present = 0;
  return mincore((void*)(((unsigned long)p + bytes / 2) & ~4095ul), 1, &present) == 0 && (present & 1);
}
static void huge_pages(void* p, unsigned long bytes) {
  unsigned long start = ((unsigned long)p + 4095) & ~4095ul, end = ((unsigned long)p + bytes) & ~4095ul;
  madvise((void*)start, end - start, 14);
}
"""

ROUNDED = r"""
// Keeps a product from being taken unrounded into a sum: it would exceed its own maximum, by 512 where that is 1e10.
INL vf rounded(vf v) {
#if defined(__x86_64__)
  asm("" : "+v"(v));
#elif defined(__aarch64__)
  asm("" : "+w"(v));
#endif
  return v;
}
"""
"""What follows the header where a maximum or minimum is taken of what is computed."""


def header(element: int) -> str:
    """The beginning of a file whose widest values have `element` bytes (4 or 8)."""
    return f"#define ELEMENT {element}\n" + VECTORS + FUNCTIONS + REDUCTIONS
