#include "wire/node_json.hpp"

#include <algorithm>
#include <utility>

namespace gs {
namespace {

constexpr std::pair<const char*, Health> kHealth[] = {
    {"healthy", Health::Healthy}, {"unhealthy", Health::Unhealthy}, {"unknown", Health::Unknown}};
constexpr std::pair<const char*, TaintEffect> kEffects[] = {
    {"no_schedule", TaintEffect::NoSchedule},
    {"prefer_no_schedule", TaintEffect::PreferNoSchedule},
    {"no_execute", TaintEffect::NoExecute}};

template <typename E, std::size_t N>
const char* word_of(const std::pair<const char*, E> (&words)[N], E value) {
  for (const auto& [word, known] : words)
    if (known == value) return word;
  return words[0].first;
}

template <typename T>
Json object_of(const std::vector<std::pair<std::string, T>>& pairs) {
  Json json = Json::object();
  for (const auto& [key, value] : pairs) json[key] = value;
  return json;
}

Json gpu_json(const Gpu& gpu) {
  Json mig = Json::array();
  for (const MigInstance& instance : gpu.mig)
    mig.push_back({{"profile", instance.profile}, {"start", instance.start}});
  return {{"index", gpu.index},
          {"uuid", gpu.uuid},
          {"model", gpu.model},
          {"memory_mib", gpu.memory_mib},
          {"health", word_of(kHealth, gpu.health)},
          {"temperature_c", gpu.temperature_c},
          {"island", gpu.island},
          {"bandwidth_gbps", gpu.bandwidth_gbps},
          {"numa", gpu.numa},
          {"mig_enabled", gpu.mig_enabled},
          {"mig_dynamic", gpu.mig_dynamic},
          {"mig", std::move(mig)}};
}

void read_gpu(ObjectReader& in, Gpu& gpu) {
  in.required("index", gpu.index);
  in.optional("uuid", gpu.uuid);
  in.optional("model", gpu.model);
  in.optional("memory_mib", gpu.memory_mib);
  in.one_of("health", gpu.health, kHealth);
  in.optional("temperature_c", gpu.temperature_c);
  in.optional("island", gpu.island);
  in.optional("bandwidth_gbps", gpu.bandwidth_gbps);
  in.optional("numa", gpu.numa);
  in.optional("mig_enabled", gpu.mig_enabled);
  in.optional("mig_dynamic", gpu.mig_dynamic);
  in.array("mig", [&](ObjectReader& instance) {
    instance.required("profile", gpu.mig.emplace_back().profile);
    instance.optional("start", gpu.mig.back().start);
  });
}

void read_capacity(ObjectReader& in, Resources& capacity) {
  in.optional("cpu_milli", capacity.cpu_milli);
  in.optional("memory_bytes", capacity.memory_bytes);
  in.array("named", [&](ObjectReader& item) {
    item.required("name", capacity.named.emplace_back().name);
    item.required("amount", capacity.named.back().amount);
  });
}

void read_fabric(ObjectReader& in, Fabric& fabric) {
  in.optional("rdma_ports", fabric.rdma_ports);
  in.optional("rdma_gbps", fabric.rdma_gbps);
  in.optional("gpudirect_rdma", fabric.gpudirect_rdma);
  in.optional("cufile", fabric.cufile);
}

void read_taint(ObjectReader& in, Taint& taint) {
  in.required("key", taint.key);
  in.optional("value", taint.value);
  in.one_of("effect", taint.effect, kEffects);
}

}  // namespace

Json node_json(const Node& node) {
  Json named = Json::array(), gpus = Json::array(), taints = Json::array();
  for (const NamedAmount& item : node.capacity.named)
    named.push_back({{"name", item.name}, {"amount", item.amount}});
  for (const Gpu& gpu : node.gpus) gpus.push_back(gpu_json(gpu));
  for (const Taint& taint : node.taints)
    taints.push_back(
        {{"key", taint.key}, {"value", taint.value}, {"effect", word_of(kEffects, taint.effect)}});
  return {{"name", node.name},
          {"capacity",
           {{"cpu_milli", node.capacity.cpu_milli},
            {"memory_bytes", node.capacity.memory_bytes},
            {"named", std::move(named)}}},
          {"gpus", std::move(gpus)},
          {"peer_bandwidth_gbps", node.peer_bandwidth_gbps},
          {"labels", object_of(node.labels)},
          {"taints", std::move(taints)},
          {"domain", node.domain},
          {"fabric",
           {{"rdma_ports", node.fabric.rdma_ports},
            {"rdma_gbps", node.fabric.rdma_gbps},
            {"gpudirect_rdma", node.fabric.gpudirect_rdma},
            {"cufile", node.fabric.cufile}}},
          {"ready", node.ready},
          {"cordoned", node.cordoned}};
}

Result<Node> read_node(const Json& json) {
  Node node;
  ObjectReader in(json);
  in.required("name", node.name);
  in.object("capacity", [&](ObjectReader& inner) { read_capacity(inner, node.capacity); });
  in.array("gpus", [&](ObjectReader& inner) { read_gpu(inner, node.gpus.emplace_back()); });
  in.optional("peer_bandwidth_gbps", node.peer_bandwidth_gbps);
  in.optional("labels", node.labels);
  in.array("taints", [&](ObjectReader& inner) { read_taint(inner, node.taints.emplace_back()); });
  in.optional("domain", node.domain);
  in.object("fabric", [&](ObjectReader& inner) { read_fabric(inner, node.fabric); });
  in.optional("ready", node.ready);
  in.optional("cordoned", node.cordoned);
  if (const Status status = in.finish(); !status) return status.error();
  if (const Status status = validate(node); !status) return status.error();
  return node;
}

}  // namespace gs
