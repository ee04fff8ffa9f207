"""The C++ that every generated file begins with: vectors, conversions, elementary functions, threads.

No header is included, so a file compiles in a fraction of a second. Vectors are GCC's own (`vector_size`), as wide as
the machine's registers; elementary functions are polynomials of single precision with the right limits at inf, nan
and zero. `ELEMENT` is 4, or 8 where a file holds 64-bit values, so that the widest vector fits one register.
"""

from __future__ import annotations

VECTORS = r"""
#define INL static inline __attribute__((always_inline))
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
  int omp_get_thread_num(void); int omp_get_num_threads(void); int madvise(void*, unsigned long, int);
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
template <int N> INL vf load(const f32* p) { return raw<N, vf>(p); }
template <int N> INL vd load(const f64* p) { return raw<N, vd>(p); }
template <int N> INL vi load(const i32* p) { return raw<N, vi>(p); }
template <int N> INL vl load(const i64* p) { return raw<N, vl>(p); }
template <int N> INL vf load(const bf16* p) { return widen(raw<N, vh>(p), bf16{}); }
template <int N> INL vf load(const f16* p) { return widen(raw<N, vh>(p), f16{}); }
template <int N> INL vi load(const i16* p) { return __builtin_convertvector(raw<N, vs>(p), vi); }
template <int N> INL vi load(const i8* p) { return __builtin_convertvector(raw<N, vc>(p), vi); }
template <int N> INL vi load(const u8* p) { return __builtin_convertvector(raw<N, vb>(p), vi); }
template <int N> INL vi load(const b8* p) { return __builtin_convertvector(raw<N, vb>(p), vi) != 0; }
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
template <int N> INL void store(f32* p, vf v) { put<N>(p, v); }
template <int N> INL void store(f64* p, vd v) { put<N>(p, v); }
template <int N> INL void store(i64* p, vl v) { put<N>(p, v); }
template <int N> INL void store(i32* p, vi v) { put<N>(p, v); }
template <int N> INL void store(bf16* p, vf v) { put<N>(p, narrow(v, bf16{})); }
template <int N> INL void store(f16* p, vf v) { put<N>(p, narrow(v, f16{})); }
template <int N> INL void store(i16* p, vi v) { put<N>(p, __builtin_convertvector(v, vs)); }
template <int N> INL void store(i8* p, vi v) { put<N>(p, __builtin_convertvector(v, vc)); }
template <int N> INL void store(u8* p, vi v) { put<N>(p, __builtin_convertvector(v, vb)); }
template <int N> INL void store(b8* p, vi v) { put<N>(p, __builtin_convertvector(v & 1, vb)); }
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

FUNCTIONS = r"""
template <class V, class F> INL V each(V x, F f) { for (int l = 0; l < W; ++l) x[l] = f(x[l]); return x; }
INL vf vabs(vf x) { return (vf)((vi)x & 0x7fffffff); }
INL vd vabs(vd x) { return (vd)((vl)x & 0x7fffffffffffffffL); }
INL vi vabs(vi x) { return x < 0 ? -x : x; }
INL vl vabs(vl x) { return x < 0 ? -x : x; }
INL vf sign_of(vf magnitude, vf s) { return (vf)(((vi)magnitude & 0x7fffffff) | ((vi)s & (i32)0x80000000)); }
#if ELEMENT == 4 && defined(__AVX512F__) && __has_builtin(__builtin_ia32_scalefps512_mask)
INL vf at_least(vf x, f32 low) { return __builtin_ia32_maxps512_mask(splat(low), x, vf{}, -1, 4); }
INL vf at_most(vf x, f32 high) { return __builtin_ia32_minps512_mask(splat(high), x, vf{}, -1, 4); }
INL vf times_power_of_two(vf p, vf n) { return __builtin_ia32_scalefps512_mask(p, n, vf{}, -1, 4); }
INL vf vmax(vf a, vf b) { return sel(a != a, a, (vf)__builtin_ia32_maxps512_mask(a, b, vf{}, -1, 4)); }
INL vf vmin(vf a, vf b) { return sel(a != a, a, (vf)__builtin_ia32_minps512_mask(a, b, vf{}, -1, 4)); }
#else
INL vf at_least(vf x, f32 low) { return sel(x < low, splat(low), x); }
INL vf at_most(vf x, f32 high) { return sel(x > high, splat(high), x); }
INL vf times_power_of_two(vf p, vf n) {
  vi k = to_i32(n), half = k >> 1;
  return p * as_float((half + 127) << 23) * as_float((k - half + 127) << 23);
}
#endif
template <class V> INL V vmax(V a, V b) { return sel(mask(a > b) | mask(a != a), a, b); }
template <class V> INL V vmin(V a, V b) { return sel(mask(a < b) | mask(a != a), a, b); }
template <class V> INL V vmaximum(V a, V b) { return sel(mask(b != b), b, vmax(a, b)); }
template <class V> INL V vminimum(V a, V b) { return sel(mask(b != b), b, vmin(a, b)); }
INL vf vsqrt(vf x) { for (int l = 0; l < W; ++l) x[l] = __builtin_sqrtf(x[l]); return x; }
INL vd vsqrt(vd x) { for (int l = 0; l < W; ++l) x[l] = __builtin_sqrt(x[l]); return x; }
INL vf vround(vf x) {
  vf a = vabs(x), r = (a + 8388608.f) - 8388608.f;
  return sign_of(sel(a < 8388608.f, r, a), x);
}
INL vf vfloor(vf x) { vf r = vround(x); return sel(r > x, r - 1.f, r); }
INL vf vceil(vf x) { vf r = vround(x); return sel(r < x, r + 1.f, r); }
INL vf vtrunc(vf x) { return sign_of(vfloor(vabs(x)), x); }
INL vf vsign(vf x) { return sel(x > 0, splat(1.f), sel(x < 0, splat(-1.f), x * 0.f)); }
INL vf power_of_two(vi k) { return as_float((k + 127) << 23); }
INL vf nearest(vf x) { return (x + 12582912.f) - 12582912.f; }

