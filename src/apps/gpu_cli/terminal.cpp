#include "apps/gpu_cli/terminal.hpp"

#include <csignal>
#include <string>

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "apps/gpu_cli/cli.hpp"

namespace gs::cli {
namespace {

volatile std::sig_atomic_t stopped = 0;

void on_stop(int) { stopped = 1; }

void on_signals(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;  // without SA_RESTART: waiting ends
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

}  // namespace

TerminalSize terminal_size() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return {100, 1000};  // no terminal: as long as it needs
  return {size.ws_col, size.ws_row};
}

Screen::Screen() {
  on_signals(on_stop);
  has_keys_ = isatty(STDIN_FILENO) != 0 && tcgetattr(STDIN_FILENO, &before_) == 0;
  if (has_keys_) {
    termios keys = before_;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  }
  put("\033[?1049h\033[?25l\033[H\033[2J");
}

Screen::~Screen() {
  put("\033[?25h\033[?1049l");
  if (has_keys_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  on_signals(SIG_DFL);
}

// Each line is cleared behind its end and the rest below: no flicker.
void Screen::draw(std::string_view frame) {
  std::string out = "\033[H";
  for (const char c : frame) {
    if (c == '\n') out += "\033[K\r";
    out += c;
  }
  put(out + "\033[J");
}

bool Screen::wait(Duration time) {
  if (stopped != 0) return true;
  pollfd keys{has_keys_ ? STDIN_FILENO : -1, POLLIN, 0};
  if (poll(&keys, 1, static_cast<int>(time.ms)) > 0) {
    char key = 0;
    const auto got = read(STDIN_FILENO, &key, 1);
    return got <= 0 || key == 'q' || key == 'Q' || key == 3 || key == 27;
  }
  return stopped != 0;
}

}  // namespace gs::cli
