// Tables as people read them in a terminal: aligned columns, no borders, any script.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/colour.hpp"

namespace gs::cli {

// How many columns of a terminal a text takes: wide characters two, combining ones none.
std::size_t display_width(std::string_view text);
// What comes from elsewhere must not steer the terminal: control characters become '?', bytes
// that are no UTF-8 too.
std::string printable(std::string_view text);
// As much as fits into `width` columns, with an ellipsis where something was cut off.
std::string shortened(std::string_view text, std::size_t width);

struct Cell {
  Cell(std::string the_text, Paint the_paint = Paint::Plain)  // NOLINT(google-explicit-constructor)
      : text(std::move(the_text)), paint(the_paint) {}
  Cell(const char* the_text) : text(the_text) {}  // NOLINT(google-explicit-constructor)
  std::string text;
  Paint paint = Paint::Plain;
};

class Table {
 public:
  // A title that begins with '>' is of a column of numbers, aligned to the right.
  explicit Table(std::vector<std::string> titles);
  void add(std::vector<Cell> row);
  bool empty() const { return rows_.empty(); }
  std::string text(bool colour) const;

 private:
  std::vector<std::string> titles_;
  std::vector<bool> right_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace gs::cli
