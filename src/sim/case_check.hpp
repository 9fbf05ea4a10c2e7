// A conformance case is checked before it runs: a case that names what is not there, or amounts
// that no engine would accept, is bad input, not a failure of the engine.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/kai_case.hpp"
#include "sim/kueue_case.hpp"

namespace gs {

// All throw std::runtime_error with the reason.
// Numbers that a later conversion to an integer would not survive.
void check_numbers(const nlohmann::json& json);
void check_case(const KaiCase& c);
void check_case(const KueueCase& c);

}  // namespace gs
