#include "wire/json_reader.hpp"

#include <algorithm>
#include <limits>

#include "base/check.hpp"
#include "base/nearest_word.hpp"

namespace gs {
namespace {

// Builds the value; stops at what parse_json refuses.
class Builder {
 public:
  explicit Builder(Json& root) : root_(root) {}
  const std::string& problem() const { return problem_; }

  bool null() { return put(Json(nullptr)); }
  bool boolean(bool value) { return put(Json(value)); }
  bool number_integer(std::int64_t value) { return put(Json(value)); }
  bool number_unsigned(std::uint64_t value) { return put(Json(value)); }
  bool number_float(double value, const std::string&) { return put(Json(value)); }
  bool string(std::string& value) { return no_zero(value) && put(Json(std::move(value))); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    if (!no_zero(name)) return false;
    auto& fields = open_.back()->get_ref<Json::object_t&>();
    const auto [place, is_new] = fields.emplace(std::move(name), nullptr);
    if (!is_new) return stop("field '" + place->first + "' is given twice");
    slot_ = &place->second;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const Json::exception& error) {
    const std::string_view text = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ..."
    const std::size_t at = text.find("parse error");
    return stop(at == std::string_view::npos ? "error at byte " + std::to_string(position)
                                             : std::string(text.substr(at)));
  }

 private:
  Json* place(Json&& value) {
    if (open_.empty()) return &(root_ = std::move(value));
    if (open_.back()->is_array()) {
      auto& elements = open_.back()->get_ref<Json::array_t&>();
      elements.push_back(std::move(value));
      return &elements.back();
    }
    return &(*slot_ = std::move(value));
  }
  bool put(Json&& value) {
    place(std::move(value));
    return true;
  }
  bool open(Json&& value) {
    if (open_.size() >= kMaxJsonDepth)
      return stop("more than " + std::to_string(kMaxJsonDepth) + " levels");
    open_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  bool no_zero(const std::string& text) {
    if (text.find('\0') == std::string::npos) return true;
    return stop("the character U+0000 is not allowed");
  }
  bool stop(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  Json& root_;
  std::vector<Json*> open_;
  Json* slot_ = nullptr;  // of the last key
  std::string problem_;
};

template <typename Integer>
bool to_integer(const Json& value, Integer& out) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<Integer>::max())) return false;
    out = static_cast<Integer>(number);
    return true;
  }
  if (!value.is_number_integer()) return false;
  const auto number = value.get<std::int64_t>();
  if (!std::in_range<Integer>(number)) return false;
  out = static_cast<Integer>(number);
  return true;
}

std::string integer_rule(const Json& value) {
  if (value.is_number_integer()) return "is out of range";
  return std::string("must be a whole number, got ") +
         (value.is_number() ? "a fraction" : value.type_name());
}

}  // namespace

Result<Json> parse_json(std::string_view text) {
  Json json;
  Builder builder(json);
  if (Json::sax_parse(text.begin(), text.end(), &builder)) return json;
  return invalid("not valid JSON: " + builder.problem());
}

ObjectReader::ObjectReader(const Json& json, std::string_view name) : name_(name) {
  if (json.is_object())
    fields_ = json.get_ptr<const Json::object_t*>();
  else
    fail({}, std::string("must be an object, got ") + json.type_name());
}

ObjectReader::ObjectReader(ObjectReader& parent, const char* field, int index, const Json& json)
    : parent_(&parent), root_(parent.root_), name_(field), index_(index) {
  if (json.is_object())
    fields_ = json.get_ptr<const Json::object_t*>();
  else
    fail({}, std::string("must be an object, got ") + json.type_name());
}

bool ObjectReader::has(const char* field) const {
  if (fields_ == nullptr) return false;
  const auto it = fields_->find(field);
  return it != fields_->end() && !it->second.is_null();
}

const Json* ObjectReader::find(const char* field) {
  CHECK(asked_count_ < kMaxFields);
  asked_[asked_count_++] = field;
  if (fields_ == nullptr || failed()) return nullptr;
  const auto it = fields_->find(field);
  if (it == fields_->end()) return nullptr;
  ++given_;
  return it->second.is_null() ? nullptr : &it->second;
}

std::string ObjectReader::path() const {
  std::string path = parent_ == nullptr ? "" : parent_->path();
  if (!path.empty() && !name_.empty()) path += '.';
  path += name_;
  if (index_ >= 0) path += '[' + std::to_string(index_) + ']';
  return path;
}

