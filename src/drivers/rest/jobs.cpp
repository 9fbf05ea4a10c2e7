// Jobs: submitting (one, many, arrays, dry), looking, changing.
#include <charconv>

#include "base/hash.hpp"
#include "drivers/rest/bodies.hpp"
#include "drivers/rest/impl.hpp"
#include "net/error_codes.hpp"
#include "wire/clock_json.hpp"
#include "wire/job_json.hpp"
#include "wire/json_text.hpp"

namespace gs {
namespace {

constexpr int kMaxPage = 1000;

JsonText& put_submitted(JsonText& out, std::int64_t seq) {
  out.field("job_id", job_id(seq)).field("status", "submitted");
  return out.field("message", "Job submitted successfully");
}

Status read_states(const std::string& list, std::vector<RunState>& states) {
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string word = list.substr(at, end - at);
    const auto state = run_state_of(word);
    if (!state)
      return invalid(
          "state must be of pending, scheduled, running, completed, failed, cancelled, "
          "preempted; got '" +
          word + "'");
    states.push_back(*state);
    at = end + 1;
  }
  return ok_status();
}

Status read_sort(const std::string& text, JobQuery& query) {
  std::string_view name = text;
  query.descending = name.starts_with('-');
  if (query.descending) name.remove_prefix(1);
  if (name == "submitted_at")
    query.sort = JobSort::Submitted;
  else if (name == "priority")
    query.sort = JobSort::Priority;
  else if (name == "name")
    query.sort = JobSort::Name;
  else
    return invalid(
        "sort must be submitted_at, priority or name, with '-' before it to turn it "
        "round; got '" +
        text + "'");
  return ok_status();
}

Result<JobQuery> job_query(const HttpRequest& request) {
  JobQuery query;
  Result<std::int64_t> limit = number_of(request, "limit", 50, 1, kMaxPage);
  if (!limit) return limit.error();
  query.limit = static_cast<int>(*limit);
  Result<std::int64_t> offset = number_of(request, "offset", 0, 0, 1'000'000'000);
  if (!offset) return offset.error();
  query.offset = *offset;
  for (const auto& [key, value] : request.query) {
    Status status = ok_status();
    if (key == "tenant_id")
      query.tenant = value;
    else if (key == "state")
      status = read_states(value, query.states);
    else if (key == "name")
      query.name = value;
    else if (key == "array_id")
      query.array_id = value;
    else if (key == "cursor")
      query.cursor = value;
    else if (key == "sort")
      status = read_sort(value, query);
    else if (key == "label") {
      const std::size_t equals = value.find('=');
      if (equals == std::string::npos || equals == 0)
        status = invalid("label must be KEY=VALUE, got '" + value + "'");
      else
        set_label(query.labels, value.substr(0, equals), value.substr(equals + 1));
    }
    if (!status) return status.error();
  }
  return query;
}

// What an array's jobs are told by the service is not for callers to say.
Result<JobSpec> submitted_job(const Json& json, int default_priority) {
  if (json.is_object())
    for (const char* field : {"array_index", "array_id"})
      if (json.contains(field))
        return invalid(std::string(field) + " is given by the service; ask for `array`");
  return decode_job(json, default_priority);
}

Result<JobSpec> parse_submitted_job(std::string_view body, int default_priority) {
  Result<Json> json = parse_json(body);
  if (!json) return json.error();
  return submitted_job(*json, default_priority);
}

// Jobs of others can't be waited for: whether they exist is not for this caller to know.
Status may_wait_for(Desk& desk, const JobSpec& spec, const Caller& caller) {
  for (const Dependency& dependency : spec.depends_on) {
    const auto seq = job_seq(dependency.job);
    if (!seq) continue;  // refused when it is submitted
    Result<std::optional<std::string>> tenant = desk.tenant_of(*seq);
    if (!tenant) return tenant.error();
    if (*tenant && !may_see(caller, **tenant))
      return not_found("depends_on: job " + dependency.job + " does not exist");
  }
  return ok_status();
}

Result<Answered> submit_to(Desk& desk, const JobSpec& spec, const Caller& caller) {
  if (Status s = may_wait_for(desk, spec, caller); !s) return s.error();
  JsonText out;
  out.open('{');
  if (spec.array_size == 0) {
    Result<std::int64_t> job = desk.submit(spec);
    if (!job) return job.error();
    put_submitted(out, *job);
  } else {
    Result<std::vector<std::int64_t>> jobs = desk.submit_array(spec);
    if (!jobs) return jobs.error();
    put_submitted(out, jobs->front()).field("array_id", job_id(jobs->front()));
    out.key("job_ids").open('[');
    for (const std::int64_t job : *jobs) out.value(job_id(job));
    out.close(']');
  }
  return Answered{201, out.close('}').take()};
}

Answered submit_all(Desk& desk, const std::vector<Result<JobSpec>>& specs, const Caller& caller) {
  JsonText out(specs.size() * 64 + 64);
  out.open('{').key("jobs").open('[');
  std::size_t accepted = 0;
  for (const Result<JobSpec>& spec : specs) {
    Result<std::int64_t> job = spec ? Result<std::int64_t>(0) : spec.error();
    if (spec)
      if (Status s = may_wait_for(desk, *spec, caller); !s) job = s.error();
    if (job) job = desk.submit(*spec);
    accepted += job.ok();
    out.open('{');
    if (job)
      out.field("job_id", job_id(*job)).field("status", "submitted");
    else
      out.field("error", job.error().message).field("code", outside_code(job.error().code).http);
    out.close('}');
  }
  out.close(']').field("accepted", accepted).field("rejected", specs.size() - accepted);
  const int status = accepted == specs.size() ? 201 : accepted > 0 ? 207 : 422;
  return {status, out.close('}').take()};
}

// As it is kept for an Idempotency-Key: the status stands before the body where it is not 201.
constexpr std::string_view kInPart = "207 ";

std::string text_of(const Answered& answer) {
  return answer.status == 201 ? answer.body : std::string(kInPart) + answer.body;
}

Answered answer_of(const std::string& text) {
  if (!text.starts_with(kInPart)) return {201, text};
  return {207, text.substr(kInPart.size())};
}

// A list contains only what the caller may see.
Status narrow(const Caller& caller, std::string& tenant) {
  const auto only = only_tenant(caller);
  if (!only) return ok_status();
  if (!tenant.empty() && tenant != *only) return may_see(caller, tenant);
  tenant = *only;
  return ok_status();
}

}  // namespace

Result<std::int64_t> number_of(const HttpRequest& request, const char* name, std::int64_t usual,
                               std::int64_t low, std::int64_t high) {
  const std::string* text = request.parameter(name);
  if (text == nullptr) return usual;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || end != text->data() + text->size() || value < low || value > high)
    return invalid(std::string(name) + " must be a whole number, " + std::to_string(low) + ".." +
                   std::to_string(high));
  return value;
}

