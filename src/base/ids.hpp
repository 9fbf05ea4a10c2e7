// Strong ids: dense indexes into the tables of one engine, never mixed up with each other.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace gs {

template <typename Tag>
struct Id {
  static constexpr std::uint32_t kNone = 0xffffffffU;
  std::uint32_t v = kNone;

  constexpr Id() = default;
  constexpr explicit Id(std::size_t index) : v(static_cast<std::uint32_t>(index)) {}
  constexpr bool valid() const { return v != kNone; }
  constexpr std::size_t index() const { return v; }
  constexpr auto operator<=>(const Id&) const = default;
};

using NodeId = Id<struct NodeTag>;
using DomainId = Id<struct DomainTag>;
using TenantId = Id<struct TenantTag>;
using JobId = Id<struct JobTag>;
using TaskId = Id<struct TaskTag>;
using ShapeId = Id<struct ShapeTag>;        // interned TaskRequest
using JobShapeId = Id<struct JobShapeTag>;  // interned group structure of a job
using ModelId = Id<struct ModelTag>;        // interned GPU model name

}  // namespace gs

template <typename Tag>
struct std::hash<gs::Id<Tag>> {
  std::size_t operator()(gs::Id<Tag> id) const noexcept { return id.v; }
};
