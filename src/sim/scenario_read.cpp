#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "sim/scenario.hpp"

namespace gs::scenario {
namespace {

// What the lines so far have said, so that a second line about the same thing changes only what
// it names.
struct Said {
  Config config;
  WorldOptions world;
  std::map<std::string, Node> nodes;
  std::map<std::string, Tenant> tenants;
  int tenant_order = 0;
};

using What = decltype(Step::what);

class Reader {
 public:
  Status read(const std::vector<Block>& blocks) {
    for (const Block& block : blocks)
      if (Status s = read_block(block); !s) return s;
    if (cases_.empty()) open_case("", 1);
    return ok_status();
  }
  std::vector<ScenarioCase> take() { return std::move(cases_); }

 private:
  struct Verb {
    const char* name;
    Status (Reader::*read)(const Block&);
    std::size_t least_words;
    const char* usage;
  };
  static const std::vector<Verb>& verbs();

  Status read_block(const Block& block) {
    const Line& head = block.head;
    std::vector<std::string> known;
    for (const Verb& verb : verbs()) {
      known.emplace_back(verb.name);
      if (head.words[0].value != verb.name || head.words[0].pair()) continue;
      if (head.words.size() < verb.least_words)
        return at_line(head.number, fmt::format("write it as: {}", verb.usage));
      return (this->*verb.read)(block);
    }
    return at_line(head.number, unknown("line", head.words[0].value, known));
  }

  void add(const Block& block, What what) {
    auto& steps = cases_.empty() ? beginning_ : cases_.back().steps;
    steps.push_back({block.head.number, block.head.text, std::move(what)});
  }
  void open_case(std::string title, int line) {
    if (cases_.empty()) said_at_beginning_ = said_;
    said_ = said_at_beginning_;
    cases_.push_back({std::move(title), line, beginning_});
  }
  static const std::string& name(const Block& block) { return block.head.words[1].value; }

  Status read_case(const Block& block) {
    std::string title;
    for (std::size_t i = 1; i < block.head.words.size(); ++i)
      title += (i > 1 ? " " : "") + block.head.words[i].value;
    open_case(title, block.head.number);
    return ok_status();
  }
  Status read_config_line(const Block& block) {
    auto config = read_config(block, said_.config);
    if (!config) return config.error();
    said_.config = *config;
    add(block, Command{SetConfig{*config}});
    return ok_status();
  }
  Status read_world_line(const Block& block) {
    auto options = read_world(block, said_.world);
    if (!options) return options.error();
    said_.world = *options;
    add(block, SetWorld{*options});
    return ok_status();
  }
  Status read_topology(const Block& block) {
    SetTopology topology;
    for (std::size_t i = 1; i < block.head.words.size(); ++i)
      topology.levels.push_back(block.head.words[i].value);
    add(block, Command{topology});
    return ok_status();
  }
  Status read_node_line(const Block& block) {
    Node before;
    before.name = name(block);
    if (const auto known = said_.nodes.find(name(block)); known != said_.nodes.end())
      before = known->second;
    auto node = read_node(block, before);
    if (!node) return node.error();
    said_.nodes[node->name] = *node;
    add(block, Command{PutNode{*node}});
    return ok_status();
  }
  Status read_tenant_line(const Block& block) {
    Tenant before;
    before.id = before.name = name(block);
    if (const auto known = said_.tenants.find(name(block)); known != said_.tenants.end())
      before = known->second;
    else
      before.created_order = ++said_.tenant_order;
    auto tenant = read_tenant(block, before);
    if (!tenant) return tenant.error();
    said_.tenants[tenant->id] = *tenant;
    add(block, Command{PutTenant{*tenant}});
    return ok_status();
  }
  Status read_at(const Block& block) {
    std::string problem;
    const Instant t{Value(name(block), problem).duration().ms};
    if (!problem.empty()) return at_line(block.head.number, problem);
    add(block, AdvanceTo{t});
    return ok_status();
  }
  Status read_submit(const Block& block) {
    auto job = read_job(block);
    if (!job) return job.error();
    add(block, Submit{*job});
    return ok_status();
  }
  Status read_dry_run(const Block& block) {
    auto job = read_job(block);
    if (!job) return job.error();
    add(block, AskDryRun{job->job});
    return ok_status();
  }
  Status read_gpu(const Block& block) {
    auto report = read_gpu_report(block.head);
    if (!report) return report.error();
    std::string problem;
    const auto [node, ids] = Value(name(block), problem).split(':');
    const std::vector<int> gpus = Value(ids, problem).numbers();
    if (gpus.empty()) problem = fmt::format("'{}' is not node:gpus such as n1:0-3", name(block));
    if (!problem.empty()) return at_line(block.head.number, problem);
    for (const int gpu : gpus) add(block, Report{node, gpu, *report});
    return ok_status();
  }
  Status read_end(const Block& block) {
    std::string problem;
    EndTasks ends;
    const std::vector<std::string> path = Value(name(block), problem).list('/');
    ends.job = path.empty() ? "" : path[0];
    if (path.size() > 1) ends.rank = Value(path.back(), problem).integer();
    if (path.size() > 2) ends.group = Value(path[1], problem).integer();
    if (block.head.words.size() > 2)
      ends.outcome = Value(block.head.words[2].value, problem)
                         .one_of<Outcome>({{"succeeded", Outcome::Succeeded},
                                           {"failed", Outcome::Failed},
                                           {"node-lost", Outcome::NodeLost},
                                           {"stopped", Outcome::Stopped}});
    if (!problem.empty()) return at_line(block.head.number, problem);
    add(block, ends);
    return ok_status();
  }
  Status read_adopt(const Block& block) {
    std::string problem;
    AdoptTask adopt;
    const std::vector<std::string> path = Value(name(block), problem).list('/');
    adopt.task.job = path.empty() ? "" : path[0];
    if (path.size() > 1) adopt.task.rank = Value(path.back(), problem).integer();
    if (path.size() > 2) adopt.task.group = Value(path[1], problem).integer();
    const auto [node, ids] = Value(block.head.words[2].value, problem).split(':');
    adopt.node = ids.empty() ? block.head.words[2].value : node;
    adopt.gpus = Value(ids, problem).numbers();
    if (block.head.words.size() > 3)
      adopt.since = Instant{Value(block.head.words[3].value, problem).duration().ms};
    if (!problem.empty()) return at_line(block.head.number, problem);
    add(block, Command{adopt});
    return ok_status();
  }
  Status read_number(const Block& block) {
    std::string problem;
    const int number = Value(block.head.words[2].value, problem).integer();
    if (!problem.empty()) return at_line(block.head.number, problem);
    if (block.head.words[0].value == "priority")
      add(block, Command{SetPriority{name(block), number}});
    else
      add(block, Command{MembersArrived{name(block), number}});
    return ok_status();
  }
  Status read_plain(const Block& block) {
    const std::string& verb = block.head.words[0].value;
    const std::string& id = name(block);
    if (verb == "remove") add(block, Command{RemoveNode{id}});
    if (verb == "cordon") add(block, Command{CordonNode{id, true, false}});
    if (verb == "uncordon") add(block, Command{CordonNode{id, false, false}});
    if (verb == "drain") add(block, Command{CordonNode{id, true, true}});
    if (verb == "remove-tenant") add(block, Command{RemoveTenant{id}});
    if (verb == "cancel") add(block, Command{CancelJob{id}});
    if (verb == "hold") add(block, Command{HoldJob{id, true}});
    if (verb == "release") add(block, Command{HoldJob{id, false}});
    return ok_status();
  }
  Status read_settle(const Block& block) {
    add(block, Settle{});
    return ok_status();
  }
  Status read_expect_line(const Block& block) {
    auto expect = read_expect(block.head);
    if (!expect) return expect.error();
    add(block, *expect);
    return ok_status();
  }

