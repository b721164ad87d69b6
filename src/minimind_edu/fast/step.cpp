// A step of a Llama-like model: new tokens in, logits out. The whole of it in one file; step.py compiles and calls it.
//
//   embedding -> L times ( norm, q k v, rotation | attention | out | norm, gate up | down ) -> norm -> output
//
// E is the width of the stream; H query heads and K key/value heads have D channels; I is the inner width, N experts, V
// tokens. n vectors go together, of several texts or positions: what was read of a matrix is used for all of them.
//
//   FLOAT32   [height, width]
//   BFLOAT16  [height, width], the upper halves of float32
//   INT8      [height, width], and a scale for each row. A vector becomes whole numbers of 16 bits; the sums are exact
//   INT4      [height / 32][width / 4][16][4], two weights + 8 in a byte: of row l of 32, and of row l + 16. So an
//             instruction works on four columns of many rows. A scale for 32 neighbors in a row, [height / 32]
//             [width / 32][32]. A vector becomes whole numbers of 8 bits, with a step for 32 of them
//
// Plain loops, of which the compiler makes the processor's instructions; where it does not find them, they are named.
// It may be WebAssembly, which has no threads. Sizes and addresses are checked in Python.

#include <stddef.h>
#include <stdint.h>
#ifndef __wasm__
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#endif
#ifdef __AVX2__
#include <immintrin.h>
#endif

// What a page sees on the way, and may change: n vectors of a part, or the n weights of a head.
enum Part : size_t { STREAM, NORMED, QUERIES, KEYS, VALUES, WEIGHTS, HEADS, ATTENDED, FEED_NORMED, ROUTED, CHOSEN, GATE,
                     UP, HIDDEN, FED, FINAL };
#ifdef __wasm__
extern "C" __attribute__((import_module("page"), import_name("see"))) void see(Part part, float* numbers, size_t n);
#else
static inline void see(Part, float*, size_t) {}
#endif

