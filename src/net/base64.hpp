// Base64 as kubeconfigs and Secrets have it: the usual alphabet, padded, line breaks allowed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gs {

std::optional<std::string> base64_decode(std::string_view text);  // none: not such a text
std::string base64_encode(std::string_view bytes);

}  // namespace gs
