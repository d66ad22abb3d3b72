// Robust statistics of repeated measurements.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace plait {

// The q-quantile (0 to 1) with linear interpolation; 0 for no samples.
inline double QuantileOf(std::vector<double> samples, double q) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const double at = q * static_cast<double>(samples.size() - 1);
  const size_t low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, samples.size() - 1);
  return samples[low] + (samples[high] - samples[low]) * (at - static_cast<double>(low));
}

// What the thing takes when nothing disturbs it: other work on a machine only ever makes it slower, often by half. The second smallest of five.
inline double QuietOf(const std::vector<double>& samples) { return QuantileOf(samples, 0.25); }

inline double MedianOf(const std::vector<double>& samples) { return QuantileOf(samples, 0.5); }

// Half the interquartile range divided by the median.
inline double SpreadOf(const std::vector<double>& samples) {
  const double median = MedianOf(samples);
  return median > 0 ? (QuantileOf(samples, 0.75) - QuantileOf(samples, 0.25)) / 2 / median : 0;
}

// The order statistics that hold the median with 95 %: as far apart as needed, the extremes for few samples.
struct MedianBounds {
  double low = 0, high = 0;
};
inline MedianBounds MedianInterval(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const double n = static_cast<double>(samples.size());
  const double reach = 1.96 * std::sqrt(n) / 2;
  const double low = std::floor(n / 2 - reach), high = std::ceil(n / 2 + reach);
  return {samples[static_cast<size_t>(std::max(low, 0.0))], samples[static_cast<size_t>(std::min(high, n - 1))]};
}

}  // namespace plait
