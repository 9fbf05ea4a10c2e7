// Keeps the service's Figures: what each turn told, and the cluster as it is when they are read.
#pragma once

#include <mutex>

#include "service/figures.hpp"
#include "service/service.hpp"

namespace gs {

class FiguresKeeper {
 public:
  explicit FiguresKeeper(Service& service) : service_(service) {}

  void note(const TurnFigures& turn);  // from the writer's thread
  Figures figures() const;

 private:
  Service& service_;
  mutable std::mutex mutex_;
  Figures kept_;
};

}  // namespace gs
