// Vectors times the rows of a matrix. row_products.py compiles this file.
//
//   float32   sums in float32
//   bfloat16  a weight is widened to float32, and so are the sums
//   int8      the vector is rounded to whole numbers of 16 bits, and the sums in 32 bits are exact
//
// Only plain loops: the compiler finds the instructions that the processor has for them (fma, pmaddwd, vpdpwssd, ...).

#include <ATen/Parallel.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace {

// So many rows at once, each from another quarter of the matrix: who waits for memory in four places gets more of it.
constexpr int ROWS = 4;
constexpr int64_t WIDEST = 16770000;  // 2^31 / 128, and room for the sums' own rounding

template <class Number>
struct Vectors {
  const Number* numbers;     // [batch, width]
  const float* steps;        // [batch], what a number counts
  int64_t batch, width;
};

// The rows times as many vectors, so that what was read of a row is used for all of them: sums[row][vector].
template <int VECTORS, class Sum, class Weight, class Number>
void multiply(const Weight* const rows[ROWS], const Number* x, int64_t width, Sum sums[ROWS][VECTORS]) {
  Sum own[ROWS][VECTORS] = {{}};  // in registers
  for (int64_t i = 0; i < width; i++)
    for (int k = 0; k < ROWS; k++)
      for (int v = 0; v < VECTORS; v++) own[k][v] += static_cast<Number>(rows[k][i]) * x[v * width + i];
  for (int k = 0; k < ROWS; k++)
    for (int v = 0; v < VECTORS; v++) sums[k][v] = own[k][v];
}

// Some vectors, from `first` on, times the rows r, r + quarter, ...: added to out, [batch, height].
template <int VECTORS, class Sum, class Weight, class Number>
void multiply_some(const Weight* const rows[ROWS], const float* scales, const Vectors<Number>& x, int64_t first,
                   int64_t r, int64_t height, float* out) {
  Sum sums[ROWS][VECTORS];
  multiply<VECTORS>(rows, x.numbers + first * x.width, x.width, sums);
  const int64_t quarter = (height + ROWS - 1) / ROWS;
  for (int64_t k = 0, i = r; k < ROWS && i < height; k++, i += quarter)
    for (int64_t v = 0; v < VECTORS; v++)
      out[(first + v) * height + i] += static_cast<float>(sums[k][v]) * (scales[i] * x.steps[first + v]);
}

// [height, width] times each vector, added to [batch, height]. The rows are split over torch's threads.
template <class Sum, class Weight, class Number>
void products(const at::Tensor& weights, const float* scales, const Vectors<Number>& x, float* out) {
  const int64_t height = weights.size(0), quarter = (height + ROWS - 1) / ROWS;
  const Weight* const matrix = weights.const_data_ptr<Weight>();
  const int64_t fewest = 1 + 8192 / (x.width * x.batch);  // rounds of the loop that are worth a thread of their own
  at::parallel_for(0, quarter, fewest, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) {
      const Weight* rows[ROWS];
      for (int64_t k = 0; k < ROWS; k++) rows[k] = matrix + std::min(r + k * quarter, height - 1) * x.width;
      int64_t first = 0;
      for (; first + 2 <= x.batch; first += 2) multiply_some<2, Sum>(rows, scales, x, first, r, height, out);
      if (first < x.batch) multiply_some<1, Sum>(rows, scales, x, first, r, height, out);
    }
  });
}

// Round a vector to 16 bits and return the size of a step: so large that every number, and the sum of the products
// with any row of int8, has room, 128 * sum|rounded| < 2^31. What is not finite makes every product NaN.
float round_vector(const float* x, int64_t width, int16_t* rounded) {
  float largest = 0, sum = 0;
  for (int64_t i = 0; i < width; i++) largest = std::max(largest, std::abs(x[i])), sum += std::abs(x[i]);
  if (!std::isfinite(sum)) return std::numeric_limits<float>::quiet_NaN();  // std::max has forgotten it
  const float step = std::max({largest / 32767, sum / (WIDEST - width), 1e-30f});
  for (int64_t i = 0; i < width; i++) rounded[i] = static_cast<int16_t>(std::nearbyint(x[i] / step));
  return step;
}

// added + x W^T; shapes as in plain_row_products.
at::Tensor row_products(const at::Tensor& weights, const at::Tensor& scales, const at::Tensor& x,
                        const std::optional<at::Tensor>& added) {
  TORCH_CHECK(weights.dim() == 2 && x.dim() == 2 && weights.size(1) == x.size(1) && weights.size(1) < WIDEST / 2 &&
                  scales.dim() == 1 && scales.size(0) == weights.size(0),
              "rows [R, C] need vectors [B, C] and scales [R], got ", weights.sizes(), ", ", x.sizes(), " and ",
              scales.sizes());
  const int64_t height = weights.size(0), batch = x.size(0), width = x.size(1);
  TORCH_CHECK(!added || added->sizes() == at::IntArrayRef({batch, height}), "what is added must be [B, R]");
  for (const at::Tensor& it : {scales, x, added.value_or(x)})
    TORCH_CHECK(it.is_cpu() && it.scalar_type() == at::kFloat, "all but the rows must be float32 on the CPU");
  TORCH_CHECK(weights.is_cpu() && weights.is_contiguous() && scales.is_contiguous(),
              "rows are read in the order of memory, on the CPU");
  const auto kind = weights.scalar_type();
  TORCH_CHECK(kind == at::kChar || kind == at::kFloat || kind == at::kBFloat16,
              "rows must be int8, bfloat16 or float32, got ", kind);
  at::Tensor result = added ? added->clone(at::MemoryFormat::Contiguous) : x.new_zeros({batch, height});
  if (batch == 0 || weights.numel() == 0) return result;
  const at::Tensor vectors = x.contiguous();
  const float *numbers = vectors.const_data_ptr<float>(), *by = scales.const_data_ptr<float>();
  float* const out = result.mutable_data_ptr<float>();
  std::vector<float> steps(batch, 1.0f);
  if (kind == at::kChar) {
    std::vector<int16_t> rounded(batch * width);
    for (int64_t b = 0; b < batch; b++) steps[b] = round_vector(numbers + b * width, width, &rounded[b * width]);
    products<int32_t, int8_t>(weights, by, Vectors<int16_t>{rounded.data(), steps.data(), batch, width}, out);
  } else {
    const Vectors<float> all{numbers, steps.data(), batch, width};
    if (kind == at::kFloat)
      products<float, float>(weights, by, all, out);
    else
      products<float, at::BFloat16>(weights, by, all, out);
  }
  return result;
}

}  // namespace

TORCH_LIBRARY(minimind_edu, library) {
  library.def("row_products(Tensor weights, Tensor scales, Tensor x, Tensor? added=None) -> Tensor");
  library.impl("row_products", c10::DispatchKey::CPU, row_products);
}
