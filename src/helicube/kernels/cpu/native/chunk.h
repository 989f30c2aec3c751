// Attention of a few queries of one row over one chunk of the keys of one head, in float32.
#pragma once

#include "prepare.h"

namespace hk {

constexpr int64_t CHUNK = 512;

// What is known after some keys: the largest score, Σ exp(score − top), Σ exp(score − top) · value.
struct Partial {
    float top, total;
    float* sum;
};

// Consecutive slots of one head, of keys or of values.
struct Slots {
    const char* first = nullptr;
    int64_t stride = 0, count = 0;  // stride in bytes
    int64_t size = 0, format = FLOAT32;
    // How many slots ahead to ask for memory.
    int64_t ahead = 0;

    Slots() = default;
    Slots(const Cache& c, int64_t row, int64_t head, int64_t start, int64_t num, int64_t values)
        : stride(c.slot_stride * item_bytes(c.format)), count(num), size(values), format(c.format) {
        int64_t element = row * c.batch_stride + head * c.head_stride + start * c.slot_stride;
        first = c.data + element * item_bytes(c.format);
        ahead = std::max<int64_t>(AHEAD / std::max<int64_t>(bytes(), 1), LANES);
    }
    static int64_t item_bytes(int64_t format) { return format == FLOAT32 ? 4 : format == BFLOAT16 ? 2 : 1; }
    int64_t bytes() const { return size * item_bytes(format); }
    // int8.
    float scale(int64_t slot) const { return load<float>(first + slot * stride + size); }

    void read(int64_t slot, float* to) const {
        const char* from = first + slot * stride;
        if (format != INT8) return read_row({(char*)from, 0, format}, 0, size, to);
        float factor = scale(slot);
        for (int64_t i = 0; i < size; i++) to[i] = factor * (float)((const int8_t*)from)[i];
    }
};

// int8 to floats.
static inline vf load_int8(const char* p) {
#if defined(HK_AVX512)
    // GCC takes the vector apart for the general form.
    return (vf)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p)));
#elif defined(HK_AVX2)
    return (vf)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p)));
#else
    return __builtin_convertvector(__builtin_convertvector(load<vi8>(p), vi), vf);
#endif
}

// Asks for BYTES of the slot that is read a little after slot i of `now`; what is read after those is `next`.
template <int64_t BYTES>
HK_INLINE void fetch_ahead(const Slots& now, const Slots& next, int64_t i, int64_t from) {
    int64_t slot = i + now.ahead, over = slot - now.count;
    const char* at = over < 0 ? now.first + slot * now.stride : next.first + std::min(over, next.count) * next.stride;
    for (int64_t b = 0; b < BYTES; b += 64) __builtin_prefetch(at + from + b, 0, 2);
}

// Scores of LANES keys (of `count`, the last one again and again, where there are fewer) with one query. bf16: the query's
// even and odd values lie apart: LANES even ones, LANES odd ones, and so on. `size` is a multiple of what one step takes.
// Meanwhile as many slots are fetched from `ahead` on.
template <int64_t FORMAT, bool FULL>
static vf dot_keys(const float* q, const char* keys, int64_t stride, int64_t count, int64_t size, const char* ahead,
                   int64_t ahead_stride) {
    constexpr bool SPLIT = FORMAT == BFLOAT16;
    vf acc[LANES] = {};
    for (int64_t i = 0; i < size; i += SPLIT ? 2 * LANES : LANES) {
        vf even = load<vf>(q + i), odd = SPLIT ? load<vf>(q + i + LANES) : vf{};
        int64_t at = i * (SPLIT ? 2 : 4);
#pragma GCC unroll 16
        for (int64_t j = 0; j < LANES; j++) {
            const char* key = keys + (FULL ? j : std::min(j, count - 1)) * stride + at;
            __builtin_prefetch(ahead + j * ahead_stride + at, 0, 2);
            if (SPLIT)
                acc[j] = fma(odd, high_bf16(load<vu>(key)), fma(even, low_bf16(load<vu>(key)), acc[j]));
            else
                acc[j] = fma(even, load<vf>(key), acc[j]);
        }
    }
    return sum_each(acc);
}

template <int64_t FORMAT>
static vf dot_keys(const float* q, const char* keys, int64_t stride, int64_t count, int64_t size, const char* ahead,
                   int64_t ahead_stride) {
    if (count == LANES) return dot_keys<FORMAT, true>(q, keys, stride, count, size, ahead, ahead_stride);
    return dot_keys<FORMAT, false>(q, keys, stride, count, size, ahead, ahead_stride);
}

