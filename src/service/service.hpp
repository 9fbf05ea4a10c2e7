// Service: the one writer. Callers post work from any thread; one thread drains the inbox, applies
// it to the Desk, runs at most one cycle, commits what changed, and only then sends orders to
// agents, answers callers and publishes events and the view.
//
// It leads only while the store says so. Without the lead every ask is answered with Unavailable.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "service/desk.hpp"
#include "service/events.hpp"
#include "service/view.hpp"

namespace gs {

struct ServiceOptions {
  DeskOptions desk;
  Duration interval = seconds(1);  // between cycles when nothing happens
  std::size_t inbox = 20'000;
  Retention retention;
};

// Times of one turn, for whoever measures.
struct TurnFigures {
  std::size_t asks = 0;
  double apply_s = 0, cycle_s = 0, commit_s = 0;
  bool ran_cycle = false;
  std::array<std::uint64_t, 7> entered{};  // jobs that came into each state
  std::vector<double> queue_waits_s;       // of jobs that got their first GPUs
  std::map<std::string, std::uint64_t> rejections;
  std::uint64_t commit_failures = 0;
};

class Service {
 public:
  using Clock = std::function<Instant()>;

  Service(ServiceOptions options, Store& store, Fleet& fleet, Clock clock);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  void start();
  void stop();  // what is in the inbox is still done

  // Runs f(Desk&), a function that returns a Result<T>, and calls done(Result<T>) when what it did
  // is durable; from the writer's thread, so it must be quick. False: the inbox is full.
  template <typename F, typename Done>
  bool ask(F f, Done done) {
    return post(std::make_unique<Typed<F, Done>>(std::move(f), std::move(done)));
  }

  std::shared_ptr<const ClusterView> view() const;
  EventBus& events() { return events_; }
  bool leads() const { return leads_; }
  void reconfigure(const DeskOptions& options);
  // Called after each turn by the writer's thread.
  void observe(std::function<void(const TurnFigures&)> observer) {
    observer_ = std::move(observer);
  }
  std::size_t inbox_depth() const;
  std::size_t inbox_capacity() const { return options_.inbox; }

 private:
  struct Work {
    virtual ~Work() = default;
    virtual void apply(Desk& desk) = 0;
    virtual void finish(const Error* error) = 0;  // nullptr: it is durable
    virtual const Error* refusal() const = 0;     // nullptr: it was accepted
  };
  template <typename F, typename Done>
  class Typed final : public Work {
   public:
    using Answer = std::invoke_result_t<F&, Desk&>;
    Typed(F f, Done done) : f_(std::move(f)), done_(std::move(done)) {}
    void apply(Desk& desk) override { answer_.emplace(f_(desk)); }
    void finish(const Error* error) override {
      if (error != nullptr)
        done_(Answer(*error));
      else
        done_(std::move(*answer_));
    }
    const Error* refusal() const override { return answer_->ok() ? nullptr : &answer_->error(); }

   private:
    F f_;
    Done done_;
    std::optional<Answer> answer_;
  };

  bool post(std::unique_ptr<Work> work);
  void run();
  bool take_lead();
  void drop_lead();
  void turn(std::vector<std::unique_ptr<Work>> works);
  bool cycle_is_due() const;
  Status commit(const Batch& batch, TurnFigures& figures);
  void publish(std::vector<EventRow> events);
  void refuse(std::vector<std::unique_ptr<Work>>& works);
  std::vector<std::unique_ptr<Work>> wait_for_work();
  void keep_house();

  ServiceOptions options_;
  Store& store_;
  Fleet& fleet_;
  Clock clock_;
  EventBus events_;
  std::function<void(const TurnFigures&)> observer_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::unique_ptr<Work>> inbox_;
  bool stopping_ = false;

  std::unique_ptr<Desk> desk_;  // only while leading; only the writer's thread
  std::atomic<bool> leads_{false};
  Instant last_cycle_, last_renewal_, last_housekeeping_;
  std::chrono::steady_clock::time_point cycle_ended_;
  std::chrono::steady_clock::duration cycle_took_{};
  std::uint64_t seen_nodes_ = 0;
  Instant nodes_viewed_, tenants_viewed_;
  bool nodes_changed_ = true;

  mutable std::mutex view_mutex_;
  std::shared_ptr<const ClusterView> view_ = std::make_shared<ClusterView>();
  std::thread thread_;
};

}  // namespace gs
