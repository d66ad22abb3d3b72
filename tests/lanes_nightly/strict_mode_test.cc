// The network with the most handoffs takes a minute a plan.
#include "tests/lanes/strict_mode.h"

namespace plait {

INSTANTIATE_TEST_SUITE_P(Zoo, StrictMode, testing::Values("vit_ti_16"), NetworkName);

}  // namespace plait