namespace {

enum Kind : size_t { FLOAT32, BFLOAT16, INT8, INT4 };
constexpr size_t GROUP = 32, PLACES = 4;
constexpr size_t BLOCK = 16, CHUNKS = 4;  // vectors that are read at once; chunks of a job, for each thread
// Bytes that an instruction works on, and vectors that four rows are multiplied with: their sums stay in registers.
#if defined(__AVX512VNNI__)
constexpr size_t WIDE = 64, TOGETHER = 4;
#elif defined(__AVX2__)
constexpr size_t WIDE = 32, TOGETHER = 2;
#elif defined(__aarch64__)
constexpr size_t WIDE = 16, TOGETHER = 4;
#else
constexpr size_t WIDE = 16, TOGETHER = 2;
#endif
typedef uint8_t Bytes __attribute__((vector_size(WIDE)));
typedef int16_t Shorts __attribute__((vector_size(WIDE)));
typedef int32_t Ints __attribute__((vector_size(WIDE)));

// Every member of these is one machine word, so Python and JavaScript write them as lists of numbers.
struct Matrix { Kind kind; size_t height, width; const void* values; const float* scales; };
struct Network { Matrix gate, up, down; };
struct Layer {
  const float *attention_gain, *feed_gain, *query_gain, *key_gain;  // the last two: QK-norm, or null
  Matrix q, k, v, out, router;
  const Network* networks;  // the experts, then those that every token visits
};
struct Model {
  size_t layers, heads, kv_heads, head_dim, inner, experts, chosen, shared, renormalized;
  const float *eps, *cos, *sin, *gain;  // cos and sin: [positions, D]
  Matrix embedding, output;
  const Layer* layer;
};
struct Texts {
  size_t count, length, start, capacity, wanted;  // texts, new tokens of each, positions before, room; how many logits
  const int64_t *ids, *padding;        // [count, length]; [count], positions in front of each that nobody sees
  float *const *keys, *const *values;  // of each layer, [count, capacity, K, D]
  float* logits;                       // [wanted, count, V], of the last tokens
};
struct Vectors {  // [n, width]; steps for n or groups
  float* numbers; int16_t* rounded; float* steps; int16_t* sums;
  int8_t* bytes() const { return reinterpret_cast<int8_t*>(rounded); }  // for int4
};

float larger(float a, float b) { return a > b ? a : b; }
size_t larger(size_t a, size_t b) { return a > b ? a : b; }
size_t smaller(size_t a, size_t b) { return a < b ? a : b; }
float magnitude(float x) { return x < 0 ? -x : x; }
float widened(float x) { return x; }
int16_t widened(int8_t x) { return x; }
float widened(uint16_t x) { return __builtin_bit_cast(float, static_cast<uint32_t>(x) << 16); }

template <class It>
It near(const void* place) { It it; return __builtin_memcpy(&it, place, sizeof(It)), it; }  // wherever it lies

// e^x = 2^n e^r with |r| < 0.35, in plain arithmetic: a loop of it becomes a loop of SIMD instructions.
float exponential(float x) {
  const float near = x > -87 ? x < 88 ? x : 88 : -87;  // and what is not a number stays so
  const float n = __builtin_rintf(near * 1.44269504f), r = near - n * 0.693359375f + n * 2.12194440e-4f;
  const float power = __builtin_bit_cast(float, (static_cast<int32_t>(n) + 127) << 23);
  const float rest = 1 + r * (1 + r * (1 / 2.f + r * (1 / 6.f + r * (1 / 24.f + r * (1 / 120.f + r / 720)))));
  return x == x ? power * rest : x;
}

// n vectors become what a matrix of their kind is multiplied with.
void round_vectors(Kind kind, const Vectors& v, size_t n, size_t width) {
  const size_t each = kind == INT4 ? GROUP : width;
  for (size_t at = 0, s = 0; kind >= INT8 && at < n * width; at += each, s++) {
    const float* x = v.numbers + at;
    float largest = 0, sum = 0;
    for (size_t i = 0; i < each; i++) largest = larger(largest, magnitude(x[i])), sum += magnitude(x[i]);
    const bool finite = sum < 3e38f;  // if not, the step is NaN, and so is all that is multiplied with it
    // so large that every number, and the sum of the products with any row of int8, has room: 127 * sum < 2^31
    const float step = larger(kind == INT4 ? largest / 127 : larger(largest / 32767, sum / (16900000 - each)), 1e-30f);
    int16_t total = 0;
    for (size_t i = 0; i < each; i++) {
      const auto number = static_cast<int16_t>(finite ? __builtin_rintf(x[i] * (1 / step)) : 0);
      if (kind == INT4) v.bytes()[at + i] = number;
      else v.rounded[at + i] = number;
      total += number;
    }
    v.steps[s] = finite ? step : __builtin_nanf(""), v.sums[s] = total;
  }
}

// V vectors times a row from each of four places: who waits for memory in four places gets more of it.
template <size_t V, class Sum, class Weight, class Number>
void multiply(const Weight* const rows[PLACES], const Number* x, size_t width, Sum sums[PLACES][V]) {
#ifdef __wasm__  // eight by one instruction, which clang does not find; without it int8 takes six times as long
  if constexpr (sizeof(Weight) == 1) if (width % 8 == 0) {
    Ints own[PLACES][V] = {};
    for (size_t i = 0; i < width; i += 8)
      for (size_t k = 0; k < PLACES; k++) {
        typedef int8_t Eight __attribute__((vector_size(8)));
        const auto row = __builtin_convertvector(near<Eight>(rows[k] + i), Shorts);
        for (size_t v = 0; v < V; v++)
          own[k][v] += __builtin_wasm_dot_s_i32x4_i16x8(row, near<Shorts>(x + v * width + i));
      }
    for (size_t k = 0; k < PLACES; k++)
      for (size_t v = 0; v < V; v++) sums[k][v] = own[k][v][0] + own[k][v][1] + own[k][v][2] + own[k][v][3];
    return;
  }
#endif
  Sum own[PLACES][V] = {};  // in registers
  for (size_t i = 0; i < width; i++)
    for (size_t k = 0; k < PLACES; k++)
      for (size_t v = 0; v < V; v++) own[k][v] += widened(rows[k][i]) * x[v * width + i];
  __builtin_memcpy(sums, own, sizeof(own));
}

template <size_t V = TOGETHER, class Work>
void in_sets(size_t n, Work work, size_t v = 0) {  // work<V>(first of V vectors), of fewer at the end
  for (; v + V <= n; v += V) work.template operator()<V>(v);
  if constexpr (V > 1) in_sets<V / 2>(n, work, v);
}

template <class Sum, class Weight, class Number>
void row_products(const Matrix& m, size_t begin, size_t end, const Number* x, const float* steps, size_t n,
                  float* out) {
  const size_t quarter = (end - begin + PLACES - 1) / PLACES;
  for (size_t i = 0; i < quarter; i++) {
    const auto row = [&](size_t k) { return begin + i + k * quarter; };
    const Weight* rows[PLACES];
    for (size_t k = 0; k < PLACES; k++)
      rows[k] = static_cast<const Weight*>(m.values) + smaller(row(k), end - 1) * m.width;
    in_sets(n, [&]<size_t V>(size_t first) {
      Sum sums[PLACES][V];
      multiply<V>(rows, x + first * m.width, m.width, sums);
      for (size_t k = 0; k < PLACES && row(k) < end; k++)
        for (size_t v = 0, at = first; v < V; v++, at++)
          out[at * m.height + row(k)] = sums[k][v] * (m.kind == INT8 ? m.scales[row(k)] * steps[at] : 1);
    });
  }
}

// Adds to the sums of rows what four columns of them give: a byte for each weight, and for each of the numbers. Without
// the instructions that are named here int4 takes twice as long, in a page a third longer.
Ints four_columns(Ints sums, Bytes weights, int32_t numbers) {
  const Ints all = Ints{} + numbers;
#if defined(__AVX512VNNI__)
  return (Ints)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)weights, (__m512i)all);
