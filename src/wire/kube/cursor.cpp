#include "wire/kube/cursor.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace gs::kube {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool ends_scalar(char c) { return is_blank(c) || c == ',' || c == '}' || c == ']'; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_number(std::string_view text) {
  std::size_t i = text.starts_with('-') ? 1 : 0;
  const auto digits = [&] {
    const std::size_t from = i;
    while (i < text.size() && is_digit(text[i])) ++i;
    return i - from;
  };
  const bool zero = i < text.size() && text[i] == '0';
  const std::size_t whole = digits();
  if (whole == 0 || (zero && whole > 1)) return false;
  if (i < text.size() && text[i] == '.' && (++i, digits() == 0)) return false;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    if (++i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    if (digits() == 0) return false;
  }
  return i == text.size();
}

int hex(std::string_view four) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(four.data(), four.data() + four.size(), value, 16);
  return error == std::errc{} && end == four.data() + 4 ? static_cast<int>(value) : -1;
}

void append_utf8(std::string& out, unsigned code) {
  const auto put = [&](unsigned byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) return put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
  if (code < 0x10000)
    return put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F));
  put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
}

// The code point behind "\u" at body[i]; i comes to stand on its last digit. -1: broken.
int code_point(std::string_view body, std::size_t& i) {
  if (i + 4 >= body.size()) return -1;
  const int first = hex(body.substr(i + 1, 4));
  i += 4;
  if (first < 0xD800 || first > 0xDFFF) return first;
  if (first > 0xDBFF || i + 6 >= body.size() || body[i + 1] != '\\' || body[i + 2] != 'u')
    return -1;
  const int second = hex(body.substr(i + 3, 4));
  if (second < 0xDC00 || second > 0xDFFF) return -1;
  i += 6;
  return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
}

}  // namespace

void Cursor::blanks() {
  while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
}

char Cursor::next() {
  blanks();
  return at_ < text_.size() ? text_[at_] : '\0';
}

std::string Cursor::path() const {
  std::string path;
  for (int i = 0; i < depth_; ++i) {
    const Step& step = path_[static_cast<std::size_t>(i)];
    if (step.index >= 0)
      path += '[' + std::to_string(step.index) + ']';
    else
      path.append(path.empty() ? "" : ".").append(step.name);
  }
  return path;
}

void Cursor::fail(std::string_view rule) {
  if (failed_) return;
  error_ = path();
  if (error_.empty()) error_ = "the object";
  error_.append(" ").append(rule);
  failed_ = true;
}

void Cursor::broken(const char* what) {
  if (failed_) return;
  const auto lines =
      std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
  error_ = "not valid JSON: line " + std::to_string(lines + 1) + ", byte " + std::to_string(at_) +
           ": " + what;
  failed_ = true;
}

void Cursor::wrong_type(const char* wanted) {
  const char c = next();
  const char* got = c == '{'                  ? "an object"
                    : c == '['                ? "a list"
                    : c == '"'                ? "a string"
                    : c == 't' || c == 'f'    ? "a boolean"
                    : c == '-' || is_digit(c) ? "a number"
                                              : nullptr;
  if (got == nullptr) return broken("a value is missing");
  fail(std::string("must be ") + wanted + ", got " + got);
}

Status Cursor::finish() {
  if (!failed_ && next() != '\0') broken("something follows the value");
  if (!failed_ && at_ < text_.size()) broken("a zero byte");
  if (failed_) return invalid(error_);
  return ok_status();
}

bool Cursor::null() {
  if (next() != 'n') return false;
  if (text_.substr(at_, 4) != "null") {
    broken("an unknown word");
    return true;
  }
  at_ += 4;
  return true;
}

bool Cursor::open(char bracket, const char* what) {
  if (failed_ || null()) return false;
  if (next() != bracket) {
    wrong_type(what);
    return false;
  }
  if (depth_ >= kMaxJsonDepth) {
    broken("more than 64 levels");
    return false;
  }
  ++at_;
  path_[static_cast<std::size_t>(depth_++)] = {};
  return true;
}

bool Cursor::close(char bracket, bool first) {
  if (failed_) return true;
  const char c = next();
  if (c == bracket) {
    ++at_;
    --depth_;
    return true;
  }
  if (!first && c != ',') {
    broken(bracket == '}' ? "expected , or }" : "expected , or ]");
    return true;
  }
  if (!first) ++at_;
  blanks();  // so that a value begins where the cursor stands
  return false;
}

