// Vectors as wide as the registers of the CPU that this is compiled for (GCC's and Clang's vector extension), and what
// that extension lacks: fused multiply-add, dot products of bytes, exp, rounding to bf16.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace hk {

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define HK_AVX512 1
constexpr int LANES = 16;
#elif defined(__AVX2__) && defined(__FMA__)
#define HK_AVX2 1
constexpr int LANES = 8;
#else
constexpr int LANES = 4;
#endif

// GCC takes a function that only prefetches for one without effect, and drops calls of it, unless it is inlined early.
#define HK_INLINE inline __attribute__((always_inline))

// How far ahead to ask for memory where each byte is read once: a core keeps too few requests of its own in flight, and
// the hardware's prefetcher stops at the end of a page.
constexpr int64_t AHEAD = 4096;

typedef float vf __attribute__((vector_size(LANES * 4)));
typedef int32_t vi __attribute__((vector_size(LANES * 4)));
typedef uint32_t vu __attribute__((vector_size(LANES * 4)));
typedef int16_t vi16 __attribute__((vector_size(LANES * 2)));
typedef uint16_t vu16 __attribute__((vector_size(LANES * 2)));
typedef int8_t vi8 __attribute__((vector_size(LANES)));

template <class T>
static inline T load(const void* p) {
    T v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

template <class T>
static inline void store(void* p, T v) {
    std::memcpy(p, &v, sizeof v);
}

// x − 0 is x for every x, so that compilers emit a plain broadcast; 0 + x is not, for x = −0.
static inline vf splat(float x) { return x - vf{}; }
static inline vi splat(int32_t x) { return x + vi{}; }

// Explicit, so that every instance of a template rounds alike, whatever the compiler chooses to contract.
static inline vf fma(vf a, vf b, vf c) {
#if defined(HK_AVX512)
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(HK_AVX2)
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}

// Two bf16 in each 32-bit lane, widened: a bf16 is the upper half of a float.
static inline vf low_bf16(vu pair) { return (vf)(pair << 16); }
static inline vf high_bf16(vu pair) { return (vf)(pair & 0xffff0000u); }
static inline vf load_bf16(const uint16_t* p) { return (vf)(__builtin_convertvector(load<vu16>(p), vu) << 16); }

static inline float widen(uint16_t x) {
    uint32_t u = (uint32_t)x << 16;
    float f;
    std::memcpy(&f, &u, 4);
    return f;
}

// To nearest, ties to even, as PyTorch rounds; NaN stays NaN.
static inline uint16_t narrow(float f) {
    uint32_t u;
    std::memcpy(&u, &f, 4);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((u >> 16) | 0x40);
    return (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

// acc + Σ over 4 bytes of w (unsigned) · x (signed) in each 32-bit lane, exactly.
static inline vi dot4(vi acc, vi w, vi x) {
#if defined(HK_AVX512) && defined(__AVX512VNNI__)
    return (vi)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)w, (__m512i)x);
#elif defined(HK_AVX512)
    // Even and odd bytes apart in 16 bits: vpmaddubsw would saturate at 255 · 127 · 2.
    __m512i even = _mm512_madd_epi16(_mm512_and_si512((__m512i)w, _mm512_set1_epi16(0xff)),
                                     _mm512_srai_epi16(_mm512_slli_epi16((__m512i)x, 8), 8));
    __m512i odd = _mm512_madd_epi16(_mm512_srli_epi16((__m512i)w, 8), _mm512_srai_epi16((__m512i)x, 8));
    return acc + (vi)even + (vi)odd;
#elif defined(HK_AVX2)
    __m256i even = _mm256_madd_epi16(_mm256_and_si256((__m256i)w, _mm256_set1_epi16(0xff)),
                                     _mm256_srai_epi16(_mm256_slli_epi16((__m256i)x, 8), 8));
    __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16((__m256i)w, 8), _mm256_srai_epi16((__m256i)x, 8));
    return acc + (vi)even + (vi)odd;
#else
    vi bytes = (vi)((vu)w & 0xffu);
    acc += bytes * ((x << 24) >> 24);
    acc += (vi)(((vu)w >> 8) & 0xffu) * ((x << 16) >> 24);
    acc += (vi)(((vu)w >> 16) & 0xffu) * ((x << 8) >> 24);
    return acc + (vi)((vu)w >> 24) * (x >> 24);
#endif
}