#elif defined(__AVX2__)
  const auto pairs = _mm256_maddubs_epi16((__m256i)weights, (__m256i)all);
  return sums + (Ints)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#else
  const Shorts even = (Shorts)weights & 255, odd = (Shorts)weights >> 8;
  const Shorts x = (Shorts)all << 8 >> 8, y = (Shorts)all >> 8;
#ifdef __wasm__
  return sums + __builtin_wasm_dot_s_i32x4_i16x8(even, x) + __builtin_wasm_dot_s_i32x4_i16x8(odd, y);
#else
  const Ints pairs = (Ints)(even * x + odd * y);
  return sums + (pairs << 16 >> 16) + (pairs >> 16);
#endif
#endif
}

void nibble_products(const Matrix& m, size_t begin, size_t end, const Vectors& x, size_t n, float* out) {
  constexpr size_t lanes = WIDE / 4, parts = GROUP / 2 / lanes;
  const size_t groups = m.width / GROUP;
  for (size_t r = begin; r < end; r += GROUP)  // the last of 32 rows may be padding
    in_sets(n, [&]<size_t V>(size_t first) {
      float sums[V][GROUP] = {};
      for (size_t g = 0, block = r / GROUP * groups; g < groups; g++, block++) {
        Ints below[V][parts], above[V][parts];  // rows l, and rows l + 16
        for (size_t v = 0; v < V; v++)
          for (size_t p = 0; p < parts; p++)
            below[v][p] = above[v][p] = Ints{} - 8 * x.sums[(first + v) * groups + g];
        for (size_t i = 0; i < GROUP / 4; i++)
          for (size_t p = 0; p < parts; p++) {
            const Bytes four = static_cast<const Bytes*>(m.values)[(block * GROUP / 4 + i) * parts + p];
            for (size_t v = 0; v < V; v++) {
              const auto numbers = near<int32_t>(x.bytes() + (first + v) * m.width + g * GROUP + 4 * i);
              below[v][p] = four_columns(below[v][p], four & 15, numbers);
              above[v][p] = four_columns(above[v][p], (Bytes)((Shorts)four >> 4) & 15, numbers);
            }
          }
        const float* scales = m.scales + block * GROUP;
        for (size_t v = 0; v < V; v++)
          for (size_t p = 0; p < parts; p++)
            for (size_t l = 0, at = p * lanes; l < lanes; l++, at++) {
              const float step = x.steps[(first + v) * groups + g];
              sums[v][at] += scales[at] * step * below[v][p][l];
              sums[v][at + 16] += scales[at + 16] * step * above[v][p][l];
            }
      }
      for (size_t v = 0; v < V; v++)
        for (size_t l = 0; l < smaller(GROUP, end - r); l++) out[(first + v) * m.height + r + l] = sums[v][l];
    });
}

