// Sets of elements as lists of boxes.
#pragma once

#include <vector>

#include "src/graph/dims.h"

namespace plait {

// Takes the elements of `hole` out of `boxes` (disjoint before and after if they were before).
void SubtractBox(const Region& hole, std::vector<Region>* boxes);

// Joins boxes as long as two of them make one box without adding an element.
void JoinBoxes(std::vector<Region>* boxes);

}  // namespace plait
