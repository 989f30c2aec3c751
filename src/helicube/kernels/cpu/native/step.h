// One decode step of a stack of pre-norm layers in one call: for a small model the host's overhead per operation is
// several times the work.
#pragma once

#include "attention.h"
#include "products.h"

namespace hk {

static void rotate(float* x, const float* table, int64_t size, int64_t rotary) {
    int64_t half = size / 2;
    for (int64_t i = 0; rotary != NO_ROTARY && i < half; i++) {
        float cosine = table[2 * i], sine = table[2 * i + 1];
        float& a = rotary == PAIRS ? x[2 * i] : x[i];
        float& b = rotary == PAIRS ? x[2 * i + 1] : x[i + half];
        float turned = a * cosine - b * sine;
        b = a * sine + b * cosine;
        a = turned;
    }
}

// Numbers rounded to int8, and their scale after them.
static void write_rounded(char* to, const float* x, int64_t n) {
    static thread_local Arena arena;
    int64_t padded = round_up(n, 16);
    float scale;
    int32_t sum;
    if (padded == n) {
        quantise_group(x, n, (int8_t*)to, &scale, &sum);
    } else {
        float* copy = (float*)arena.get(padded * 5);
        std::memset(copy + n, 0, (padded - n) * 4);
        std::memcpy(copy, x, n * 4);
        quantise_group(copy, padded, (int8_t*)(copy + padded), &scale, &sum);
        std::memcpy(to, copy + padded, n);
    }
    std::memcpy(to + n, &scale, 4);
}

static void write_slot(const Cache& c, int64_t row, int64_t head, int64_t at, const float* x, int64_t n) {
    char* to = (char*)Slots(c, row, head, at, 1, n).first;
    if (c.format == FLOAT32) {
        std::memcpy(to, x, n * 4);
        return;
    }
    if (c.format == INT8) return write_rounded(to, x, n);
    for (int64_t i = 0; i < n; i++) ((uint16_t*)to)[i] = narrow(x[i]);
}

// Norms and rotates the new token's queries (in place) and key of one key-value head, and stores key and value.
static void take_token(const NewToken& t, const Attention& a, int64_t row, int64_t kv_head) {
    int64_t shared = a.heads / a.kv_heads, size = a.key_size;
    const float* table = t.table + t.positions[row] * size;
    auto finish = [&](float* x, const float* norm) {
        if (norm) rms_norm(x, size, (float)t.norm_eps, norm);
        rotate(x, table, size, t.rotary);
    };
    for (int64_t h = 0; h < shared; h++)
        finish((float*)t.q.data + row * t.q.stride + (kv_head * shared + h) * size, t.q_norm);
    float* k = (float*)t.k.data + row * t.k.stride + kv_head * size;
    finish(k, t.k_norm);
    int64_t cache_row = t.cache_rows ? t.cache_rows[row] : row, at = t.prefix + t.positions[row];
    write_slot(a.keys, cache_row, kv_head, at, k, size);
    write_slot(a.values, cache_row, kv_head, at, (float*)t.v.data + row * t.v.stride + kv_head * a.value_size, a.value_size);
}

// Attention of new tokens, after their keys and values are stored; without o, only the latter.
static void run_new_token(Team& team, const NewToken& t, Attention a) {
    int64_t shared = a.heads / a.kv_heads, longest = 0;
    static thread_local Arena arena;
    int64_t* lengths = (int64_t*)arena.get(a.rows * 8);
    for (int64_t row = 0; row < a.rows; row++) {
        lengths[row] = t.prefix + t.positions[row] + 1;
        longest = std::max(longest, lengths[row]);
    }
    a.lengths = lengths;
    bool small = a.rows * a.kv_heads * (a.o.data ? longest : 8) * (a.key_size + a.value_size) < 32768;
    team.run_runs(a.rows * a.kv_heads, small, [&](int64_t task) {
        int64_t row = task / a.kv_heads, kv_head = task % a.kv_heads;
        int64_t cache_row = t.cache_rows ? t.cache_rows[row] : row;
        take_token(t, a, row, kv_head);
        for (int64_t part = 0; a.o.data && part < shared; part += MAX_GROUP)
            attend_row(a, Heads(a, row, cache_row, kv_head * shared + part, std::min(MAX_GROUP, shared - part)));
    });
}

// Intermediate values of a step: x and what is attended (rows, width), queries, keys and values, and the FFN's middle.
struct StepBuffers {
    Rows x, attended, qkv, middle;

