// Vectors times the rows of a matrix that takes fewer bytes than float32. row_products.py compiles this file.
//
//   int8      the vector is rounded to whole numbers of 16 bits, and the sums in 32 bits are exact
//   bfloat16  a weight is widened to float32, and so are the sums
//
// Only plain loops: the compiler finds the instructions that the processor has for them (pmaddwd, vpdpwssd, fma, ...).

#include <ATen/Parallel.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

// Four rows at once, each from another quarter of the matrix: who waits for memory in four places gets more of it.
template <class Sum, class Weight, class Number>
void four_products(const Weight* const row[4], const Number* x, int64_t width, Sum sums[4]) {
  const Weight *w0 = row[0], *w1 = row[1], *w2 = row[2], *w3 = row[3];
  Sum a = 0, b = 0, c = 0, d = 0;
  for (int64_t i = 0; i < width; i++) {
    a += static_cast<Number>(w0[i]) * x[i];
    b += static_cast<Number>(w1[i]) * x[i];
    c += static_cast<Number>(w2[i]) * x[i];
    d += static_cast<Number>(w3[i]) * x[i];
  }
  sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
}

// [height, width] times each of [batch, width] -> [batch, height]. A row is read once for all vectors.
template <class Sum, class Weight, class Number>
void products(const at::Tensor& weights, const float* scales, const Number* x, const std::vector<float>& steps,
              float* out) {
  const int64_t height = weights.size(0), width = weights.size(1), batch = steps.size(), quarter = (height + 3) / 4;
  const Weight* const first = weights.const_data_ptr<Weight>();
  const int64_t fewest = 1 + 8192 / (width * batch);  // rounds of the loop that are worth a thread of their own
  at::parallel_for(0, quarter, fewest, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) {
      const Weight* row[4];
      for (int64_t k = 0; k < 4; k++) row[k] = first + std::min(r + k * quarter, height - 1) * width;
      for (int64_t b = 0; b < batch; b++) {
        Sum sums[4];
        four_products(row, x + b * width, width, sums);
        for (int64_t k = 0, i = r; k < 4 && i < height; k++, i += quarter)
          out[b * height + i] = static_cast<float>(sums[k]) * (scales[i] * steps[b]);
      }
    }
  });
}

// Round a vector to 16 bits and return the size of a step: so large that every number, and the sum of the products
// with any row of int8, has room, 127 * sum|rounded| < 2^31.
float round_vector(const float* x, int64_t width, int16_t* rounded) {
  float largest = 0, sum = 0;
  for (int64_t i = 0; i < width; i++) largest = std::max(largest, std::abs(x[i])), sum += std::abs(x[i]);
  const float step = std::max({largest / 32767, sum / (16900000 - width), 1e-30f});
  for (int64_t i = 0; i < width; i++) rounded[i] = static_cast<int16_t>(std::nearbyint(x[i] / step));
  return step;
}

at::Tensor row_products(const at::Tensor& weights, const at::Tensor& scales, const at::Tensor& x) {
  const int64_t batch = x.size(0), width = x.size(1);
  const at::Tensor vectors = x.contiguous();
  const float *numbers = vectors.const_data_ptr<float>(), *by = scales.const_data_ptr<float>();
  at::Tensor out = x.new_empty({batch, weights.size(0)});
  std::vector<float> steps(batch, 1.0f);
  if (weights.scalar_type() == at::kChar) {
    std::vector<int16_t> rounded(batch * width);
    for (int64_t b = 0; b < batch; b++) steps[b] = round_vector(numbers + b * width, width, &rounded[b * width]);
    products<int32_t, int8_t>(weights, by, rounded.data(), steps, out.mutable_data_ptr<float>());
  } else {
    products<float, at::BFloat16>(weights, by, numbers, steps, out.mutable_data_ptr<float>());
  }
  return out;
}

}  // namespace

TORCH_LIBRARY(minimind_edu, library) {
  library.def("row_products(Tensor weights, Tensor scales, Tensor x) -> Tensor");
  library.impl("row_products", c10::DispatchKey::CPU, row_products);
}