// Rows begin to end, times n vectors: out [n, height]. In a matrix of int4 begin is a multiple of 32.
void products(const Matrix& m, size_t begin, size_t end, const Vectors& x, size_t n, float* out) {
  if (m.kind == FLOAT32) row_products<float, float>(m, begin, end, x.numbers, x.steps, n, out);
  if (m.kind == BFLOAT16) row_products<float, uint16_t>(m, begin, end, x.numbers, x.steps, n, out);
  if (m.kind == INT8) row_products<int32_t, int8_t>(m, begin, end, x.rounded, x.steps, n, out);
  if (m.kind == INT4) nibble_products(m, begin, end, x, n, out);
}

// One row, as float32.
void restored_row(const Matrix& m, size_t row, float* out) {
  for (size_t i = 0, block = row / GROUP, lane = row % GROUP; i < m.width; i++) {
    const size_t at = row * m.width + i, byte = (block * m.width + i) / 4 * 64 + lane % 16 * 4 + i % 4;
    const int nibble = m.kind == INT4 ? static_cast<const uint8_t*>(m.values)[byte] >> lane / 16 * 4 : 0;
    if (m.kind == FLOAT32) out[i] = static_cast<const float*>(m.values)[at];
    if (m.kind == BFLOAT16) out[i] = widened(static_cast<const uint16_t*>(m.values)[at]);
    if (m.kind == INT8) out[i] = static_cast<const int8_t*>(m.values)[at] * m.scales[row];
    if (m.kind == INT4) out[i] = ((nibble & 15) - 8) * m.scales[(block * m.width + i) / GROUP * GROUP + lane];
  }
}

void norm(const float* x, const float* gain, float eps, size_t width, float* out) {
  float squares = 0;
  for (size_t i = 0; i < width; i++) squares += x[i] * x[i];
  const float by = 1 / __builtin_sqrtf(squares / width + eps);
  for (size_t i = 0; i < width; i++) out[i] = x[i] * by * gain[i];
}

void rotate(float* x, const float* cos, const float* sin, size_t head_dim) {
  for (size_t i = 0, j = head_dim / 2; j < head_dim; i++, j++) {
    const float a = x[i], b = x[j];
    x[i] = a * cos[i] - b * sin[i], x[j] = b * cos[j] + a * sin[j];
  }
}

void softmax(float* scores, size_t count) {
  float most = -1e30f, sum = 0;
  for (size_t t = 0; t < count; t++) most = larger(most, scores[t]);
  for (size_t t = 0; t < count; t++) sum += scores[t] = exponential(scores[t] - most);
  for (size_t t = 0; t < count; t++) scores[t] /= sum;
}

// One query reads `length` positions that lie `stride` apart, four at a time; after the end the last one again.
void attend(const float* query, const float* keys, const float* values, size_t length, size_t stride, size_t head_dim,
            float* weights, float* out) {
  const float* rows[PLACES];
  for (size_t t = 0; t < length; t += PLACES) {
    float scores[PLACES][1];
    for (size_t k = 0; k < PLACES; k++) rows[k] = keys + smaller(t + k, length - 1) * stride;
    multiply<1>(rows, query, head_dim, scores);
    for (size_t k = 0; k < PLACES; k++) weights[t + k] = scores[k][0] / __builtin_sqrtf(head_dim);
  }
  softmax(weights, length);
  for (size_t k = 0; k < PLACES; k++) weights[length + k] = 0;
  for (size_t i = 0; i < head_dim; i++) out[i] = 0;
  for (const float* w = weights; w < weights + length; w += PLACES) {
    for (size_t k = 0; k < PLACES; k++) rows[k] = values + smaller(w - weights + k, length - 1) * stride;
    for (size_t i = 0; i < head_dim; i++)
      out[i] += w[0] * rows[0][i] + w[1] * rows[1][i] + w[2] * rows[2][i] + w[3] * rows[3][i];
  }
}

// The k largest of the router's logits [N] become the weights of their experts, all others -1.
void choose(const Model& m, float* logits) {
  softmax(logits, m.experts);
  float total = 0;
  for (size_t k = 0; k < m.chosen; k++) {
    size_t best = 0;
    for (size_t e = 0; e < m.experts; e++)
      if (logits[best] < 0 || logits[e] > logits[best]) best = e;  // below 0: chosen before
    total += logits[best], logits[best] = -1 - logits[best];
  }
  for (size_t e = 0; e < m.experts; e++)
    logits[e] = logits[e] < 0 ? (-1 - logits[e]) / (m.renormalized ? total : 1) : logits[e] >= 0 ? -1 : logits[e];
}

