// Compares a layout with the one a kueue-tas case expects, and checks it by itself.
#pragma once

#include <string>

#include "sim/kueue_case.hpp"

namespace gs {

// Empty, or what is wrong: counts, room, filters, required level, slices.
std::string illegal(const KueueCase& c, const TaskLayout& layout);

// Equal up to a renaming of domains and nodes that have equal room, equal labels where labels
// matter, and equal children.
bool mirror_images(const KueueCase& c, const TaskLayout& a, const TaskLayout& b);

std::string describe(const TaskLayout& layout);

}  // namespace gs
