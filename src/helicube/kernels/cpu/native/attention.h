// Attention of one query per row and head over cached keys, in float32. Keys are taken in chunks of a fixed length whose
// results are merged in order, so that the result depends neither on the threads nor on the other rows.
#pragma once

#include "prepare.h"

namespace hk {

constexpr int64_t CHUNK = 512;
// Query heads that pass over a chunk of keys together.
constexpr int64_t MAX_GROUP = 8;

// What is known after some keys: the largest score, Σ exp(score − top), Σ exp(score − top) · value.
struct Partial {
    float top, total;
    float* sum;
};

// Scores of LANES keys with one query of `size` values, a multiple of LANES (float32) or of 2 · LANES (bf16).
static inline vf dot_float32(const float* q, const float* keys, int64_t stride, int64_t count, int64_t size) {
    vf acc[LANES] = {};
    for (int64_t j = 0; j < count; j++) {
        const float* key = keys + j * stride;
        vf a = {}, b = {};
        int64_t i = 0;
        for (; i + 2 * LANES <= size; i += 2 * LANES) {
            a = fma(load<vf>(q + i), load<vf>(key + i), a);
            b = fma(load<vf>(q + i + LANES), load<vf>(key + i + LANES), b);
        }
        if (i < size) a = fma(load<vf>(q + i), load<vf>(key + i), a);
        acc[j] = a + b;
    }
    return sum_each(acc);
}

// The query's even and odd values lie apart: LANES even ones, LANES odd ones, and so on.
static inline vf dot_bf16(const float* q, const uint16_t* keys, int64_t stride, int64_t count, int64_t size) {
    vf acc[LANES] = {};
    for (int64_t j = 0; j < count; j++) {
        const uint16_t* key = keys + j * stride;
        vf a = {}, b = {};
        for (int64_t i = 0; i < size; i += 2 * LANES) {
            vu pair = load<vu>(key + i);
            a = fma(load<vf>(q + i), low_bf16(pair), a);
            b = fma(load<vf>(q + i + LANES), high_bf16(pair), b);
        }
        acc[j] = a + b;
    }
    return sum_each(acc);
}

static void split_pairs(const float* q, int64_t size, float* to) {
    for (int64_t i = 0; i < size; i += 2 * LANES)
        for (int l = 0; l < LANES; l++) to[i + l] = q[i + 2 * l], to[i + LANES + l] = q[i + 2 * l + 1];
}

static inline const char* slot(const Cache& c, int64_t row, int64_t head, int64_t at) {
    int64_t element = row * c.batch_stride + head * c.head_stride + at * c.slot_stride;
    return c.data + element * (c.format == FLOAT32 ? 4 : 2);
}

HK_INLINE void fetch_slots(const char* at, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(at + i, 0, 2);
}

// Scores of `count` keys with `num` queries; q (num, padded). scores (num, CHUNK), −∞ up to whole vectors.
static void score_chunk(const float* q, int64_t num, int64_t padded, const Cache& keys, int64_t row, int64_t head,
                        int64_t start, int64_t count, int64_t size, Arena& arena, float* scores) {
    bool wide = keys.format == BFLOAT16 && size % (2 * LANES) == 0;
    bool direct = wide || (keys.format == FLOAT32 && size % LANES == 0);
    float* copy = direct ? nullptr : (float*)arena.get(LANES * padded * 4);
    int64_t bytes = size * (keys.format == FLOAT32 ? 4 : 2);
    for (int64_t j = 0; j < count; j += LANES) {
        int64_t n = std::min<int64_t>(LANES, count - j);
        const char* first = slot(keys, row, head, start + j);
        if (j + 2 * LANES <= count)
            for (int64_t i = 0; i < n; i++) fetch_slots(slot(keys, row, head, start + j + LANES + i), bytes);
        if (!direct) {
            std::memset(copy, 0, LANES * padded * 4);
            for (int64_t i = 0; i < n; i++)
                read_row({(char*)first, keys.slot_stride, keys.format}, i, size, copy + i * padded);
        }
        for (int64_t h = 0; h < num; h++) {
            vf s = wide     ? dot_bf16(q + h * padded, (const uint16_t*)first, keys.slot_stride, n, size)
                   : direct ? dot_float32(q + h * padded, (const float*)first, keys.slot_stride, n, size)
                            : dot_float32(q + h * padded, copy, padded, n, padded);
            for (int64_t i = n; i < LANES; i++) s[i] = -INFINITY;
            store(scores + h * CHUNK + j, s);
        }
    }
}

// Scores to weights exp(score − top), in place; `count` is rounded up to whole vectors.
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

// sum[8 · LANES] = Σ weight · value, of values [at, at + width); bf16 even and odd apart within 2 · LANES.
template <int WIDTH>
static void add_values(const float* weight, const Cache& values, const char* first, int64_t count, int64_t at, float* sum) {
    vf acc[WIDTH] = {};
    bool wide = values.format == BFLOAT16;
    for (int64_t j = 0; j < count; j++) {
        vf w = splat(weight[j]);
        if (wide) {
            const uint16_t* value = (const uint16_t*)first + j * values.slot_stride + at;
            __builtin_prefetch(value + 8 * values.slot_stride);
            if (WIDTH > 2) __builtin_prefetch(value + 8 * values.slot_stride + 2 * LANES);
            if (WIDTH > 4) __builtin_prefetch(value + 8 * values.slot_stride + 4 * LANES);
            if (WIDTH > 6) __builtin_prefetch(value + 8 * values.slot_stride + 6 * LANES);
            for (int i = 0; i + 1 < WIDTH; i += 2) {
                vu pair = load<vu>(value + i * LANES);
                acc[i] = fma(w, low_bf16(pair), acc[i]);
                acc[i + 1] = fma(w, high_bf16(pair), acc[i + 1]);
            }
        } else {
            const float* value = (const float*)first + j * values.slot_stride + at;
            for (int i = 0; i < WIDTH; i++) {
                __builtin_prefetch(value + 8 * values.slot_stride + i * LANES);
                acc[i] = fma(w, load<vf>(value + i * LANES), acc[i]);
            }
        }
    }
    float lane[WIDTH * LANES];
    for (int i = 0; i < WIDTH; i++) store(lane + i * LANES, acc[i]);
    if (!wide) {
        std::memcpy(sum, lane, sizeof lane);
        return;
    }
    for (int i = 0; i + 1 < WIDTH; i += 2)
        for (int l = 0; l < LANES; l++)
            sum[i * LANES + 2 * l] = lane[i * LANES + l], sum[i * LANES + 2 * l + 1] = lane[(i + 1) * LANES + l];
}

static void sum_values(const float* weight, const Cache& values, int64_t row, int64_t head, int64_t start,
                       int64_t count, int64_t size, float* sum) {
    const char* first = slot(values, row, head, start);
    int64_t at = 0;
    for (; at + 8 * LANES <= size; at += 8 * LANES) add_values<8>(weight, values, first, count, at, sum + at);
    for (; at + 4 * LANES <= size; at += 4 * LANES) add_values<4>(weight, values, first, count, at, sum + at);
    for (; at + 2 * LANES <= size; at += 2 * LANES) add_values<2>(weight, values, first, count, at, sum + at);
    for (; at < size; at++) {
        float total = 0;
        for (int64_t j = 0; j < count; j++) {
            int64_t i = j * values.slot_stride + at;
            float value = values.format == FLOAT32 ? ((const float*)first)[i] : widen(((const uint16_t*)first)[i]);
            total += weight[j] * value;
        }
        sum[at] = total;
    }
}

// Queries of one row that share a key-value head, scaled and laid out as the keys' format wants them.
static int64_t padded_size(int64_t size) { return round_up(size, 2 * LANES); }

static void lay_out_query(const Attention& a, int64_t row, int64_t head, float* to, float* scratch) {
    int64_t padded = padded_size(a.key_size);
    std::memset(scratch, 0, padded * 4);
    Rows q = a.q;
    q.data += head * a.key_size * (q.format == FLOAT32 ? 4 : 2);
    read_row(q, row, a.key_size, scratch);
    float scale = (float)a.scale;
    map_row(scratch, padded, [=](vf v) { return v * scale; });
    if (a.keys.format == BFLOAT16 && a.key_size % (2 * LANES) == 0)
        split_pairs(scratch, padded, to);
    else
        std::memcpy(to, scratch, padded * 4);
}

struct AttentionScratch {
    Arena queries, scores, keys, sums;
};

// Results over one chunk for the `num` query heads from `head`, which share a key-value head. `cache_row` is the row of
// keys and values.
static void attend_chunk(const Attention& a, int64_t row, int64_t cache_row, int64_t head, int64_t num, int64_t start,
                         int64_t count, AttentionScratch& scratch, Partial* out) {
    int64_t padded = padded_size(a.key_size), kv_head = head / (a.heads / a.kv_heads);
    float* q = (float*)scratch.queries.get((num + 1) * padded * 4);
    float* scores = (float*)scratch.scores.get(num * CHUNK * 4);
    for (int64_t h = 0; h < num; h++) lay_out_query(a, row, head + h, q + h * padded, q + num * padded);
    score_chunk(q, num, padded, a.keys, cache_row, kv_head, start, count, a.key_size, scratch.keys, scores);
    for (int64_t h = 0; h < num; h++) {
        weigh(scores + h * CHUNK, round_up(count, LANES), out[h]);
        sum_values(scores + h * CHUNK, a.values, cache_row, kv_head, start, count, a.value_size, out[h].sum);
    }
}

// Adds what a later chunk says.
static void merge(Partial& all, const Partial& next, int64_t size) {
    float top = all.top > next.top || all.top != all.top ? all.top : next.top;
    float base = top == -INFINITY ? 0.0f : top;
    float keep = std::exp(all.top - base), take = std::exp(next.top - base);
    all.top = top;
    all.total = all.total * keep + next.total * take;
    for (int64_t i = 0; i < size; i++) all.sum[i] = all.sum[i] * keep + next.sum[i] * take;
}

static void write_result(const Attention& a, int64_t row, int64_t head, const Partial& p) {
    // No keys: output 0, LSE −∞.
    float factor = p.total == 0.0f ? 0.0f : 1.0f / p.total;
    int64_t at = row * a.o.stride + head * a.value_size;
    for (int64_t i = 0; i < a.value_size; i++) {
        if (a.o.format == FLOAT32)
            ((float*)a.o.data)[at + i] = p.sum[i] * factor;
        else
            ((uint16_t*)a.o.data)[at + i] = narrow(p.sum[i] * factor);
    }
    if (a.lse) a.lse[row * a.heads + head] = p.total == 0.0f ? -INFINITY : p.top + std::log(p.total);
}

static inline int64_t length_of(const Attention& a, int64_t row) { return a.lengths ? a.lengths[row] : a.length; }

static AttentionScratch& attention_scratch() {
    static thread_local AttentionScratch mine;
    return mine;
}

// All chunks of some query heads of one row, one after the other.
static void attend_row(const Attention& a, int64_t row, int64_t cache_row, int64_t head, int64_t num) {
    AttentionScratch& scratch = attention_scratch();
    float* sums = (float*)scratch.sums.get(2 * num * a.value_size * 4);
    Partial all[MAX_GROUP], next[MAX_GROUP];
    for (int64_t h = 0; h < num; h++) {
        all[h] = {-INFINITY, 0.0f, sums + h * a.value_size};
        next[h].sum = sums + (num + h) * a.value_size;
        std::memset(all[h].sum, 0, a.value_size * 4);
    }
    int64_t length = length_of(a, row);
    for (int64_t start = 0; start < length; start += CHUNK) {
        attend_chunk(a, row, cache_row, head, num, start, std::min(CHUNK, length - start), scratch, next);
        for (int64_t h = 0; h < num; h++) merge(all[h], next[h], a.value_size);
    }
    for (int64_t h = 0; h < num; h++) write_result(a, row, head + h, all[h]);
}

// Chunks of one row side by side: for few rows and long contexts.
static void attend_split(Team& team, const Attention& a, int64_t chunks) {
    int64_t shared = a.heads / a.kv_heads, parts = (shared + MAX_GROUP - 1) / MAX_GROUP;
    int64_t record = a.value_size + 2;
    static thread_local Arena arena;
    float* records = (float*)arena.get(a.rows * a.heads * chunks * record * 4);
    team.run((int)(a.rows * a.kv_heads * parts * chunks), false, [&](int task, uint64_t) {
        int64_t chunk = task % chunks, part = task / chunks % parts, kv = task / chunks / parts;
        int64_t row = kv / a.kv_heads, head = kv % a.kv_heads * shared + part * MAX_GROUP;
        int64_t num = std::min(MAX_GROUP, shared - part * MAX_GROUP);
        int64_t start = chunk * CHUNK, length = length_of(a, row);
        if (start >= length) return;
        Partial out[MAX_GROUP];
        for (int64_t h = 0; h < num; h++) out[h].sum = records + ((row * a.heads + head + h) * chunks + chunk) * record + 2;
        attend_chunk(a, row, row, head, num, start, std::min(CHUNK, length - start), attention_scratch(), out);
        for (int64_t h = 0; h < num; h++) out[h].sum[-2] = out[h].top, out[h].sum[-1] = out[h].total;
    });
    float* sum = (float*)attention_scratch().sums.get(a.value_size * 4);
    for (int64_t i = 0; i < a.rows * a.heads; i++) {
        Partial all = {-INFINITY, 0.0f, sum};
        std::memset(sum, 0, a.value_size * 4);
        for (int64_t chunk = 0; chunk * CHUNK < length_of(a, i / a.heads); chunk++) {
            float* at = records + (i * chunks + chunk) * record;
            merge(all, {at[0], at[1], at + 2}, a.value_size);
        }
        write_result(a, i / a.heads, i % a.heads, all);
    }
}

static void run_attention(Team& team, const Attention& a) {
    int64_t longest = a.lengths ? 0 : a.length;
    for (int64_t row = 0; a.lengths && row < a.rows; row++) longest = std::max(longest, a.lengths[row]);
    int64_t chunks = (longest + CHUNK - 1) / CHUNK;
    int64_t shared = a.heads / a.kv_heads, parts = (shared + MAX_GROUP - 1) / MAX_GROUP;
    int64_t tasks = a.rows * a.kv_heads * parts;
    if (chunks > 1 && tasks < 8 * team.threads() && team.threads() > 1) return attend_split(team, a, chunks);
    bool small = a.rows * a.kv_heads * longest * (a.key_size + a.value_size) < 32768;
    team.run((int)tasks, small, [&](int task, uint64_t) {
        int64_t part = task % parts, row = task / parts / a.kv_heads;
        int64_t head = task / parts % a.kv_heads * shared + part * MAX_GROUP;
        attend_row(a, row, row, head, std::min(MAX_GROUP, shared - part * MAX_GROUP));
    });
}

}  // namespace hk