// Sums of the products of int8 numbers; 64 of them at a time. `ahead` as above.
template <bool FULL>
static vi dot_bytes(const int8_t* q, const char* keys, int64_t stride, int64_t count, int64_t size, const char* ahead,
                    int64_t ahead_stride) {
    vi acc[LANES] = {};
    for (int64_t i = 0; i < size; i += 4 * LANES) {
        vi query = load<vi>(q + i);
#pragma GCC unroll 16
        for (int64_t j = 0; j < LANES; j++) {
            const char* key = keys + (FULL ? j : std::min(j, count - 1)) * stride + i;
            __builtin_prefetch(ahead + j * ahead_stride + i, 0, 2);
            // The other factor is unsigned: 128 more than the key.
            acc[j] = dot4(acc[j], load<vi>(key) ^ (int32_t)0x80808080, query);
        }
    }
    return sum_each(acc);
}

// A query rounded to int8, for int8 keys of whole steps.
struct RoundedQuery {
    const int8_t* q;
    float scale;
    int32_t sum;
};

static inline bool is_rounded(const Slots& keys) { return keys.format == INT8 && keys.size % 64 == 0; }

// Scores of LANES keys, or of `count` if there are fewer, from the j-th on.
static vf dot_rounded(const RoundedQuery& r, const Slots& keys, int64_t j, int64_t count, const char* ahead, int64_t ahead_stride) {
    const char* first = keys.first + j * keys.stride;
    auto dot = count == LANES ? dot_bytes<true> : dot_bytes<false>;
    vi sums = dot(r.q, first, keys.stride, count, keys.size, ahead, ahead_stride) - 128 * r.sum;
    return __builtin_convertvector(sums, vf) * (gather(first + keys.size, keys.stride, count) * r.scale);
}

static inline bool is_split(const Slots& keys) { return keys.format == BFLOAT16 && keys.size % (2 * LANES) == 0; }

static inline int64_t padded_size(int64_t size) { return round_up(size, 2 * LANES); }

// A scaled query (padded with zeros) in the order that the dot product with these keys wants: int8 numbers, their scale and
// their sum where it is rounded.
static void lay_out_query(const float* q, const Slots& keys, float* to) {
    int64_t padded = padded_size(keys.size);
    if (is_rounded(keys)) {
        int32_t sum;
        quantise_group(q, keys.size, (int8_t*)to, to + padded - 2, &sum);
        std::memcpy(to + padded - 1, &sum, 4);
        return;
    }
    if (!is_split(keys)) {
        std::memcpy(to, q, padded * 4);
        return;
    }
    for (int64_t i = 0; i < padded; i += 2 * LANES)
        for (int l = 0; l < LANES; l++) to[i + l] = q[i + 2 * l], to[i + LANES + l] = q[i + 2 * l + 1];
}

static RoundedQuery rounded_query(const float* q, int64_t padded) {
    return {(const int8_t*)q, q[padded - 2], load<int32_t>(q + padded - 1)};
}

// Scores of all keys with `num` queries; q (num, padded), scores (num, CHUNK), −∞ up to whole vectors.
static void score_keys(const float* q, int64_t num, const Slots& keys, const Slots& next, Arena& arena, float* scores) {
    int64_t padded = padded_size(keys.size);
    bool split = is_split(keys), rounded = is_rounded(keys);
    bool direct = split || rounded || (keys.format == FLOAT32 && keys.size % LANES == 0);
    float* copy = direct ? nullptr : (float*)arena.get(LANES * padded * 4);
    for (int64_t j = 0; j < keys.count; j += LANES) {
        int64_t n = std::min<int64_t>(LANES, keys.count - j);
        const char* first = keys.first + j * keys.stride;
        if (!direct) {
            std::memset(copy, 0, LANES * padded * 4);
            for (int64_t i = 0; i < n; i++) keys.read(j + i, copy + i * padded);
        }
        // What is read next, a few slots from here: more keys, then values.
        int64_t over = j + keys.ahead - keys.count;
        const char* ahead = over < 0 ? first + keys.ahead * keys.stride : next.first + std::min(over, next.count) * next.stride;
        int64_t ahead_stride = over < 0 ? keys.stride : next.stride;
        for (int64_t h = 0; h < num; h++) {
            const float* query = q + h * padded;
            vf s = split    ? dot_keys<BFLOAT16>(query, first, keys.stride, n, keys.size, ahead, ahead_stride)
                   : rounded ? dot_rounded(rounded_query(query, padded), keys, j, n, ahead, ahead_stride)
                   : direct ? dot_keys<FLOAT32>(query, first, keys.stride, n, keys.size, ahead, ahead_stride)
                            : dot_keys<FLOAT32>(query, (const char*)copy, padded * 4, LANES, padded, ahead, ahead_stride);
            for (int64_t i = n; i < LANES; i++) s[i] = -INFINITY;
            store(scores + h * CHUNK + j, s);
        }
    }
}