Result<bool> flag_of(const HttpRequest& request, const char* name) {
  const std::string* text = request.parameter(name);
  if (text == nullptr || *text == "false") return false;
  if (*text == "true") return true;
  return invalid(std::string(name) + " must be true or false, got '" + *text + "'");
}

// ---------------------------------------------------------------- submitting

void Rest::Impl::submit_job(const CallPtr& call) {
  Result<bool> dry = flag_of(call->request(), "dry_run");
  if (!dry) return fail(*call, dry.error());
  Result<JobSpec> spec = parse_submitted_job(call->request().body(), options.default_priority);
  if (!spec) return fail(*call, spec.error());
  if (Status s = may_submit_for(call->caller, spec->tenant_id); !s) return fail(*call, s.error());
  if (*dry) return dry_run(call, *spec);
  const auto shared = std::make_shared<const JobSpec>(std::move(*spec));
  submit_once(call, shared->tenant_id,
              [shared, call](Desk& desk) { return submit_to(desk, *shared, call->caller); });
}

void Rest::Impl::submit_once(const CallPtr& call, const std::string& tenant, Submit submit) {
  const std::string key(call->request().header("Idempotency-Key"));
  if (key.size() > 255) return fail(*call, invalid("Idempotency-Key must have at most 255 bytes"));
  const std::uint64_t hash = key.empty() ? 0
                                         : Hash{}
                                               .add(std::string_view(call->route))
                                               .add(std::string_view(call->request().body()))
                                               .value();
  write(
      call,
      [this, key, hash, tenant, submit = std::move(submit)](Desk& desk) -> Result<Answered> {
        if (key.empty()) return submit(desk);
        Result<std::optional<KeyRow>> known = desk.recall(parts.store, tenant, key);
        if (!known) return known.error();
        if (*known && (*known)->body_hash != hash)
          return Error{ErrorCode::Conflict,
                       "Idempotency-Key '" + key + "' was used for another request already"};
        if (*known) return answer_of((*known)->answer);
        Result<Answered> answer = submit(desk);
        // Of what was refused as a whole nothing has been done: it may be tried again.
        if (answer && answer->status < 400)
          desk.remember({tenant, key, hash, text_of(*answer), desk.now()});
        return answer;
      },
      [this, call](Answered& answer) { reply_text(*call, answer.status, std::move(answer.body)); });
}

