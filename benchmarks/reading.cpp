// The fastest way to read memory that we know: four places at once, and hardly anything done with what is read.

#include <stddef.h>
#include <stdint.h>

// The total of count numbers, a multiple of four, modulo 2^32.
extern "C" uint32_t total(const uint32_t* numbers, size_t count) {
  uint32_t sums[4] = {};
  const size_t quarter = count / 4;
  for (size_t i = 0; i < quarter; i++)
    for (size_t k = 0; k < 4; k++) sums[k] += numbers[i + k * quarter];
  return sums[0] + sums[1] + sums[2] + sums[3];
}
