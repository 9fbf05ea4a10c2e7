// Targets of HTTP requests: paths and queries with escapes.
#include <cstdint>
#include <string_view>

#include "base/check.hpp"
#include "net/http.hpp"
#include "wire/clock_json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  gs::HttpRequest request;
  if (gs::parse_target(text, request)) {
    CHECK(!request.path.empty() && request.path.front() == '/');
    gs::HttpRequest again;
    std::string target = "/" + gs::percent_encode(request.path.substr(1));
    for (const auto& [key, value] : request.query)
      target.append(target.find('?') == std::string::npos ? "?" : "&")
          .append(gs::percent_encode(key) + "=" + gs::percent_encode(value));
    CHECK(gs::parse_target(target, again).ok());
    CHECK(again.path == request.path);
  }
  if (const auto time = gs::parse_time(text)) CHECK(gs::parse_time(gs::time_text(*time)) == time);
  return 0;
}