void Rest::Impl::submit_batch(const CallPtr& call) {
  Result<Json> body = parse_json(call->request().body());
  if (!body) return fail(*call, body.error());
  ObjectReader in(*body);
  const Json* list = in.value("jobs");
  if (Status s = in.finish(); !s) return fail(*call, s.error());
  if (list == nullptr || !list->is_array() || list->empty() || list->size() > options.max_batch)
    return fail(*call, invalid("jobs must be an array of 1.." + std::to_string(options.max_batch) +
                               " jobs"));
  // Each job stands for itself: what is wrong about one does not stop the others.
  auto specs = std::make_shared<std::vector<Result<JobSpec>>>();
  for (const Json& one : *list) {
    Result<JobSpec> spec = submitted_job(one, options.default_priority);
    if (spec && spec->array_size > 0) spec = invalid("array is not possible in a batch");
    if (spec)
      if (Status s = may_submit_for(call->caller, spec->tenant_id); !s) spec = s.error();
    specs->push_back(std::move(spec));
  }
  submit_once(call, only_tenant(call->caller).value_or(""),
              [specs, call](Desk& desk) -> Result<Answered> {
                return submit_all(desk, *specs, call->caller);
              });
}

void Rest::Impl::dry_run(const CallPtr& call, const JobSpec& spec) {
  write(
      call, [spec](Desk& desk) { return desk.dry_run(spec); },
      [self = shared_from_this(), call](const DryRun& answer) {
        self->reply(*call, 200, dry_run_body(answer));
      });
}

// ---------------------------------------------------------------- looking

void Rest::Impl::list_jobs(const CallPtr& call) {
  Result<JobQuery> query = job_query(call->request());
  if (!query) return fail(*call, query.error());
  if (Status s = narrow(call->caller, query->tenant); !s) return fail(*call, s.error());
  read(
      call, [query = *query](Reader& reader) { return reader.jobs(query); },
      [self = shared_from_this(), call](const JobPage& page) {
        Json jobs = Json::array();
        for (const JobRow& row : page.jobs) jobs.push_back(job_body(row));
        Json body{{"jobs", std::move(jobs)},
                  {"total", page.total},
                  {"total_is_exact", page.total_is_exact},
                  {"next_cursor", page.next_cursor}};
        self->reply_cached(*call, body);
      });
}

void Rest::Impl::with_job(const CallPtr& call, std::function<void(const JobRow&)> then) {
  const std::string id = call->captured.front();
  const auto seq = job_seq(id);
  const Error missing = not_found("Job not found: " + id);
  if (!seq) return fail(*call, missing);
  read(
      call, [seq](Reader& reader) { return reader.job(*seq); },
      [self = shared_from_this(), call, then, missing](const std::optional<JobRow>& row) {
        if (!row || !may_see(call->caller, row->tenant)) return self->fail(*call, missing);
        then(*row);
      });
}

void Rest::Impl::get_job(const CallPtr& call) {
  with_job(call, [self = shared_from_this(), call](const JobRow& row) {
    self->reply_cached(*call, job_body(row));
  });
}

