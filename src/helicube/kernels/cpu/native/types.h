// What crosses the border to Python: every field is 64 bits wide, pointers and floats included, in this order.
#pragma once

#include <cstdint>

namespace hk {

enum Format : int64_t { FLOAT32 = 0, BFLOAT16 = 1, INT8 = 2, INT4 = 3 };
// What is done to x before a product.
enum Norm : int64_t { NO_NORM = 0, LAYER_NORM = 1, RMS_NORM = 2, SILU = 3, GELU = 4 };
enum Rotary : int64_t { NO_ROTARY = 0, PAIRS = 1, HALVES = 2 };

// Outputs side by side in a packed matrix.
constexpr int BLOCK = 64;

// N × K weights in blocks of 64 outputs, each in the order [K/u][64][u], where u weights of one output fill 32 bits:
// float32 1, bf16 2, int8 4, int4 8. int8 is stored as w + 128. int4 is stored as w + 8, the first four of eight in the
// low halves of the four bytes and the others in the high halves. Outputs are padded to whole blocks, K to whole units,
// quantised K to whole groups.
struct Matrix {
    const char* data;
    // int8: float32 per output. int4: bf16, [K/group][64] per block.
    const char* scale;
    // float32 per output, or null.
    const float* bias;
    int64_t format, n, k;
    // Columns of x that share one scale when it is rounded to int8; for int4 also weights that share one.
    int64_t group;
};

// Rows of float32 or bf16.
struct Rows {
    char* data;
    int64_t stride;  // elements
    int64_t format;
};

// y = x Wᵀ + bias of up to three matrices, after a norm of x.
struct Product {
    Rows x;
    int64_t rows;
    int64_t norm;
    double eps;
    const float* norm_weight;  // RMS_NORM
    int64_t num;
    const Matrix* matrices[3];
    // Outputs low … high − 1 of each matrix are computed, a column each.
    int64_t low[3], high[3];
    Rows y[3];
    // Added to the first output, or null.
    Rows residual;
    // Whether y[0] = silu(x W₀ᵀ) · (x W₁ᵀ) takes the place of two outputs.
    int64_t gated;
};

// Keys or values: (B, H, M, size), each row of the last axis contiguous. int8: x ≈ scale · q, and 4 bytes more per slot
// that hold its scale, a float32.
struct Cache {
    char* data;
    int64_t batch_stride, head_stride, slot_stride;  // elements
    int64_t format;
};

// Attention of one query per row and head.
struct Attention {
    Rows q;  // (rows, heads · key_size)
    Rows o;  // (rows, heads · value_size)
    float* lse;  // (rows, heads), or null
    Cache keys, values;
    int64_t rows, heads, kv_heads, key_size, value_size;
    // Keys per row: lengths[row], or `length` for all where null.
    const int64_t* lengths;
    int64_t length;
    // Slots of the cache.
    int64_t num_slots;
    double scale;
};

// What happens to the projections of a new token before attention.
struct NewToken {
    Rows q, k, v;  // q and k are overwritten where q_out is set
    const float *q_norm, *k_norm;  // RMSNorm per head, or null
    double norm_eps;
    int64_t rotary;
    const float* table;  // (positions, key_size/2, 2)
    const int64_t* positions;
    // Row of the cache, or null for the row itself; first slot of position 0.
    const int64_t* cache_rows;
    int64_t prefix;
    // What positions and cache rows must stay below.
    int64_t num_positions, num_cache_rows;
};

struct Layer {
    Matrix qkv[3];
    int64_t num_qkv;
    Matrix proj, gate, up, down;
    const float *q_norm, *k_norm;
    Cache keys, values;
    int64_t prefix;
};

struct Step {
    const Layer* layers;
    int64_t num_layers;
    int64_t rows, width, heads, kv_heads, head_dim, hidden;
    double norm_eps, qk_eps, scale;
    int64_t rotary;
    const float* table;
    // Token table and one id per row; what is added at each position, or null.
    Rows embedding;
    const float* added;
    const int64_t *ids, *positions, *cache_rows;
    // What these three must stay below.
    int64_t num_ids, num_positions, num_cache_rows;
    // Outputs low … high − 1 of the head.
    const Matrix* head;
    int64_t low, high;
    Rows logits;
};

// A field of points that attend to the latents of one object: models/cube/tokenizer.py, OccupancyDecoder.
struct Field {
    const float* points;  // (num_points, 3)
    float* logits;        // (num_points,)
    int64_t num_points, width, heads, num_freqs, num_latents;
    double eps;
    // (3, num_freqs) frequencies, (num_freqs,) fixed phases.
    const float *frequencies, *carrier;
    // Two layers from the embedded point on, queries, their output, and the MLP.
    Matrix in_layer, out_layer, query, proj, up, down;
    // Of each head, int8: keys over √d · ln 2, a latent per output, and values, a latent per input.
    const Matrix *keys, *values;
    // The last norm and the head in one: (width,) factors and what is added.
    const float* head_weight;
    double head_bias;
};

// Requests in slots, and how each chooses its ids: kernels/sampling_state.py describes the fields.
struct Sampler {
    // Slots that are looked at, logits per slot (1, or 2 with guidance), ids per request at most.
    int64_t slots, copies, max_tokens;
    int32_t* steps;
    const int32_t* num_tokens;
    const double* guidance;
    const float *temperature, *top_p;
    const int64_t* keys;
    // Per step, the first id that may stand there and the one after the last.
    const int32_t* ranges;
    int64_t num_ranges;
    const int64_t* forced;
    int64_t *ids, *tokens;
    int32_t *positions, *lengths, *failed;
};

}  // namespace hk
