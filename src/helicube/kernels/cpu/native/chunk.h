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
        : stride(c.slot_stride * (c.format == FLOAT32 ? 4 : 2)), count(num), size(values), format(c.format) {
        int64_t element = row * c.batch_stride + head * c.head_stride + start * c.slot_stride;
        first = c.data + element * (c.format == FLOAT32 ? 4 : 2);
        ahead = std::max<int64_t>(AHEAD / std::max<int64_t>(bytes(), 1), LANES);
    }
    int64_t bytes() const { return size * (format == FLOAT32 ? 4 : 2); }
};

// Asks for BYTES of the slot that is read a little after slot i of `now`; what is read after those is `next`.
template <int64_t BYTES>
HK_INLINE void fetch_ahead(const Slots& now, const Slots& next, int64_t i, int64_t from) {
    int64_t slot = i + now.ahead, over = slot - now.count;
    const char* at = over < 0 ? now.first + slot * now.stride : next.first + std::min(over, next.count) * next.stride;
    for (int64_t b = 0; b < BYTES; b += 64) __builtin_prefetch(at + from + b, 0, 2);
}

// Scores of LANES keys (of `count`, the last one again and again, where there are fewer) with one query. SPLIT: bf16 keys,
// and the query's even and odd values lie apart: LANES even ones, LANES odd ones, and so on. `size` is a multiple of what
// one step takes. Meanwhile as many slots are fetched from `ahead` on.
template <bool SPLIT, bool FULL>
static vf dot_keys(const float* q, const char* keys, int64_t stride, int64_t count, int64_t size, const char* ahead,
                   int64_t ahead_stride) {
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

template <bool SPLIT>
static vf dot_keys(const float* q, const char* keys, int64_t stride, int64_t count, int64_t size, const char* ahead,
                   int64_t ahead_stride) {
    if (count == LANES) return dot_keys<SPLIT, true>(q, keys, stride, count, size, ahead, ahead_stride);
    return dot_keys<SPLIT, false>(q, keys, stride, count, size, ahead, ahead_stride);
}

static inline bool is_split(const Slots& keys) { return keys.format == BFLOAT16 && keys.size % (2 * LANES) == 0; }

static inline int64_t padded_size(int64_t size) { return round_up(size, 2 * LANES); }

// A scaled query (padded with zeros) in the order that the dot product with these keys wants.
static void lay_out_query(const float* q, const Slots& keys, float* to) {
    int64_t padded = padded_size(keys.size);
    if (!is_split(keys)) {
        std::memcpy(to, q, padded * 4);
        return;
    }
    for (int64_t i = 0; i < padded; i += 2 * LANES)
        for (int l = 0; l < LANES; l++) to[i + l] = q[i + 2 * l], to[i + LANES + l] = q[i + 2 * l + 1];
}

// Scores of all keys with `num` queries; q (num, padded), scores (num, CHUNK), −∞ up to whole vectors.
static void score_keys(const float* q, int64_t num, const Slots& keys, const Slots& next, Arena& arena, float* scores) {
    int64_t padded = padded_size(keys.size);
    bool split = is_split(keys), direct = split || (keys.format == FLOAT32 && keys.size % LANES == 0);
    float* copy = direct ? nullptr : (float*)arena.get(LANES * padded * 4);
    for (int64_t j = 0; j < keys.count; j += LANES) {
        int64_t n = std::min<int64_t>(LANES, keys.count - j);
        const char* first = keys.first + j * keys.stride;
        if (!direct) {
            std::memset(copy, 0, LANES * padded * 4);
            for (int64_t i = 0; i < n; i++)
                read_row({(char*)first + i * keys.stride, 0, keys.format}, 0, keys.size, copy + i * padded);
        }
        // What is read next, a few slots from here: more keys, then values.
        int64_t over = j + keys.ahead - keys.count;
        const char* ahead = over < 0 ? first + keys.ahead * keys.stride : next.first + std::min(over, next.count) * next.stride;
        int64_t ahead_stride = over < 0 ? keys.stride : next.stride;
        for (int64_t h = 0; h < num; h++) {
            const float* query = q + h * padded;
            vf s = split    ? dot_keys<true>(query, first, keys.stride, n, keys.size, ahead, ahead_stride)
                   : direct ? dot_keys<false>(query, first, keys.stride, n, keys.size, ahead, ahead_stride)
                            : dot_keys<false>(query, (const char*)copy, padded * 4, LANES, padded, ahead, ahead_stride);
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

// sum[WIDTH · LANES] = Σ weight · value of the values from `at` on; WIDE: of bf16.
template <int WIDTH, bool WIDE>
static void add_values(const float* weight, const Slots& values, const Slots& next, int64_t at, float* sum) {
    constexpr int64_t item = WIDE ? 2 : 4;
    vf acc[WIDTH] = {};
    for (int64_t j = 0; j < values.count; j++) {
        const char* value = values.first + j * values.stride + at * item;
        fetch_ahead<WIDTH * LANES * item>(values, next, j, at * item);
        vf w = splat(weight[j]);
        for (int i = 0; i < WIDTH; i += 2) {
            if (WIDE) {
                vu pair = load<vu>(value + i * LANES * 2);
                acc[i] = fma(w, low_bf16(pair), acc[i]), acc[i + 1] = fma(w, high_bf16(pair), acc[i + 1]);
            } else {
                acc[i] = fma(w, load<vf>(value + i * LANES * 4), acc[i]);
                acc[i + 1] = fma(w, load<vf>(value + (i + 1) * LANES * 4), acc[i + 1]);
            }
        }
    }
    float lane[WIDTH * LANES];
    for (int i = 0; i < WIDTH; i++) store(lane + i * LANES, acc[i]);
    if (!WIDE) {
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
    auto add = values.format == BFLOAT16 ? add_values<WIDTH, true> : add_values<WIDTH, false>;
    add(weight, values, next, at, sum);
}

static void sum_values(const float* weight, const Slots& values, const Slots& next, float* sum) {
    int64_t at = 0, size = values.size;
    for (; at + 8 * LANES <= size; at += 8 * LANES) add_values<8>(weight, values, next, at, sum + at);
    for (; at + 4 * LANES <= size; at += 4 * LANES) add_values<4>(weight, values, next, at, sum + at);
    for (; at + 2 * LANES <= size; at += 2 * LANES) add_values<2>(weight, values, next, at, sum + at);
    for (; at < size; at++) {
        float total = 0;
        for (int64_t j = 0; j < values.count; j++) {
            const char* value = values.first + j * values.stride;
            total += weight[j] * (values.format == FLOAT32 ? ((const float*)value)[at] : widen(((const uint16_t*)value)[at]));
        }
        sum[at] = total;
    }
}

}  // namespace hk