static inline vf select(vi mask, vf yes, vf no) {
    return (vf)(((vi)yes & mask) | ((vi)no & ~mask));
}

// a where it is larger, else b, also where one is NaN.
static inline vf vmax(vf a, vf b) {
#if defined(HK_AVX512)
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#else
    return select(a > b, a, b);
#endif
}

// To the nearest whole number, ties to even, for |x| < 2²².
static inline vf round_even(vf x) { return (x + 12582912.0f) - 12582912.0f; }

// exp(x) to about 1 ulp: 2ⁿ · p(r), x = n·ln 2 + r (Cody and Waite, 1980; Taylor polynomial of degree 7 on |r| ≤ ln 2 / 2).
static inline vf vexp(vf x) {
    // Beyond these bounds the result is infinity or 0 all the same. Comparisons with NaN are false: it passes.
    vf bounded = select(x > 89.0f, splat(89.0f), select(x < -104.0f, splat(-104.0f), x));
    vf n = round_even(bounded * 1.44269504f);
    vf r = fma(n, splat(-0.693359375f), bounded);
    r = fma(n, splat(2.12194440e-4f), r);
    vf p = splat(1.0f / 5040);
    p = fma(p, r, splat(1.0f / 720));
    p = fma(p, r, splat(1.0f / 120));
    p = fma(p, r, splat(1.0f / 24));
    p = fma(p, r, splat(1.0f / 6));
    p = fma(p, r, splat(0.5f));
    p = fma(p, r, splat(1.0f));
    p = fma(p, r, splat(1.0f));
    // In two halves, so that 2¹²⁸ and denormals come out right. p is NaN where x is: n must only be a number there.
    vi power = __builtin_convertvector(select(x == x, n, vf{}), vi);
    vi half = power >> 1;
    return p * (vf)((half + 127) << 23) * (vf)((power - half + 127) << 23);
}

// log(x) to about 1 ulp for normal x > 0: x = 2ⁿ · m, m in [√½, √2), and a polynomial in m − 1 (coefficients: Cephes, logf).
static inline vf vlog(vf x) {
    vi bits = (vi)x - 0x3f3504f3;
    vf n = __builtin_convertvector(bits >> 23, vf);
    vf r = (vf)((bits & 0x007fffff) + 0x3f3504f3) - 1.0f;
    vf p = splat(7.0376836292e-2f);
    p = fma(p, r, splat(-1.1514610310e-1f));
    p = fma(p, r, splat(1.1676998740e-1f));
    p = fma(p, r, splat(-1.2420140846e-1f));
    p = fma(p, r, splat(1.4249322787e-1f));
    p = fma(p, r, splat(-1.6668057665e-1f));
    p = fma(p, r, splat(2.0000714765e-1f));
    p = fma(p, r, splat(-2.4999993993e-1f));
    p = fma(p, r, splat(3.3333331174e-1f));
    vf square = r * r;
    vf tail = fma(n, splat(-2.12194440e-4f), p * square * r) - 0.5f * square;
    return fma(n, splat(0.693359375f), r + tail);
}

// 2ˣ to 5e-5 for −126 ≤ x ≤ 0, where the result is rounded to a byte anyway (Taylor polynomial of degree 4).
static inline vf rough_exp2(vf x) {
    vf n = round_even(x), r = x - n;
    vf p = fma(r, splat(0.009618129f), splat(0.055504109f));
    p = fma(p, r, splat(0.240226507f));
    p = fma(p, r, splat(0.693147181f));
    p = fma(p, r, splat(1.0f));
    return p * (vf)((__builtin_convertvector(n, vi) + 127) << 23);
}

static inline vf silu(vf x) { return x / (vexp(-x) + 1.0f); }

// x · Φ(x) with erf to 1.5e-7 (Abramowitz and Stegun, 7.1.26).
static inline vf gelu(vf x) {
    vf z = (vf)((vi)x & 0x7fffffff) * 0.70710678f;
    vf t = 1.0f / fma(z, splat(0.3275911f), splat(1.0f));
    vf p = fma(t, splat(1.061405429f), splat(-1.453152027f));
    p = fma(p, t, splat(1.421413741f));
    p = fma(p, t, splat(-0.284496736f));
    p = fma(p, t, splat(0.254829592f));
    vf half_tail = p * t * vexp(-z * z) * 0.5f;  // (1 − erf z) / 2
    return x * select(x < 0.0f, half_tail, 1.0f - half_tail);
}

