// TenantSpec <-> JSON; the fields are called as the members are, priority_tier is a word and
// max_gpus_by_model an object. Decoding validates the fields one by one; a rule's message names its
// field.
#pragma once

#include "base/result.hpp"
#include "model/spec.hpp"
#include "wire/json_reader.hpp"

namespace gs {

const char* tier_word(Tier tier);  // low, medium, high, critical

Json tenant_json(const TenantSpec& spec);
// Its name and the five max_* limits are required.
Result<TenantSpec> read_tenant(const Json& json);
// `spec` with the fields that are given; nothing is required.
Result<TenantSpec> update_tenant(TenantSpec spec, const Json& json);

}  // namespace gs
