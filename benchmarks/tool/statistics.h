// Order statistics of timing samples.
#pragma once

#include <vector>

namespace plait {

struct Interval {
  double low = 0;
  double high = 0;
};

// Linear interpolation between order statistics; 0 for no samples. `q` in [0, 1].
double Quantile(std::vector<double> samples, double q);
double Median(const std::vector<double>& samples);

// A distribution-free interval of at least 95 % for the median, from the binomial distribution of order statistics (Conover, Practical
// Nonparametric Statistics, section 3.2); the whole range below six samples.
Interval MedianInterval95(std::vector<double> samples);

}  // namespace plait
