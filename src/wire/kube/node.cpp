#include "wire/kube/node.hpp"

#include <utility>

#include "wire/kube/condition.hpp"

namespace gs::kube {
namespace {

void read_taint(Cursor& in, std::vector<Taint>& taints) {
  Taint taint;
  std::string effect;
  in.object([&](std::string_view field) {
    if (field == "key") in.read(taint.key);
    if (field == "value") in.read(taint.value);
    if (field == "effect") in.read(effect);
  });
  if (effect == "NoSchedule")
    taint.effect = TaintEffect::NoSchedule;
  else if (effect == "PreferNoSchedule")
    taint.effect = TaintEffect::PreferNoSchedule;
  else if (effect == "NoExecute")
    taint.effect = TaintEffect::NoExecute;
  else
    return;
  taints.push_back(std::move(taint));
}

void read_condition(Cursor& in, Node& node) {
  Condition condition = read_condition(in);
  if (condition.type != "Ready") return;
  node.ready = condition.status == "True";
  node.ready_reason = std::move(condition.reason);
  node.ready_message = std::move(condition.message);
}

void read_status(Cursor& in, Node& node) {
  in.object([&](std::string_view field) {
    if (field == "allocatable") read(in, node.allocatable);
    if (field == "conditions") in.array([&] { read_condition(in, node); });
  });
}

}  // namespace

Result<Node> decode_node(std::string_view text) {
  Node node;
  Cursor in(text);
  in.object([&](std::string_view field) {
    if (field == "metadata") read(in, node.meta);
    if (field == "spec")
      in.object([&](std::string_view inner) {
        if (inner == "unschedulable") in.read(node.unschedulable);
        if (inner == "taints") in.array([&] { read_taint(in, node.taints); });
      });
    if (field == "status") read_status(in, node);
  });
  if (const Status status = in.finish(); !status) return status.error();
  if (node.meta.name.empty()) return invalid("metadata.name is required");
  return node;
}

}  // namespace gs::kube
