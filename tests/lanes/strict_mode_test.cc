#include "tests/lanes/strict_mode.h"

namespace plait {

INSTANTIATE_TEST_SUITE_P(Zoo, StrictMode, testing::Values("squeezenet1_1", "mobilenet_v2"), NetworkName);

}  // namespace plait