#ifndef __wasm__
// Threads that do one job after the other, in chunks: whoever is free takes the next one.
struct Helpers {
  std::mutex busy, door;            // busy is held by the only one whom they help
  std::condition_variable woken;
  std::atomic<uint64_t> open{0};    // the number of the job << 32, and how many of its chunks nobody has taken
  std::atomic<size_t> undone{0}, asleep{0}, wanted{0};
  size_t count = 0, jobs = 0, chunks = 0;
  void (*work)(const void* what, size_t chunk);
  const void* what;

  bool take() {
    for (uint64_t seen = open; seen & 0xffffffff;)
      if (open.compare_exchange_weak(seen, seen - 1)) return work(what, chunks - (seen & 0xffffffff)), undone--, true;
    return false;
  }
  void help(size_t i) {
    for (size_t looks = 0;; looks++) {
      if (i < wanted && take()) looks = 0;
      else if (looks < 200) std::this_thread::yield();
      else {
        std::unique_lock<std::mutex> lock(door);
        asleep++, woken.wait(lock, [&] { return i < wanted && open & 0xffffffff; }), asleep--, looks = 0;
      }
    }
  }
  size_t ready(size_t threads) {
    try {
      for (; count + 1 < threads; count++) std::thread(&Helpers::help, this, count).detach();
    } catch (...) {}  // no more threads to be had
    return wanted = threads - 1, threads;
  }
  // Who comes late is not waited for, only who is in the middle of a chunk, and may need this processor for it.
  template <class Work>
  void share(size_t all, const Work& next) {
    work = [](const void* it, size_t i) { (*static_cast<const Work*>(it))(i); };
    what = &next, chunks = undone = all, open = static_cast<uint64_t>(++jobs) << 32 | all;
    if (asleep) std::lock_guard<std::mutex>{door}, woken.notify_all();
    while (take()) {}
    for (size_t looks = 0; undone; looks++)
      looks < 200 ? std::this_thread::yield() : std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
};

Helpers* helpers = new Helpers;  // never deleted: they wait until the process ends
#endif

// n vectors go through the model. Vector j is of text j % count, and the new token first + j / count in it.
struct Step {
  // Places in memory, each as long as n of the widest vectors; four for rounded ones; scores take the rest.
  enum Place : size_t { X, NORM, QUERY, KEY, VALUE, LEFT, RIGHT, SUM, ROUTES, WHICH, NARROW, BROAD = NARROW + 4,
                        SCORES = BROAD + 4 };
  const Model& m;
  const Texts& t;
  const size_t threads, first, n;
  float* const memory;
  const size_t E = m.embedding.width, D = m.head_dim, H = m.heads, K = m.kv_heads, I = m.inner, N = m.experts;
  float *x = at(X), *normed = at(NORM), *q = at(QUERY), *k = at(KEY), *v = at(VALUE), *scores = at(SCORES);
  float *gate = at(LEFT), *up = at(RIGHT), *added = at(SUM), *routed = at(ROUTES);
  size_t* const which = reinterpret_cast<size_t*>(at(WHICH));
  const Vectors narrow = vectors(NARROW), wide = vectors(BROAD);  // [n, E], and [n, H * D] or [n, I]

  static size_t widest(const Model& m) {
    return larger(larger(m.embedding.width, m.experts), larger(m.inner, m.heads * m.head_dim)) / GROUP * GROUP + GROUP;
  }
  float* at(size_t place) const { return memory + place * n * widest(m); }
  Vectors vectors(size_t i) const {
    return {at(i), reinterpret_cast<int16_t*>(at(i + 1)), at(i + 2), reinterpret_cast<int16_t*>(at(i + 3))};
  }
  size_t position(size_t j) const { return t.start + first + j / t.count; }
  size_t slot(size_t j, size_t position) const { return (j % t.count * t.capacity + position) * K * D; }