void ObjectReader::fail(std::string_view field, std::string_view rule) {
  if (failed()) return;
  std::string where = path();
  if (!where.empty() && !field.empty()) where += '.';
  where += field;
  root_->error_ = where.empty() ? "the body" : std::move(where);
  root_->error_.append(" ").append(rule);
  root_->error_set_ = true;
}

void ObjectReader::close() {
  if (failed() || fields_ == nullptr || given_ == fields_->size()) return;
  const std::vector<const char*> known(asked_.begin(), asked_.begin() + asked_count_);
  for (const auto& [name, value] : *fields_) {
    if (std::any_of(known.begin(), known.end(), [&](const char* k) { return name == k; })) continue;
    const std::string_view meant = nearest_word(name, known);
    const std::string where = path();
    root_->error_ = "unknown field '" + (where.empty() ? "" : where + ".") + name + "'";
    if (!meant.empty()) root_->error_.append("; did you mean '").append(meant).append("'?");
    root_->error_set_ = true;
    return;
  }
}

Status ObjectReader::finish() {
  close();
  if (failed()) return invalid(root_->error_);
  return ok_status();
}

bool ObjectReader::is_array(const char* field, const Json& value) {
  if (value.is_array()) return true;
  fail(field, std::string("must be a list, got ") + value.type_name());
  return false;
}

bool ObjectReader::read(const char* field, const Json& value, std::string& out) {
  const auto* text = value.get_ptr<const std::string*>();
  if (text == nullptr) {
    fail(field, std::string("must be a string, got ") + value.type_name());
    return false;
  }
  out = *text;
  return true;
}

bool ObjectReader::read(const char* field, const Json& value, bool& out) {
  if (!value.is_boolean()) {
    fail(field, std::string("must be true or false, got ") + value.type_name());
    return false;
  }
  out = value.get<bool>();
  return true;
}

bool ObjectReader::read(const char* field, const Json& value, int& out) {
  if (to_integer(value, out)) return true;
  fail(field, integer_rule(value));
  return false;
}

bool ObjectReader::read(const char* field, const Json& value, std::int64_t& out) {
  if (to_integer(value, out)) return true;
  fail(field, integer_rule(value));
  return false;
}

bool ObjectReader::read(const char* field, const Json& value, std::uint64_t& out) {
  if (to_integer(value, out)) return true;
  fail(field, value.is_number_integer() ? "must not be negative" : integer_rule(value));
  return false;
}

bool ObjectReader::read(const char* field, const Json& value, double& out) {
  if (!value.is_number()) {
    fail(field, std::string("must be a number, got ") + value.type_name());
    return false;
  }
  out = value.get<double>();
  return true;
}

bool ObjectReader::read(const char* field, const Json& value, std::vector<std::string>& out) {
  if (!is_array(field, value)) return false;
  out.clear();
  for (const Json& element : value) {
    const auto* text = element.get_ptr<const std::string*>();
    if (text == nullptr) {
      fail(std::string(field) + "[" + std::to_string(out.size()) + "]", "must be a string");
      return false;
    }
    out.push_back(*text);
  }
  return true;
}

bool ObjectReader::read(const char* field, const Json& value, std::vector<int>& out) {
  if (!is_array(field, value)) return false;
  out.clear();
  for (const Json& element : value) {
    int number = 0;
    if (!to_integer(element, number)) {
      fail(std::string(field) + "[" + std::to_string(out.size()) + "]", integer_rule(element));
      return false;
    }
    out.push_back(number);
  }
  return true;
}

bool ObjectReader::read(const char* field, const Json& value,
                        std::vector<std::pair<std::string, std::string>>& out) {
  const auto* fields = value.get_ptr<const Json::object_t*>();
  if (fields == nullptr) {
    fail(field, std::string("must be an object of strings, got ") + value.type_name());
    return false;
  }
  out.clear();
  for (const auto& [name, element] : *fields) {
    const auto* text = element.get_ptr<const std::string*>();
    if (text == nullptr) {
      fail(field + ("." + name), "must be a string");
      return false;
    }
    out.emplace_back(name, *text);
  }
  return true;
}

bool ObjectReader::read(const char* field, const Json& value,
                        std::vector<std::pair<std::string, std::int64_t>>& out) {
  const auto* fields = value.get_ptr<const Json::object_t*>();
  if (fields == nullptr) {
    fail(field, std::string("must be an object of numbers, got ") + value.type_name());
    return false;
  }
  out.clear();
  for (const auto& [name, element] : *fields) {
    std::int64_t number = 0;
    if (!to_integer(element, number)) {
      fail(field + ("." + name), integer_rule(element));
      return false;
    }
    out.emplace_back(name, number);
  }
  return true;
}

}  // namespace gs
