#include "wire/job_json.hpp"

namespace gs {
namespace {

constexpr std::pair<const char*, ProcessState> kStates[] = {{"assigned", ProcessState::Assigned},
                                                            {"running", ProcessState::Running},
                                                            {"stopping", ProcessState::Stopping},
                                                            {"ended", ProcessState::Ended}};

const char* name_of(ProcessState state) {
  for (const auto& [name, value] : kStates)
    if (value == state) return name;
  return "?";
}

Json mig_json(const std::vector<MigPlace>& places) {
  Json list = Json::array();
  for (const MigPlace& place : places)
    list.push_back({{"gpu", place.gpu},
                    {"profile", place.profile},
                    {"start", place.start},
                    {"create", place.create}});
  return list;
}

Json process_json(const Process& process) {
  Json json{{"allocation_id", process.allocation},
            {"node", process.node},
            {"rank", process.rank},
            {"state", name_of(process.state)},
            {"gpus", process.gpus},
            {"gpu_ids", process.gpu_ids},
            {"since", process.since.ms}};
  Json tasks = Json::array();
  for (const auto& [group, rank] : process.tasks)
    tasks.push_back({{"group", group}, {"rank", rank}});
  json["tasks"] = std::move(tasks);
  if (!process.mig.empty()) json["mig"] = mig_json(process.mig);
  return json;
}

void read_process(ObjectReader& in, Process& process) {
  in.required("allocation_id", process.allocation);
  in.required("node", process.node);
  in.required("rank", process.rank);
  in.one_of("state", process.state, kStates);
  in.required("gpus", process.gpus);
  in.required("gpu_ids", process.gpu_ids);
  in.required("since", process.since.ms);
  in.array("tasks", [&](ObjectReader& task) {
    auto& [group, rank] = process.tasks.emplace_back();
    task.required("group", group);
    task.required("rank", rank);
  });
  in.array("mig", [&](ObjectReader& mig) {
    MigPlace& place = process.mig.emplace_back();
    mig.required("gpu", place.gpu);
    mig.required("profile", place.profile);
    mig.required("start", place.start);
    mig.required("create", place.create);
  });
}

}  // namespace

std::string encode_processes(const std::vector<Process>& processes) {
  Json list = Json::array();
  for (const Process& process : processes) list.push_back(process_json(process));
  return list.dump();
}

Result<std::vector<Process>> decode_processes(std::string_view text) {
  std::vector<Process> processes;
  if (text.empty()) return processes;
  Result<Json> list = parse_json(text);
  if (!list) return list.error();
  if (!list->is_array()) return invalid("processes must be an array");
  for (const Json& element : *list) {
    const std::string name = "processes[" + std::to_string(processes.size()) + "]";
    ObjectReader in(element, name);
    read_process(in, processes.emplace_back());
    if (Status s = in.finish(); !s) return s.error();
  }
  return processes;
}

}  // namespace gs
