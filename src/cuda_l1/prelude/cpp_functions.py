"""Elementary functions on vectors, in C++: polynomials of single precision with the right limits at inf, nan and zero.

GCC vectorises no `expf` without -ffast-math, which would also drop nan and inf. Errors are at most 2.5 units in the
last place (a test holds them). Coefficients: exp, log, sin, cos from Cephes; erf from N. Juffa's single-precision erff.
Double precision calls the C library, one element at a time.
"""

from __future__ import annotations

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
// Of zeros with different signs the first, so that clamp(-0.0, min=0) stays as it is.
template <class V> INL V vmaximum(V a, V b) { return vmax(b, a); }
template <class V> INL V vminimum(V a, V b) { return vmin(b, a); }
INL vf vsqrt(vf x) { for (int l = 0; l < W; ++l) x[l] = __builtin_sqrtf(x[l]); return x; }
INL vd vsqrt(vd x) { for (int l = 0; l < W; ++l) x[l] = __builtin_sqrt(x[l]); return x; }
INL vf vround(vf x) {
  vf a = vabs(x), r = (a + 8388608.f) - 8388608.f;
  return sign_of(sel(a < 8388608.f, r, a), x);
}
INL vf vfloor(vf x) { vf r = vround(x); return sel(r > x, r - 1.f, r); }
INL vf vceil(vf x) { vf r = vround(x); return sel(r < x, r + 1.f, r); }
INL vf vtrunc(vf x) { return sign_of(vfloor(vabs(x)), x); }
INL vf vsign(vf x) { return sel(x > 0, splat(1.f), sel(x < 0, splat(-1.f), vf{})); }
INL vf power_of_two(vi k) { return as_float((k + 127) << 23); }
INL vf nearest(vf x) { return (x + 12582912.f) - 12582912.f; }

INL vf exp_polynomial(vf r) {
  vf p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f; p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f; p = p * r + 5.0000001201e-1f;
  return p;
}
INL vf exp_within_range(vf x) {
  vf n = nearest(x * 1.44269504f);
  vf r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  vf p = exp_polynomial(r) * (r * r) + r + 1.f;
  return times_power_of_two(p, n);
}
INL vf vexp(vf x) { return exp_within_range(at_least(at_most(x, 89.f), -104.f)); }
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
  vf a = vabs(x), e = vexpm1(at_most(a + a, 20.f));
  return sign_of(e / (e + 2.f), x);
}
INL vf vsigmoid(vf x) { return 1.f / (1.f + vexp(-x)); }
INL vf verf(vf x) {
  vf t = vabs(x), s = x * x;
  t = at_most(t, 4.f);
  s = at_most(s, 16.f);
  vf r = t * -1.72853470e-5f + 3.83197126e-4f, u = t * -3.88396438e-3f + 2.42546219e-2f;
  r = r * s + u; r = r * t - 1.06777877e-1f; r = r * t - 6.34846687e-1f; r = r * t - 1.28717512e-1f;
  r = r * t - t;
  vf big = sign_of(1.f - exp_within_range(r), x);
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
INL vf vsin(vf x) { return sel(x == 0.f, x, sine<0>(x)); }
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
INL vd vsign(vd x) { return sel(mask(x > 0), splat(1.), sel(mask(x < 0), splat(-1.), vd{})); }
INL vd vsigmoid(vd x) { return 1. / (1. + vexp(-x)); }
"""