void Rest::Impl::explain_job(const CallPtr& call) {
  with_job(call, [self = shared_from_this(), call](const JobRow& row) {
    const std::int64_t seq = row.seq;
    Json head{{"job_id", job_id(seq)}, {"state", to_string(row.state)}, {"message", row.message}};
    if (is_final(row.state)) return self->reply(*call, 200, head);
    self->write(
        call,
        [seq](Desk& desk) -> Result<std::pair<Explanation, int>> {
          Result<Explanation> answer = desk.explain(seq);
          if (!answer) return answer.error();
          return std::pair(std::move(*answer), desk.queue_position(seq));
        },
        [self, call, head](const std::pair<Explanation, int>& answer) {
          Json body = explanation_body(answer.first);
          body.update(head);
          body["queue_position"] = answer.second;
          self->reply(*call, 200, body);
        });
  });
}

void Rest::Impl::job_events(const CallPtr& call) {
  Result<std::int64_t> limit = number_of(call->request(), "limit", 1000, 1, 10'000);
  if (!limit) return fail(*call, limit.error());
  with_job(call,
           [self = shared_from_this(), call, limit = static_cast<int>(*limit)](const JobRow& row) {
             EventQuery query;
             query.job = row.seq;
             query.limit = limit;
             Result<std::vector<EventRow>> rows = self->parts.reader.events(query);
             if (!rows) return self->fail(*call, rows.error());
             Json events = Json::array();
             // That it was submitted is known from the job itself.
             events.push_back({{"time", time_text(row.submitted)},
                               {"type", "job.submitted"},
                               {"job_id", job_id(row.seq)},
                               {"tenant_id", row.tenant},
                               {"message", "submitted"}});
             for (const EventRow& event : *rows)
               events.push_back(Json::parse(event_json(event), nullptr, false));
             self->reply(*call, 200, Json{{"events", std::move(events)}});
           });
}

// ---------------------------------------------------------------- changing

void Rest::Impl::change(const CallPtr& call, std::function<Status(Desk&, std::int64_t)> act,
                        std::string message) {
  with_job(call, [self = shared_from_this(), call, act, message](const JobRow& row) {
    if (Status s = may_change_jobs_of(call->caller, row.tenant); !s)
      return self->fail(*call, s.error());
    const std::int64_t seq = row.seq;
    self->write(
        call,
        [act, seq](Desk& desk) -> Result<std::string> {
          if (Status s = act(desk, seq); !s) return s.error();
          const JobRow* now = desk.job(seq);
          return std::string(now == nullptr ? "" : to_string(now->state));
        },
        [self, call, seq, message](const std::string& state) {
          Json body{{"job_id", job_id(seq)}, {"message", message}};
          if (!state.empty()) body["state"] = state;
          self->reply(*call, 200, body);
        });
  });
}

void Rest::Impl::cancel_job(const CallPtr& call) {
  change(
      call, [](Desk& desk, std::int64_t job) { return desk.cancel(job); },
      "Job cancelled successfully");
}

void Rest::Impl::hold_job(const CallPtr& call) {
  change(
      call, [](Desk& desk, std::int64_t job) { return desk.hold(job, true); }, "Job held");
}

void Rest::Impl::release_job(const CallPtr& call) {
  change(
      call, [](Desk& desk, std::int64_t job) { return desk.hold(job, false); }, "Job released");
}

void Rest::Impl::requeue_job(const CallPtr& call) {
  change(
      call, [](Desk& desk, std::int64_t job) { return desk.requeue(job); }, "Job queued again");
}

void Rest::Impl::change_job(const CallPtr& call) {
  Result<Json> body = parse_json(call->request().body());
  if (!body) return fail(*call, body.error());
  int priority = 0;
  ObjectReader in(*body);
  in.required("priority", priority);
  if (Status s = in.finish(); !s) return fail(*call, s.error());
  change(
      call, [priority](Desk& desk, std::int64_t job) { return desk.set_priority(job, priority); },
      "Priority changed");
}

}  // namespace gs