  // work(begin, end, chunk) for chunks of `all` rows, each some units long.
  template <class Work>
  void split(size_t all, size_t unit, Work work) {
    const size_t units = (all + unit - 1) / unit, chunks = threads > 1 ? smaller(units, CHUNKS * threads) : 1;
    const auto start = [&](size_t i) { return smaller(units * i / chunks * unit, all); };
    const auto one = [&](size_t i) { work(start(i), start(i + 1), i); };
#ifndef __wasm__
    if (chunks > 1) return helpers->share(chunks, one);
#endif
    one(0);
  }

  void run() {
    for (size_t j = 0; j < n; j++)
      restored_row(m.embedding, t.ids[j % t.count * t.length + first + j / t.count], x + j * E);
    see(STREAM, x, n);
    for (size_t l = 0; l < m.layers; l++) {
      const Layer& layer = m.layer[l];
      project(layer, t.keys[l], t.values[l]);
      look_back(layer.out, t.keys[l], t.values[l]);
      feed(layer);
    }
    see(FINAL, x, n);
    predict();
  }

  // The stream [n, E] -> queries [n, H, D], and keys and values [n, K, D] into the cache; queries and keys are rotated.
  void project(const Layer& layer, float* keys, float* values) {
    for (size_t j = 0; j < n; j++) norm(x + j * E, layer.attention_gain, *m.eps, E, narrow.numbers + j * E);
    see(NORMED, narrow.numbers, n);
    round_vectors(layer.q.kind, narrow, n, E);
    size_t unit = D;  // whole heads, and whole groups of rows
    while (unit % GROUP) unit += D;
    const struct { const Matrix& by; const float* gain; float *out, *cache; } parts[] = {
        {layer.q, layer.query_gain, q, nullptr}, {layer.k, layer.key_gain, k, keys}, {layer.v, nullptr, v, values}};
    const auto whole = [&](size_t rows) { return (rows + unit - 1) / unit * unit; };
    split(whole(H * D) + 2 * whole(K * D), unit, [&](size_t begin, size_t end, size_t) {
      for (const auto& [by, gain, out, cache] : parts) {
        const size_t last = smaller(end, by.height), rows = whole(by.height);
        if (begin < last) products(by, begin, last, narrow, n, out);
        for (size_t j = 0; j < n; j++)
          for (size_t i = begin; i < last; i += D) {
            float* const head = out + j * by.height + i;
            if (gain) norm(head, gain, *m.eps, D, head);
            if (out != v) rotate(head, m.cos + position(j) * D, m.sin + position(j) * D, D);
            for (size_t c = 0; cache && c < D; c++) cache[slot(j, position(j)) + i + c] = head[c];
          }
        begin -= smaller(begin, rows), end -= smaller(end, rows);  // of the next part
      }
    });
    see(QUERIES, q, n), see(KEYS, k, n), see(VALUES, v, n);
  }

  // Attention: [n, H, D] -> [n, H * D] -> [n, E], added to the stream. H / K queries share a key and a value.
  void look_back(const Matrix& out, const float* keys, const float* values) {
    split(n * H, 1, [&](size_t begin, size_t end, size_t chunk) {
      for (size_t i = begin; i < end; i++) {
        const size_t j = i / H, from = smaller(t.padding[j % t.count], position(j));
        const size_t at = slot(j, from) + i % H * K / H * D;
        const auto weights = scores + chunk * (t.capacity + PLACES);
        attend(q + i * D, keys + at, values + at, position(j) + 1 - from, K * D, D, weights, wide.numbers + i * D);
        see(WEIGHTS, weights, position(j) + 1 - from);
      }
    });
    see(HEADS, wide.numbers, n);
    for (size_t j = 0; j < n; j++) which[j] = j;
    add(out, n, nullptr);
    see(ATTENDED, added, n);
  }

  // The networks that a vector visits: in a dense model one, in a mixture the chosen experts and the shared ones.
  void feed(const Layer& layer) {
    for (size_t j = 0; j < n; j++) norm(x + j * E, layer.feed_gain, *m.eps, E, normed + j * E);
    see(FEED_NORMED, normed, n);
    if (N) products(layer.router, 0, N, Vectors{normed, nullptr, nullptr, nullptr}, n, routed);
    if (N) see(ROUTED, routed, n);
    for (size_t j = 0; N && j < n; j++) choose(m, routed + j * N);
    if (N) see(CHOSEN, routed, n);
    for (size_t e = 0; e < N + m.shared; e++) {
      size_t count = 0;
      for (size_t j = 0; j < n; j++)
        if (e >= N || routed[j * N + e] != -1) which[count++] = j;
      if (count) visit(layer.networks[e], count, e < N ? routed + e : nullptr);
    }
  }