// Scores to weights exp(score − top), in place; `count` is a multiple of LANES.
static void weigh(float* scores, int64_t count, Partial& p) {
    vf top = splat(-INFINITY);
    for (int64_t j = 0; j < count; j += LANES) top = vmax(load<vf>(scores + j), top);
    p.top = max_lanes(top);
    // exp(−∞ − (−∞)) is NaN: where nothing is seen, subtract 0.
    float base = p.top == -INFINITY ? 0.0f : p.top;
    vf total = {};
    for (int64_t j = 0; j < count; j += LANES) {
        vf weight = vexp(load<vf>(scores + j) - base);
        store(scores + j, weight);
        total += weight;
    }
    p.total = sum_lanes(total);
}

// sum[WIDTH · LANES] = Σ weight · value of the values from `at` on.
template <int WIDTH, int64_t FORMAT>
static void add_values(const float* weight, const Slots& values, const Slots& next, int64_t at, float* sum) {
    constexpr int64_t item = FORMAT == FLOAT32 ? 4 : FORMAT == BFLOAT16 ? 2 : 1;
    vf acc[WIDTH] = {};
    for (int64_t j = 0; j < values.count; j++) {
        const char* value = values.first + j * values.stride + at * item;
        fetch_ahead<WIDTH * LANES * item>(values, next, j, at * item);
        vf w = splat(FORMAT == INT8 ? weight[j] * values.scale(j) : weight[j]);
        for (int i = 0; i < WIDTH; i += 2) {
            if (FORMAT == BFLOAT16) {
                vu pair = load<vu>(value + i * LANES * 2);
                acc[i] = fma(w, low_bf16(pair), acc[i]), acc[i + 1] = fma(w, high_bf16(pair), acc[i + 1]);
            } else if (FORMAT == INT8) {
                acc[i] = fma(w, load_int8(value + i * LANES), acc[i]);
                acc[i + 1] = fma(w, load_int8(value + (i + 1) * LANES), acc[i + 1]);
            } else {
                acc[i] = fma(w, load<vf>(value + i * LANES * 4), acc[i]);
                acc[i + 1] = fma(w, load<vf>(value + (i + 1) * LANES * 4), acc[i + 1]);
            }
        }
    }
    float lane[WIDTH * LANES];
    for (int i = 0; i < WIDTH; i++) store(lane + i * LANES, acc[i]);
    if (FORMAT != BFLOAT16) {
        std::memcpy(sum, lane, sizeof lane);
        return;
    }
    // Even and odd values lie apart.
    for (int i = 0; i < WIDTH; i += 2)
        for (int l = 0; l < LANES; l++)
            sum[i * LANES + 2 * l] = lane[i * LANES + l], sum[i * LANES + 2 * l + 1] = lane[(i + 1) * LANES + l];
}

template <int WIDTH>
static void add_values(const float* weight, const Slots& values, const Slots& next, int64_t at, float* sum) {
    auto add = values.format == BFLOAT16 ? add_values<WIDTH, BFLOAT16>
               : values.format == INT8   ? add_values<WIDTH, INT8>
                                         : add_values<WIDTH, FLOAT32>;
    add(weight, values, next, at, sum);
}

// One element of a value, in float32.
static float value_at(const Slots& values, int64_t slot, int64_t at) {
    const char* value = values.first + slot * values.stride;
    if (values.format == FLOAT32) return ((const float*)value)[at];
    if (values.format == BFLOAT16) return widen(((const uint16_t*)value)[at]);
    return values.scale(slot) * (float)((const int8_t*)value)[at];
}

static void sum_values(const float* weight, const Slots& values, const Slots& next, float* sum) {
    int64_t at = 0, size = values.size;
    for (; at + 8 * LANES <= size; at += 8 * LANES) add_values<8>(weight, values, next, at, sum + at);
    for (; at + 4 * LANES <= size; at += 4 * LANES) add_values<4>(weight, values, next, at, sum + at);
    for (; at + 2 * LANES <= size; at += 2 * LANES) add_values<2>(weight, values, next, at, sum + at);
    for (; at < size; at++) {
        float total = 0;
        for (int64_t j = 0; j < values.count; j++) total += weight[j] * value_at(values, j, at);
        sum[at] = total;
    }
}

}  // namespace hk