std::string_view Cursor::key(std::string& unescaped) {
  if (next() != '"') {
    broken("expected the name of a field");
    return {};
  }
  const std::size_t from = at_ + 1;
  std::size_t end = 0;
  bool escaped = false;
  if (!string_body(end, escaped)) return {};
  std::string_view name = text_.substr(from, end - from);
  if (escaped) {
    unescape(name, unescaped);
    name = unescaped;
  }
  if (next() != ':') {
    broken("expected :");
    return {};
  }
  ++at_;
  blanks();
  return name;
}

bool Cursor::string_body(std::size_t& end, bool& escaped) {
  escaped = false;
  for (std::size_t i = at_ + 1; i < text_.size(); ++i) {
    const char c = text_[i];
    if (c == '"') {
      end = i;
      at_ = i + 1;
      return true;
    }
    if (c == '\\') {
      escaped = true;
      ++i;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      at_ = i;
      broken("a control character inside a string");
      return false;
    }
  }
  broken("a string does not end");
  return false;
}

void Cursor::unescape(std::string_view body, std::string& out) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
  out.clear();
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\') {
      out.push_back(body[i]);
      continue;
    }
    ++i;
    if (const std::size_t known = kLetters.find(body[i]); known != std::string_view::npos) {
      out.push_back(kMeant[known]);
      continue;
    }
    const int code = body[i] == 'u' ? code_point(body, i) : -1;
    if (code <= 0) return broken("an escape that is not allowed inside a string");
    append_utf8(out, static_cast<unsigned>(code));
  }
}

void Cursor::read(std::string& out) {
  if (failed_ || null()) return;
  if (next() != '"') return wrong_type("a string");
  const std::size_t from = at_ + 1;
  std::size_t end = 0;
  bool escaped = false;
  if (!string_body(end, escaped)) return;
  if (escaped)
    unescape(text_.substr(from, end - from), out);
  else
    out.assign(text_.substr(from, end - from));
}

void Cursor::read(bool& out) {
  if (failed_ || null()) return;
  const char c = next();
  if (c != 't' && c != 'f') return wrong_type("true or false");
  const std::string_view word = c == 't' ? "true" : "false";
  if (text_.substr(at_, word.size()) != word) return broken("an unknown word");
  at_ += word.size();
  out = c == 't';
}

void Cursor::read(std::int64_t& out) {
  if (failed_ || null()) return;
  const char c = next();
  if (c != '-' && !is_digit(c)) return wrong_type("a whole number");
  std::int64_t value = 0;
  const char* const from = text_.data() + at_;
  const auto [end, error] = std::from_chars(from, text_.data() + text_.size(), value);
  if (error == std::errc::result_out_of_range) return fail("is out of range");
  if (error != std::errc{}) return broken("a broken number");
  const std::size_t stop = static_cast<std::size_t>(end - text_.data());
  if (stop < text_.size() && !ends_scalar(text_[stop])) return fail("must be a whole number");
  at_ = stop;
  out = value;
}

void Cursor::read(int& out) {
  std::int64_t wide = out;
  read(wide);
  if (failed_) return;
  if (!std::in_range<int>(wide)) return fail("is out of range");
  out = static_cast<int>(wide);
}

void Cursor::read(std::vector<std::string>& out) {
  array([&] { read(out.emplace_back()); });
}

void Cursor::read(Labels& out) {
  object([&](std::string_view name) {
    out.emplace_back(name, std::string());
    read(out.back().second);
  });
  const auto by_key = [](const auto& a, const auto& b) { return a.first < b.first; };
  if (!std::is_sorted(out.begin(), out.end(), by_key))
    std::stable_sort(out.begin(), out.end(), by_key);
  const auto same_key = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::adjacent_find(out.begin(), out.end(), same_key) == out.end()) return;
  Labels last;
  for (auto& label : out) {
    if (!last.empty() && last.back().first == label.first) last.pop_back();
    last.push_back(std::move(label));
  }
  out = std::move(last);
}

void Cursor::skip_scalar() {
  const std::size_t from = at_;
  while (at_ < text_.size() && !ends_scalar(text_[at_])) ++at_;
  const std::string_view word = text_.substr(from, at_ - from);
  if (word == "null" || word == "true" || word == "false" || is_number(word)) return;
  at_ = from;
  broken(word.empty() ? "a value is missing" : "an unknown word");
}

void Cursor::skip() {
  if (failed_) return;
  const char c = next();
  if (c == '"') {
    std::size_t end = 0;
    bool escaped = false;
    string_body(end, escaped);
  } else if (c == '{') {
    object([](std::string_view) {});
  } else if (c == '[') {
    array([] {});
  } else {
    skip_scalar();
  }
}

std::string_view Cursor::raw() {
  blanks();
  const std::size_t from = at_;
  skip();
  return failed_ ? std::string_view{} : text_.substr(from, at_ - from);
}

}  // namespace gs::kube