// To about 1 ulp of 1 for |x| below some thousands (range in three parts and polynomials: Cephes, sinf and cosf).
static inline void sine_cosine(vf x, vf& sine, vf& cosine) {
    vf n = round_even(x * 0.63661977f);
    vf r = fma(n, splat(-1.5703125f), x);
    r = fma(n, splat(-4.837512969970703125e-4f), r);
    r = fma(n, splat(-7.54978995489188e-8f), r);
    vf square = r * r;
    vf s = fma(square, splat(-1.9515295891e-4f), splat(8.3321608736e-3f));
    s = fma(s, square, splat(-1.6666654611e-1f));
    s = fma(s * square, r, r);
    vf c = fma(square, splat(2.443315711809948e-5f), splat(-1.388731625493765e-3f));
    c = fma(c, square, splat(4.166664568298827e-2f));
    c = fma(c * square, square, fma(square, splat(-0.5f), splat(1.0f)));
    vi quarter = __builtin_convertvector(n, vi), odd = -(quarter & 1);
    sine = (vf)((vi)select(odd, c, s) ^ ((quarter & 2) << 30));
    cosine = (vf)((vi)select(odd, s, c) ^ (((quarter + 1) & 2) << 30));
}

static inline float sum_lanes(vf x) {
    // A tree of fixed shape.
    float lane[LANES];
    store(lane, x);
    for (int n = LANES / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++) lane[i] += lane[i + n];
    return lane[0];
}

static inline int32_t sum_lanes(vi x) {
#if defined(HK_AVX512)
    return _mm512_reduce_add_epi32((__m512i)x);
#else
    int32_t total = 0;
    for (int i = 0; i < LANES; i++) total += x[i];
    return total;
#endif
}

static inline int32_t max_lanes(vi x) {
#if defined(HK_AVX512)
    return _mm512_reduce_max_epi32((__m512i)x);
#else
    int32_t top = x[0];
    for (int i = 1; i < LANES; i++) top = x[i] > top ? x[i] : top;
    return top;
#endif
}

static inline float max_lanes(vf x) {
    float lane[LANES], top;
    store(lane, x);
    top = lane[0];
    for (int i = 1; i < LANES; i++) top = lane[i] > top ? lane[i] : top;
    return top;
}

// Of numbers; where all are NaN it is NaN.
static inline float max_of_numbers(vf x) {
#if defined(HK_AVX512)
    return _mm512_reduce_max_ps((__m512)x);
#else
    return max_lanes(x);
#endif
}

// Even and odd elements of a followed by b; the sum of both halves the number of lanes that a sum is spread over.
#if defined(__clang__) || (defined(__has_builtin) && __has_builtin(__builtin_shufflevector))
#define HK_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define HK_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, vi{__VA_ARGS__})
#endif
template <class T>
static inline T add_pairs(T a, T b) {
#if defined(HK_AVX512)
    return HK_SHUFFLE(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30) +
           HK_SHUFFLE(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
#elif defined(HK_AVX2)
    return HK_SHUFFLE(a, b, 0, 2, 4, 6, 8, 10, 12, 14) + HK_SHUFFLE(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#else
    return HK_SHUFFLE(a, b, 0, 2, 4, 6) + HK_SHUFFLE(a, b, 1, 3, 5, 7);
#endif
}

// Sums of LANES vectors, one per lane. Destroys v. A template, so that all of it stays in registers.
template <int N = LANES, class T>
HK_INLINE T sum_each(T* v) {
    if constexpr (N > 1) {
#pragma GCC unroll 16
        for (int i = 0; i < N / 2; i++) v[i] = add_pairs(v[2 * i], v[2 * i + 1]);
        return sum_each<N / 2>(v);
    }
    return v[0];
}

// Floats at p, p + stride, … (bytes), of which `count` are there.
static inline vf gather(const char* p, int64_t stride, int64_t count) {
#if defined(HK_AVX512)
    if (count == LANES) {
        vi lane;
        for (int i = 0; i < LANES; i++) lane[i] = i;
        return (vf)_mm512_i32gather_ps((__m512i)(lane * (int32_t)stride), p, 1);
    }
#endif
    float each[LANES] = {};
    for (int64_t i = 0; i < count; i++) std::memcpy(each + i, p + i * stride, 4);
    return load<vf>(each);
}

}  // namespace hk
