#include "sim/interrupt.hpp"

namespace gs {
namespace {

volatile std::sig_atomic_t g_came = 0;

void note(int) { g_came = 1; }

}  // namespace

Interrupt::Interrupt() {
  g_came = 0;
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &before_int_);
  sigaction(SIGTERM, &action, &before_term_);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &before_int_, nullptr);
  sigaction(SIGTERM, &before_term_, nullptr);
}

bool Interrupt::came() const { return g_came != 0; }

void Interrupt::not_here() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

}  // namespace gs
