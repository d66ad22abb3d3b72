#include "benchmarks/tool/statistics.h"

#include <algorithm>
#include <cmath>

namespace plait {

double Quantile(std::vector<double> samples, double q) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const double position = q * static_cast<double>(samples.size() - 1);
  const size_t below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, samples.size() - 1);
  return samples[below] + (position - static_cast<double>(below)) * (samples[above] - samples[below]);
}

double Median(const std::vector<double>& samples) { return Quantile(samples, 0.5); }

Interval MedianInterval95(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const int n = static_cast<int>(samples.size());
  // The largest k for which P(Binomial(n, 1/2) < k) <= 2.5 %: [x_k, x_(n-k+1)] then covers the median with at least 95 %.
  int k = 0;
  double term = std::exp2(-n), below = term;
  while (k < n / 2 && below <= 0.025) {
    ++k;
    term *= static_cast<double>(n - k + 1) / k;
    below += term;
  }
  const int low = std::max(k - 1, 0);
  return {samples[static_cast<size_t>(low)], samples[static_cast<size_t>(n - 1 - low)]};
}

}  // namespace plait
