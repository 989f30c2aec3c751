// Attention of one query per row and head over cached keys, in float32. Keys are taken in chunks of a fixed length whose
// results are merged in order, so that the result depends neither on the threads nor on the other rows.
#pragma once

#include "chunk.h"

namespace hk {

// Query heads that pass over a chunk of keys together.
constexpr int64_t MAX_GROUP = 8;

struct AttentionScratch {
    Arena queries, scores, keys, sums;
};

static AttentionScratch& attention_scratch() {
    static thread_local AttentionScratch mine;
    return mine;
}

static inline int64_t length_of(const Attention& a, int64_t row) { return a.lengths ? a.lengths[row] : a.length; }

// Some query heads of one row that share a key-value head.
struct Heads {
    int64_t row, cache_row, head, num, kv_head, length;

    Heads(const Attention& a, int64_t row, int64_t cache_row, int64_t head, int64_t num)
        : row(row), cache_row(cache_row), head(head), num(num), kv_head(head / (a.heads / a.kv_heads)),
          length(length_of(a, row)) {}

    Slots keys(const Attention& a, int64_t start) const {
        return Slots(a.keys, cache_row, kv_head, start, std::min(CHUNK, length - start), a.key_size);
    }
    Slots values(const Attention& a, int64_t start) const {
        return Slots(a.values, cache_row, kv_head, start, std::min(CHUNK, length - start), a.value_size);
    }
    // What is read after a chunk: more keys, or those of the next head, which the same thread takes more often than not.
    Slots after(const Attention& a, int64_t start) const {
        if (start + CHUNK < length) return keys(a, start + CHUNK);
        return kv_head + 1 < a.kv_heads ? Slots(a.keys, cache_row, kv_head + 1, 0, std::min(CHUNK, length), a.key_size) : Slots();
    }
};

// Results over one chunk.
static void attend_chunk(const Attention& a, const Heads& h, int64_t start, AttentionScratch& scratch, Partial* out) {
    int64_t padded = padded_size(a.key_size);
    Slots keys = h.keys(a, start), values = h.values(a, start);
    float* q = (float*)scratch.queries.get((h.num + 1) * padded * 4);
    float* plain = q + h.num * padded;
    float* scores = (float*)scratch.scores.get(h.num * CHUNK * 4);
    for (int64_t i = 0; i < h.num; i++) {
        Rows from = a.q;
        from.data += (h.head + i) * a.key_size * (from.format == FLOAT32 ? 4 : 2);
        std::memset(plain, 0, padded * 4);
        read_row(from, h.row, a.key_size, plain);
        float scale = (float)a.scale;
        map_row(plain, padded, [=](vf v) { return v * scale; });
        lay_out_query(plain, keys, q + i * padded);
    }
    score_keys(q, h.num, keys, values, scratch.keys, scores);
    for (int64_t i = 0; i < h.num; i++) {
        weigh(scores + i * CHUNK, round_up(keys.count, LANES), out[i]);
        sum_values(scores + i * CHUNK, values, h.after(a, start), out[i].sum);
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

// All chunks, one after the other.
static void attend_row(const Attention& a, const Heads& heads) {
    AttentionScratch& scratch = attention_scratch();
    float* sums = (float*)scratch.sums.get(2 * heads.num * a.value_size * 4);
    Partial all[MAX_GROUP], next[MAX_GROUP];
    for (int64_t i = 0; i < heads.num; i++) {
        all[i] = {-INFINITY, 0.0f, sums + i * a.value_size};
        next[i].sum = sums + (heads.num + i) * a.value_size;
        std::memset(all[i].sum, 0, a.value_size * 4);
    }
    for (int64_t start = 0; start < heads.length; start += CHUNK) {
        attend_chunk(a, heads, start, scratch, next);
        for (int64_t i = 0; i < heads.num; i++) merge(all[i], next[i], a.value_size);
    }
    for (int64_t i = 0; i < heads.num; i++) write_result(a, heads.row, heads.head + i, all[i]);
}

// Query heads that share a key-value head, in parts of MAX_GROUP.
struct Parts {
    int64_t shared, per_head;

    explicit Parts(const Attention& a) : shared(a.heads / a.kv_heads), per_head((shared + MAX_GROUP - 1) / MAX_GROUP) {}

    Heads heads(const Attention& a, int64_t index) const {
        int64_t part = index % per_head, row = index / per_head / a.kv_heads;
        int64_t head = index / per_head % a.kv_heads * shared + part * MAX_GROUP;
        return Heads(a, row, row, head, std::min(MAX_GROUP, shared - part * MAX_GROUP));
    }
};

// Chunks of one row side by side: for few rows and long contexts.
static void attend_split(Team& team, const Attention& a, const Parts& parts, int64_t tasks, int64_t chunks) {
    int64_t record = a.value_size + 2;
    static thread_local Arena arena;
    float* records = (float*)arena.get(a.rows * a.heads * chunks * record * 4);
    team.run((int)(tasks * chunks), false, [&](int task, uint64_t) {
        Heads heads = parts.heads(a, task / chunks);
        int64_t chunk = task % chunks, start = chunk * CHUNK;
        if (start >= heads.length) return;
        Partial out[MAX_GROUP];
        for (int64_t i = 0; i < heads.num; i++)
            out[i].sum = records + ((heads.row * a.heads + heads.head + i) * chunks + chunk) * record + 2;
        attend_chunk(a, heads, start, attention_scratch(), out);
        for (int64_t i = 0; i < heads.num; i++) out[i].sum[-2] = out[i].top, out[i].sum[-1] = out[i].total;
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
    Parts parts(a);
    int64_t tasks = a.rows * a.kv_heads * parts.per_head;
    if (chunks > 1 && tasks < 8 * team.threads() && team.threads() > 1) return attend_split(team, a, parts, tasks, chunks);
    bool small = a.rows * a.kv_heads * longest * (a.key_size + a.value_size) < 32768;
    team.run_runs(tasks, small, [&](int64_t task) { attend_row(a, parts.heads(a, task)); });
}

}  // namespace hk