  Said said_, said_at_beginning_;
  std::vector<Step> beginning_;
  std::vector<ScenarioCase> cases_;
};

const std::vector<Reader::Verb>& Reader::verbs() {
  static const std::vector<Verb> all = {
      {"case", &Reader::read_case, 2, "case what it shows"},
      {"config", &Reader::read_config_line, 2, "config key=value..."},
      {"world", &Reader::read_world_line, 2, "world key=value..."},
      {"topology", &Reader::read_topology, 2, "topology spine leaf"},
      {"node", &Reader::read_node_line, 2, "node n1 key=value..."},
      {"tenant", &Reader::read_tenant_line, 2, "tenant a key=value..."},
      {"at", &Reader::read_at, 2, "at 10m"},
      {"submit", &Reader::read_submit, 2, "submit j1 key=value..."},
      {"dry-run", &Reader::read_dry_run, 2, "dry-run j1 key=value..."},
      {"gpu", &Reader::read_gpu, 3, "gpu n1:0 unhealthy temperature=80"},
      {"end", &Reader::read_end, 2, "end j1/0 failed"},
      {"adopt", &Reader::read_adopt, 3, "adopt j1/0 n1:0-3 5m"},
      {"priority", &Reader::read_number, 3, "priority j1 900"},
      {"arrived", &Reader::read_number, 3, "arrived j1 3"},
      {"remove", &Reader::read_plain, 2, "remove n1"},
      {"cordon", &Reader::read_plain, 2, "cordon n1"},
      {"uncordon", &Reader::read_plain, 2, "uncordon n1"},
      {"drain", &Reader::read_plain, 2, "drain n1"},
      {"remove-tenant", &Reader::read_plain, 2, "remove-tenant a"},
      {"cancel", &Reader::read_plain, 2, "cancel j1"},
      {"hold", &Reader::read_plain, 2, "hold j1"},
      {"release", &Reader::read_plain, 2, "release j1"},
      {"settle", &Reader::read_settle, 1, "settle"},
      {"expect", &Reader::read_expect_line, 2, "expect j1 running"},
  };
  return all;
}

}  // namespace

Result<Scenario> read_scenario(const std::string& file, const std::string& text) {
  const auto located = [&](const Error& error) { return invalid(file + ":" + error.message); };
  auto blocks = read_blocks(text);
  if (!blocks) return located(blocks.error());
  Reader reader;
  if (Status s = reader.read(*blocks); !s) return located(s.error());
  return Scenario{file, reader.take()};
}

Result<Scenario> load_scenario(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return not_found(file + ": cannot be read");
  return read_scenario(file, text.str());
}

}  // namespace gs::scenario