INL vf exp_polynomial(vf r) {
  vf p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f; p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f; p = p * r + 5.0000001201e-1f;
  return p;
}
INL vf vexp(vf x) {
  x = at_least(at_most(x, 89.f), -104.f);
  vf n = nearest(x * 1.44269504f);
  vf r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  vf p = exp_polynomial(r) * (r * r) + r + 1.f;
  return times_power_of_two(p, n);
}
INL vf vexp2(vf x) {
  x = at_least(at_most(x, 129.f), -151.f);
  vf n = nearest(x), r = (x - n) * 0.693147181f;
  vf p = exp_polynomial(r) * (r * r) + r + 1.f;
  return times_power_of_two(p, n);
}
INL vf vexpm1(vf x) {
  vf y = at_least(at_most(x, 89.f), -50.f);
  vf n = nearest(y * 1.44269504f);
  vf r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
  vf p = exp_polynomial(r) * (r * r) + r, t = power_of_two(to_i32(n) - 1);
  return sel(x == 0.f, x, (t * p + (t - 0.5f)) * 2.f);
}
INL vf vlog(vf x) {
  vi tiny = x < 1.17549435e-38f;
  vf y = sel(tiny, x * 8388608.f, x);
  vi bits = as_int(y), e = ((bits - 0x3f3504f3) >> 23);
  vf m = as_float(bits - (e << 23)) - 1.f, n = to_f32(sel(tiny, e - 23, e)), z = m * m;
  vf p = m * 7.0376836292e-2f - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f; p = p * m - 1.2420140846e-1f; p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f; p = p * m + 2.0000714765e-1f; p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  vf r = p * m * z + n * -2.12194440e-4f;
  r = (r - z * 0.5f) + m + n * 0.693359375f;
  r = sel(x > 3.40282347e38f, x, r);
  r = sel(x == 0.f, splat(-__builtin_inff()), r);
  return sel((x < 0.f) | (x != x), splat(__builtin_nanf("")), r);
}
INL vf vlog1p(vf x) {
  vf u = x + 1.f, d = u - 1.f, r = vlog(u) * (x / d);
  return sel(u == 1.f, x, sel(u > 3.40282347e38f, u, r));
}
INL vf vtanh(vf x) {
  vf a = vabs(x), e = vexpm1(sel(a > 10.f, splat(20.f), a + a));
  return sign_of(e / (e + 2.f), x);
}
INL vf vsigmoid(vf x) { return 1.f / (1.f + vexp(-x)); }
INL vf verf(vf x) {
  vf t = vabs(x), s = x * x;
  t = sel(t > 4.f, splat(4.f), t);
  s = sel(s > 16.f, splat(16.f), s);
  vf r = t * -1.72853470e-5f + 3.83197126e-4f, u = t * -3.88396438e-3f + 2.42546219e-2f;
  r = r * s + u; r = r * t - 1.06777877e-1f; r = r * t - 6.34846687e-1f; r = r * t - 1.28717512e-1f;
  r = r * t - t;
  vf big = sign_of(1.f - vexp(r), x);
  vf p = s * -5.96761703e-4f + 4.99119423e-3f;
  p = p * s - 2.67681349e-2f; p = p * s + 1.12819925e-1f; p = p * s - 3.76125336e-1f; p = p * s + 1.28379166e-1f;
  return sel(t > 0.927734375f, big, p * x + x);
}
template <int SHIFT> INL vf sine(vf x) {
  if (any(mask(vabs(x) > 8192.f) | mask(x != x))) return each(x, [](f32 v) { return (f32)(SHIFT ? cos(v) : sin(v)); });
  vf j = nearest(x * 0.636619772f);
  vf r = ((x - j * 1.5703125f) - j * 4.8351287841796875e-4f) - j * 3.13855707645416259765625e-7f;
  r = r - j * 6.077100628276710e-11f;
  vi q = to_i32(j) + SHIFT;
  vf z = r * r;
  vf s = ((z * -1.9515295891e-4f + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * r + r;
  vf c = ((z * 2.443315711809948e-5f - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z - z * 0.5f + 1.f;
  vf v = sel((q & 1) != 0, c, s);
  return sel((q & 2) != 0, -v, v);
}
INL vf vsin(vf x) { return sine<0>(x); }
INL vf vcos(vf x) { return sine<1>(x); }
template <class V> INL V vreciprocal(V x) { return 1 / x; }
template <class V> INL V vrsqrt(V x) { return 1 / vsqrt(x); }
INL vf vpow(vf x, vf y) { for (int l = 0; l < W; ++l) x[l] = powf(x[l], y[l]); return x; }
INL vd vpow(vd x, vd y) { for (int l = 0; l < W; ++l) x[l] = pow(x[l], y[l]); return x; }
#define EACH32(name, function) INL vf name(vf x) { return each(x, [](f32 v) { return function(v); }); }
EACH32(vtan, tanf) EACH32(vatan, atanf) EACH32(vasin, asinf) EACH32(vacos, acosf) EACH32(vsinh, sinhf)
EACH32(vcosh, coshf) EACH32(verfc, erfcf)
#define EACH64(name, function) INL vd name(vd x) { return each(x, [](f64 v) { return function(v); }); }
EACH64(vexp, exp) EACH64(vexp2, exp2) EACH64(vexpm1, expm1) EACH64(vlog, log) EACH64(vlog1p, log1p) EACH64(vsin, sin)
EACH64(vcos, cos) EACH64(vtan, tan) EACH64(vtanh, tanh) EACH64(verf, erf) EACH64(verfc, erfc) EACH64(vatan, atan)
EACH64(vasin, asin) EACH64(vacos, acos) EACH64(vsinh, sinh) EACH64(vcosh, cosh) EACH64(vround, rint)
EACH64(vfloor, floor) EACH64(vceil, ceil) EACH64(vtrunc, trunc)
INL vd vsign(vd x) { return sel(mask(x > 0), splat(1.), sel(mask(x < 0), splat(-1.), x * 0.)); }
INL vd vsigmoid(vd x) { return 1. / (1. + vexp(-x)); }
"""

REDUCTIONS = r"""
INL vi live(int n) { return lanes() < n; }
template <int N, class V> INL V only(V v, V rest) { if constexpr (N == W) return v; else return sel(live(N), v, rest); }
template <int N, class V> INL void add_to(V& total, V v) { total += only<N>(v, V{}); }
template <int N, class V> INL void max_to(V& peak, V v) { peak = vmax(only<N>(v, peak), peak); }
template <int N, class V> INL void min_to(V& low, V v) { low = vmin(only<N>(v, low), low); }
template <class V> INL f64 total(V v) { f64 s = 0; for (int l = 0; l < W; ++l) s += v[l]; return s; }
INL f64 larger(f64 a, f64 b) { return a > b || a != a ? a : b; }
INL f64 smaller(f64 a, f64 b) { return a < b || a != a ? a : b; }
template <class V> INL f64 largest(V v) { f64 m = v[0]; for (int l = 1; l < W; ++l) m = larger(v[l], m); return m; }
template <class V> INL f64 smallest(V v) { f64 m = v[0]; for (int l = 1; l < W; ++l) m = smaller(v[l], m); return m; }
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
static void huge_pages(void* p, unsigned long bytes) {
  unsigned long start = ((unsigned long)p + 4095) & ~4095ul, end = ((unsigned long)p + bytes) & ~4095ul;
  madvise((void*)start, end - start, 14);
}
"""


def header(element: int) -> str:
    """The beginning of a file whose widest values have `element` bytes (4 or 8)."""
    return f"#define ELEMENT {element}\n" + VECTORS + FUNCTIONS + REDUCTIONS