    StepBuffers(const Step& s, Arena& arena) {
        int64_t queries = s.heads * s.head_dim;
        int64_t widths[] = {s.width, queries, queries + 2 * s.kv_heads * s.head_dim, s.hidden};
        Rows* rows[] = {&x, &attended, &qkv, &middle};
        int64_t total = 0;
        for (int64_t width : widths) total += s.rows * spread(width);
        float* at = (float*)arena.get(total * 4);
        for (int i = 0; i < 4; at += s.rows * spread(widths[i]), i++) *rows[i] = float_rows(at, spread(widths[i]));
    }

    static Rows from_column(const Rows& rows, int64_t column) { return {rows.data + column * 4, rows.stride, rows.format}; }
};

static void run_attention_layer(Team& team, const Step& s, const Layer& layer, const StepBuffers& b) {
    Product qkv = product_of(s.rows, b.x);
    qkv.norm = LAYER_NORM, qkv.eps = s.norm_eps;
    for (int64_t i = 0, column = 0; i < layer.num_qkv; column += layer.qkv[i].n, i++)
        add_matrix(qkv, layer.qkv[i], StepBuffers::from_column(b.qkv, column));
    run_product(team, qkv);

    int64_t queries = s.heads * s.head_dim, keys = s.kv_heads * s.head_dim;
    NewToken t = {};
    t.q = b.qkv, t.k = StepBuffers::from_column(b.qkv, queries);
    t.v = StepBuffers::from_column(b.qkv, queries + keys);
    t.q_norm = layer.q_norm, t.k_norm = layer.k_norm, t.norm_eps = s.qk_eps;
    t.rotary = s.rotary, t.table = s.table, t.positions = s.positions;
    t.cache_rows = s.cache_rows, t.prefix = layer.prefix;
    Attention a = {};
    a.q = t.q, a.o = b.attended;
    a.keys = layer.keys, a.values = layer.values;
    a.rows = s.rows, a.heads = s.heads, a.kv_heads = s.kv_heads;
    a.key_size = a.value_size = s.head_dim, a.scale = s.scale;
    run_new_token(team, t, a);

    Product proj = product_of(s.rows, a.o);
    add_matrix(proj, layer.proj, b.x);
    proj.residual = proj.y[0];
    run_product(team, proj);
}

static void run_ffn_layer(Team& team, const Step& s, const Layer& layer, const StepBuffers& b) {
    Product gate = product_of(s.rows, b.x);
    gate.norm = LAYER_NORM, gate.eps = s.norm_eps, gate.gated = 1;
    add_matrix(gate, layer.gate, b.middle);
    add_matrix(gate, layer.up, gate.y[0]);
    run_product(team, gate);
    Product down = product_of(s.rows, gate.y[0]);
    add_matrix(down, layer.down, b.x);
    down.residual = down.y[0];
    run_product(team, down);
}

static void run_step(Team& team, const Step& s) {
    static thread_local Arena arena;
    StepBuffers b(s, arena);
    for (int64_t row = 0; row < s.rows; row++) {
        float* x = (float*)b.x.data + row * b.x.stride;
        read_row(s.embedding, s.ids[row], s.width, x);
        const float* added = s.added ? s.added + s.positions[row] * s.width : nullptr;
        for (int64_t i = 0; added && i < s.width; i++) x[i] += added[i];
    }
    for (int64_t i = 0; i < s.num_layers; i++) {
        run_attention_layer(team, s, s.layers[i], b);
        run_ffn_layer(team, s, s.layers[i], b);
    }
    Product head = product_of(s.rows, b.x);
    head.norm = LAYER_NORM, head.eps = s.norm_eps;
    add_matrix(head, *s.head, s.logits);
    head.low[0] = s.low, head.high[0] = s.high;
    run_product(team, head);
}

}  // namespace hk