  // down(silu(gate(x)) * up(x)) of the vectors in `which`: [count, E] -> [count, I] -> [count, E].
  void visit(const Network& network, size_t count, const float* weights) {
    for (size_t c = 0; c < count; c++)
      for (size_t i = 0; i < E; i++) narrow.numbers[c * E + i] = normed[which[c] * E + i];
    round_vectors(network.gate.kind, narrow, count, E);
    split(I, GROUP, [&](size_t begin, size_t end, size_t) {
      products(network.gate, begin, end, narrow, count, gate);
      products(network.up, begin, end, narrow, count, up);
      for (size_t c = 0; c < count; c++)
        for (size_t i = c * I + begin; i < c * I + end; i++)
          wide.numbers[i] = gate[i] / (1 + exponential(-gate[i])) * up[i];
    });
    see(GATE, gate, count), see(UP, up, count), see(HIDDEN, wide.numbers, count);
    add(network.down, count, weights);
    see(FED, added, count);
  }

  // A product of what is wide, [count, ...] -> [count, E], is added to the stream; that of an expert with a weight.
  void add(const Matrix& by, size_t count, const float* weights) {
    round_vectors(by.kind, wide, count, by.width);
    split(E, GROUP, [&](size_t begin, size_t end, size_t) {
      products(by, begin, end, wide, count, added);
      for (size_t c = 0; c < count; c++) {
        const float weight = weights ? weights[which[c] * N] : 1;
        for (size_t i = begin; i < end; i++) x[which[c] * E + i] += weight * added[c * E + i];
      }
    });
  }

  // Logits [wanted, count, V] of the last tokens, as far as they are among these.
  void predict() {
    const size_t skipped = (t.length - t.wanted) * t.count, here = first * t.count;
    const size_t from = here < skipped ? smaller(n, skipped - here) : 0;
    if (from == n) return;
    for (size_t j = from; j < n; j++) norm(x + j * E, m.gain, *m.eps, E, narrow.numbers + (j - from) * E);
    round_vectors(m.output.kind, narrow, n - from, E);
    split(m.output.height, GROUP, [&](size_t begin, size_t end, size_t) {
      products(m.output, begin, end, narrow, n - from, t.logits + (here + from - skipped) * m.output.height);
    });
  }
};

}  // namespace

extern "C" {

// How many numbers of memory a call needs.
size_t room(const Model* m, const Texts* t, size_t threads) {
  return Step::SCORES * larger(BLOCK, t->count) * Step::widest(*m) + CHUNKS * threads * (t->capacity + PLACES);
}

// Read the new tokens: keys and values go into the cache, logits come out.
void read_tokens(const Model* m, const Texts* t, float* memory, size_t threads) {
#ifndef __wasm__
  std::unique_lock<std::mutex> lock(helpers->busy, std::defer_lock);
  if (threads > 1) threads = lock.try_lock() ? helpers->ready(threads) : 1;  // they may be at work for somebody else
#endif
  const size_t most = larger(BLOCK / t->count, 1);  // tokens of each text at once
  for (size_t first = 0; first < t->length; first += most)
    Step{*m, *t, threads, first, smaller(most, t->length - first) * t->count, memory}.run();
}

#ifndef __wasm__
// Some rows as float32, [n, width].
void restore(const Matrix* m, const int64_t* rows, size_t n, float* out) {
  for (size_t i = 0; i < n; i++) restored_row(*m, rows[i], out + i * m->width);
}

// n vectors [n, width] times the matrix as in a step, [n, height]. Memory: 3 * n * width numbers.
void multiply(const Matrix* m, float* x, size_t n, float* memory, float* out) {
  const size_t all = n * m->width;
  const auto shorts = [&](size_t i) { return reinterpret_cast<int16_t*>(memory + i * all); };
  const Vectors vectors{x, shorts(0), memory + all, shorts(2)};
  round_vectors(m->kind, vectors, n, m->width);
  products(*m, 0, m->height, vectors, n, out);
}

void forget_helpers() { helpers = new Helpers; }  // after a fork nobody is left of them
#endif
}
