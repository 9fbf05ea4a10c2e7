// tenants, usage: who may use how much, and who has.
#include <map>

#include <fmt/format.h>

#include "apps/gpu_cli/amounts.hpp"
#include "apps/gpu_cli/cli.hpp"

namespace gs::cli {
namespace {

struct Nothing {};

struct TenantFlags {
  std::string tenant;  // which one; empty: a new one
  std::optional<std::string> name, email, organization, tier;
  std::optional<std::int64_t> max_gpus, max_cpu_cores, max_jobs, max_queued, guaranteed,
      max_preemptions;
  std::optional<std::string> max_gpu_memory, max_memory;
  std::optional<double> weight, cost;
  std::optional<bool> allow_preemption, can_preempt;
  std::string file;
};

struct UsageFlags {
  std::string from, to;
};

template <typename T>
void set(Json& body, const char* field, const std::optional<T>& value) {
  if (value) body[field] = *value;
}

Result<Json> body_of(const TenantFlags& flags) {
  Json body = Json::object();
  set(body, "name", flags.name);
  set(body, "email", flags.email);
  set(body, "organization", flags.organization);
  set(body, "priority_tier", flags.tier);
  set(body, "max_gpus", flags.max_gpus);
  set(body, "max_cpu_cores", flags.max_cpu_cores);
  set(body, "max_concurrent_jobs", flags.max_jobs);
  set(body, "max_queued_jobs", flags.max_queued);
  set(body, "guaranteed_gpus", flags.guaranteed);
  set(body, "max_preemptions", flags.max_preemptions);
  set(body, "fair_share_weight", flags.weight);
  set(body, "cost_per_gpu_hour", flags.cost);
  set(body, "allow_preemption", flags.allow_preemption);
  set(body, "can_preempt_others", flags.can_preempt);
  for (const auto& [field, text] : {std::pair("max_gpu_memory_mb", &flags.max_gpu_memory),
                                    std::pair("max_memory_mb", &flags.max_memory)})
    if (*text) {
      const Result<std::int64_t> mib = parse_mib(**text);
      if (!mib) return mib.error();
      body[field] = *mib;
    }
  return body;
}

// What a new tenant gets where nothing is said: in proportion to its GPUs, and plenty.
void complete(Json& body) {
  const auto gpus = body.value("max_gpus", std::int64_t{10});
  const auto usual = [&](const char* field, std::int64_t amount) {
    if (!body.contains(field)) body[field] = amount;
  };
  usual("max_gpus", gpus);
  usual("max_gpu_memory_mb", gpus * (192 << 10));
  usual("max_cpu_cores", std::max<std::int64_t>(64, gpus * 32));
  usual("max_memory_mb", std::max<std::int64_t>(256 << 10, gpus * (256 << 10)));
  usual("max_concurrent_jobs", 100);
}

std::string of(const Json& tenant, const char* current, const char* limit) {
  return fmt::format("{}/{}", number_text(number_of(tenant, current)),
                     number_text(number_of(tenant, limit)));
}

std::string tenants_table(const Cli& cli, const Json& tenants) {
  std::vector<std::string> titles = {"TENANT ID", "NAME",    ">GPUS",     ">JOBS",
                                     "TIER",      ">WEIGHT", ">GPU HOURS"};
  if (cli.is_wide())
    titles.insert(titles.end(), {">CPUS", ">MEMORY", ">GPU MEMORY", ">GUARANTEED", ">DONE",
                                 ">FAILED", ">COST", "CREATED"});
  Table table(titles);
  for (const Json& tenant : tenants) {
    if (!tenant.value("active", true) && !cli.is_wide()) continue;
    std::vector<Cell> row = {text_of(tenant, "id"),
                             text_of(tenant, "name"),
                             of(tenant, "current_gpus", "max_gpus"),
                             of(tenant, "current_jobs", "max_concurrent_jobs"),
                             text_of(tenant, "priority_tier"),
                             number_text(number_of(tenant, "fair_share_weight")),
                             fmt::format("{:.2f}", number_of(tenant, "total_gpu_hours"))};
    if (cli.is_wide()) {
      row.emplace_back(of(tenant, "current_cpu_cores", "max_cpu_cores"));
      row.emplace_back(memory_text(number_of(tenant, "max_memory_mb")));
      row.emplace_back(memory_text(number_of(tenant, "max_gpu_memory_mb")));
      row.emplace_back(number_text(number_of(tenant, "guaranteed_gpus")));
      row.emplace_back(number_text(number_of(tenant, "successful_jobs")));
      row.emplace_back(number_text(number_of(tenant, "failed_jobs")));
      row.emplace_back(fmt::format("{:.2f}", number_of(tenant, "total_cost")));
      row.emplace_back(when(cli, tenant, "created_at", wall_clock()));
    }
    table.add(std::move(row));
  }
  return table.empty() ? "no tenants\n" : table.text(cli.colour());
}

Result<int> list(Cli& cli, Session& session, const Nothing&) {
  const Result<Json> answer = session.get("/api/v1/tenants");
  if (!answer) return answer.error();
  cli.show(*answer, [&] { return tenants_table(cli, list_of(*answer, "tenants")); });
  return 0;
}

std::string tenant_words(const Json& tenant) {
  std::string out;
  const auto line = [&](const char* title, const std::string& text) {
    if (!text.empty()) out += fmt::format("{:<18}{}\n", std::string(title) + ":", printable(text));
  };
  const auto memory = [&](const char* current, const char* limit) {
    return fmt::format("{} of {}", memory_text(number_of(tenant, current)),
                       memory_text(number_of(tenant, limit)));
  };
  line("Tenant ID", text_of(tenant, "id"));
  line("Name", text_of(tenant, "name"));
  line("Email", text_of(tenant, "email"));
  line("Organization", text_of(tenant, "organization"));
  line("Tier", text_of(tenant, "priority_tier"));
  line("Weight", number_text(number_of(tenant, "fair_share_weight")));
  line("GPUs", of(tenant, "current_gpus", "max_gpus"));
  line("Guaranteed GPUs", number_text(number_of(tenant, "guaranteed_gpus")));
  line("GPU memory", memory("current_gpu_memory_mb", "max_gpu_memory_mb"));
  line("CPU cores", of(tenant, "current_cpu_cores", "max_cpu_cores"));
  line("Memory", memory("current_memory_mb", "max_memory_mb"));
  line("Jobs", of(tenant, "current_jobs", "max_concurrent_jobs"));
  line("Jobs ever",
       fmt::format("{}, {} completed, {} failed", number_text(number_of(tenant, "total_jobs")),
                   number_text(number_of(tenant, "successful_jobs")),
                   number_text(number_of(tenant, "failed_jobs"))));
  line("GPU hours", fmt::format("{:.2f}", number_of(tenant, "total_gpu_hours")));
  line("Cost", fmt::format("{:.2f}", number_of(tenant, "total_cost")));
  return out;
}

Result<int> get(Cli& cli, Session& session, const TenantFlags& flags) {
  const Result<std::string> id = session.tenant_id(flags.tenant);
  if (!id) return id.error();
  const Result<Json> answer = session.get(path_of("tenants", *id));
  if (!answer) return answer.error();
  cli.show(*answer, [&] { return tenant_words(*answer); });
  return 0;
}

Result<int> create(Cli& cli, Session& session, const TenantFlags& flags) {
  Result<Json> body = body_of(flags);
  if (!body) return body.error();
  complete(*body);
  const Result<Json> answer = session.send("POST", "/api/v1/tenants", *body);
  if (!answer) return answer.error();
  cli.show(*answer, [&] {
    return "Tenant created successfully!\nTenant ID: " + text_of(*answer, "id") + "\n";
  });
  return 0;
}

Result<int> update(Cli& cli, Session& session, const TenantFlags& flags) {
  const Result<std::string> id = session.tenant_id(flags.tenant);
  if (!id) return id.error();
  const Result<Json> body = body_of(flags);
  if (!body) return body.error();
  if (body->empty()) return invalid("nothing to change: give flags such as --max-gpus");
  const Result<Json> answer = session.send("PATCH", path_of("tenants", *id), *body);
  if (!answer) return answer.error();
  cli.show(*answer, [&] { return tenant_words(*answer); });
  return 0;
}

Result<int> remove(Cli& cli, Session& session, const TenantFlags& flags) {
  const Result<std::string> id = session.tenant_id(flags.tenant);
  if (!id) return id.error();
  const Result<Json> answer = session.send("DELETE", path_of("tenants", *id));
  if (!answer) return answer.error();
  cli.show(*answer, [&] { return text_of(*answer, "message") + "\n"; });
  return 0;
}

// ---------------------------------------------------------------- usage

std::string usage_words(const Cli& cli, Session& session, const Json& answer) {
  struct Sum {
    double hours = 0, jobs = 0, cost = 0;
  };
  std::map<std::string, Sum> sums;
  for (const Json& row : list_of(answer, "usage")) {
    Sum& sum = sums[text_of(row, "tenant_id")];
    sum.hours += number_of(row, "gpu_hours");
    sum.jobs += number_of(row, "jobs_ended");
    sum.cost += number_of(row, "cost");
  }
  std::map<std::string, std::string> names;
  if (const Result<Json> tenants = session.get("/api/v1/tenants"))
    for (const Json& tenant : list_of(*tenants, "tenants"))
      names[text_of(tenant, "id")] = text_of(tenant, "name");
  Table table({"TENANT ID", "NAME", ">GPU HOURS", ">JOBS ENDED", ">COST"});
  const auto row = [&](const std::string& id, const std::string& name, const Sum& sum) {
    table.add({id, name, fmt::format("{:.2f}", sum.hours), number_text(sum.jobs),
               fmt::format("{:.2f}", sum.cost)});
  };
  Sum all;
  for (const auto& [id, sum] : sums) {
    row(id, names[id], sum);
    all = {all.hours + sum.hours, all.jobs + sum.jobs, all.cost + sum.cost};
  }
  if (sums.size() > 1) row("all", "", all);
  const auto from = time_of(answer, "from");
  const auto to = time_of(answer, "to");
  std::string head;
  if (from && to) head = fmt::format("{} to {}\n", date_text(*from), date_text(*to));
  return paint(head, Paint::Dim, cli.colour()) +
         (table.empty() ? "nothing was used\n" : table.text(cli.colour()));
}

Result<int> usage(Cli& cli, Session& session, const UsageFlags& flags) {
  std::string path = "/api/v1/usage";
  if (!cli.server.tenant.empty()) {
    const Result<std::string> id = session.tenant_id(cli.server.tenant);
    if (!id) return id.error();
    path = path_of("tenants", *id, "usage");
  }
  const Result<Json> answer =
      session.get(path + query_text({{"from", flags.from}, {"to", flags.to}}));
  if (!answer) return answer.error();
  cli.show(*answer, [&] { return usage_words(cli, session, *answer); });
  return 0;
}

void add_tenant_flags(CLI::App& command, TenantFlags& flags) {
  command.add_option("--max-gpus", flags.max_gpus, "GPUs at the same time (new: 10)");
  command.add_option("--max-gpu-memory", flags.max_gpu_memory, "(new: 192G for each GPU)");
  command.add_option("--max-cpus", flags.max_cpu_cores, "CPU cores (new: 32 for each GPU)");
  command.add_option("--max-memory", flags.max_memory, "Memory (new: 256G for each GPU)");
  command.add_option("--max-jobs", flags.max_jobs, "Jobs that run at the same time (new: 100)");
  command.add_option("--max-queued", flags.max_queued, "Jobs that wait (0: no bound)");
  command.add_option("--guaranteed-gpus", flags.guaranteed, "GPUs that it can count on");
  command.add_option("--priority,--tier", flags.tier, "low, medium, high or critical")
      ->type_name("TIER");
  command.add_option("--weight", flags.weight, "Its share where many wait (new: 1)");
  command.add_option("--allow-preemption", flags.allow_preemption, "Its jobs may be stopped")
      ->type_name("true|false");
  command.add_option("--can-preempt-others", flags.can_preempt, "It may stop jobs of others")
      ->type_name("true|false");
  command.add_option("--max-preemptions", flags.max_preemptions, "Of each job (0: no bound)");
  command.add_option("--cost-per-gpu-hour", flags.cost, "For the usage report");
  command.add_option("--email", flags.email, "Whom to ask");
  command.add_option("--organization", flags.organization, "Where it belongs");
}

void add_create(CLI::App& parent, Cli& cli, const char* name, const char* help) {
  auto flags = std::make_shared<TenantFlags>();
  CLI::App* command = parent.add_subcommand(name, help);
  command->add_option("--name", flags->name, "Name of the tenant")->required();
  add_tenant_flags(*command, *flags);
  on_chosen(*command, cli, flags, create);
}

}  // namespace

void add_tenants(CLI::App& app, Cli& cli) {
  CLI::App* tenants = app.add_subcommand("tenants", "List, create and change tenants");
  auto nothing = std::make_shared<Nothing>();
  on_chosen(*tenants->add_subcommand("list", "List tenants (what `tenants` alone does)"), cli,
            nothing, list);
  tenants->callback([tenants, &cli] {
    if (tenants->get_subcommands().empty())
      cli.command = [&cli](Session& session) { return list(cli, session, {}); };
  });
  add_create(*tenants, cli, "create", "Create a tenant");

  const auto add_one = [&](const char* name, const char* help, auto run, bool changes) {
    auto flags = std::make_shared<TenantFlags>();
    CLI::App* command = tenants->add_subcommand(name, help);
    command->add_option("tenant", flags->tenant, "Id or name of the tenant")->required();
    if (changes) {
      command->add_option("--name", flags->name, "A new name");
      add_tenant_flags(*command, *flags);
    }
    on_chosen(*command, cli, flags, +run);
  };
  add_one("get", "Everything about a tenant", get, false);
  add_one("update", "Change a tenant: only what is given", update, true);
  add_one("delete", "Delete a tenant without jobs", remove, false);
  add_create(app, cli, "create-tenant", "Create a tenant; the same as `tenants create`");
}

void add_usage(CLI::App& app, Cli& cli) {
  auto flags = std::make_shared<UsageFlags>();
  CLI::App* command = app.add_subcommand("usage", "GPU hours and cost by tenant");
  command->add_option("--from", flags->from, "Such as 2026-01-31T00:00:00Z (default: 30 days ago)");
  command->add_option("--to", flags->to, "(default: now)");
  on_chosen(*command, cli, flags, usage);
}

}  // namespace gs::cli
