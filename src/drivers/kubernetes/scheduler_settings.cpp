// What administrators say to the scheduler while it runs: its configuration, and disruption
// budgets.
#include <tuple>
#include <utility>

#include "drivers/kubernetes/object_change.hpp"
#include "drivers/kubernetes/scheduler.hpp"
#include "wire/json_reader.hpp"
#include "wire/kube/names.hpp"

namespace gs::kube {
namespace {

ObjectReference reference(const ObjectChange& change, std::string api, std::string kind) {
  return {std::move(api),           std::move(kind),         std::string(change.name_space),
          std::string(change.name), std::string(change.uid), std::string(change.resource_version)};
}

}  // namespace

void Scheduler::follow_budgets() {
  const Resource budgets{"policy", "v1", "poddisruptionbudgets", true};
  follow(budgets, {}, {}, [this](const ObjectChange& change) {
    const std::string key = std::string(change.name_space) + "/" + std::string(change.name);
    if (is_end(change)) return post([this, key] { desk_.remove_budget(key); });
    Result<PodDisruptionBudget> budget = decode_disruption_budget(change.object);
    if (!readable(budget, change, "PodDisruptionBudget")) return;
    post([this, budget = std::move(*budget)] { desk_.put(budget); });
  });
}

void Scheduler::follow_config() {
  const std::vector<std::tuple<const char*, const char*, ConfigSource>> kinds = {
      {"schedulerconfigs", "SchedulerConfig", ConfigSource::SchedulerConfig},
      {"topologyschedulerconfigs", "TopologySchedulerConfig",
       ConfigSource::TopologySchedulerConfig}};
  for (const auto& [plural, kind, source] : kinds)
    follow(
        {"topology.scheduler", "v1alpha1", plural, false}, {}, {},
        [this, kind = kind, source = source](const ObjectChange& change) {
          if (change.name != kConfigName) return;
          if (is_end(change)) return post([this, source] { drop_config(source); });
          // Objects of lists have no kind and apiVersion.
          Result<Json> json = parse_json(std::string(change.object));
          if (json && json->is_object()) {
            (*json)["apiVersion"] = kTopologyApi;
            (*json)["kind"] = kind;
          }
          const Result<SchedulerConfig> config =
              json ? decode_scheduler_config(json->dump()) : Result<SchedulerConfig>(json.error());
          post([this, source, config, object = reference(change, kTopologyApi, kind)] {
            take_config(source, object, config);
          });
        },
        Need::IfServed);
  follow_config_map(options_.config.lease_namespace, ConfigSource::OwnConfigMap);
  if (options_.config.lease_namespace != "kube-system")
    follow_config_map("kube-system", ConfigSource::SystemConfigMap);
}

void Scheduler::follow_config_map(const std::string& ns, ConfigSource source) {
  follow(
      {"", "v1", "configmaps", true}, ns, {},
      [this, source](const ObjectChange& change) {
        if (is_end(change)) return post([this, source] { drop_config(source); });
        const Result<SchedulerConfig> config = scheduler_config_of_map(change.object);
        post([this, source, config, object = reference(change, "v1", "ConfigMap")] {
          take_config(source, object, config);
        });
      },
      Need::Always, kConfigName);
}

void Scheduler::take_config(ConfigSource source, const ObjectReference& object,
                            const Result<SchedulerConfig>& config) {
  const std::string error = config ? std::string{} : config.error().message;
  if (!config)
    log_warn("a configuration is wrong; the one before it stays in force",
             {{"kind", object.kind}, {"name", object.name}, {"error", error}});
  if (live_config_.put(source, config)) apply_config();
  configs_[source] = {object, error, {}};
  say_configs();
}

void Scheduler::drop_config(ConfigSource source) {
  configs_.erase(source);
  if (live_config_.remove(source)) apply_config();
  say_configs();
}

// One object's change may be news of the others: of whom it outranks, or outranked.
void Scheduler::say_configs() {
  if (!leads_) return;
  for (auto& [source, config] : configs_) {
    const bool is_good = config.error.empty();
    const ConfigStanding standing =
        is_good ? live_config_.standing(source) : ConfigStanding{false, config.error};
    const std::string before = std::exchange(config.told, standing.words);
    if (before == standing.words) continue;
    api_.loop().post([this, is_good, standing, before, object = config.object] {
      if (teller_ != nullptr) write_config_words(object, is_good, standing, before);
    });
  }
}

void Scheduler::apply_config() {
  const SchedulerConfig config = live_config_.in_force();
  std::vector<std::string> levels;
  for (const TopologyLevel& level : config.levels) levels.push_back(level.name);
  if (const Status taken = desk_.configure(config.engine, std::move(levels), config.scheduler_names,
                                           config.device_naming);
      !taken) {
    log_warn("the engine does not take a configuration", {{"error", taken.error().message}});
    return;
  }
  for (SharedNode& node : objects_.set_config(config)) put_node(std::move(node));
  log_info("another configuration is in force", {{"device_naming", word_of(config.device_naming)}});
}

// On the loop. Whoever wrote it reads there whether it holds.
void Scheduler::write_config_words(const ObjectReference& object, bool is_good,
                                   const ConfigStanding& standing, const std::string& before) {
  const char* reason = !is_good            ? "ConfigurationRefused"
                       : standing.in_force ? "ConfigurationTaken"
                                           : "ConfigurationOutranked";
  // The same words about the same object are one event.
  const std::string since = before.empty() ? "" : "; it was " + before;
  teller_->note_about(object, !is_good, reason, standing.words + since);
  if (object.kind != "ConfigMap")
    teller_->tell_config(object, {is_good, standing.in_force, standing.words});
}

}  // namespace gs::kube
