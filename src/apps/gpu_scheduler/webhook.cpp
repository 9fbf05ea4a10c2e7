#include "apps/gpu_scheduler/webhook.hpp"

#include <ctime>
#include <map>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <signal.h>

#include "apps/gpu_scheduler/device_naming_flag.hpp"
#include "apps/gpu_scheduler/log_flags.hpp"
#include "apps/gpu_scheduler/webhook_server.hpp"

namespace gs {
namespace {

// What is shorter could not be renewed in time.
constexpr std::uint64_t kShortestLifeS = 30, kLongestLifeS = 36'500 * 86'400ULL;
constexpr std::uint64_t kLongestPauseS = 86'400;

struct Flags : WebhookFlags {
  std::optional<kube::DeviceNaming> device_naming;
  LogFlags log;
};

Status check(const Flags& flags) {
  const bool has_files = !flags.tls_cert.empty() && !flags.tls_key.empty();
  const bool has_one = !flags.tls_cert.empty() || !flags.tls_key.empty();
  if (flags.self_signed && has_one)
    return invalid("use either --self-signed, or --tls-cert and --tls-key");
  if (!flags.self_signed && !has_files)
    return invalid(
        "a webhook needs a certificate: give --tls-cert and --tls-key, or --self-signed");
  return ok_status();
}

int run(const Flags& flags) {
  set_log(flags.log);
  if (Status usable = check(flags); !usable) {
    fmt::print(stderr, "gpu-scheduler: {}\n", usable.error().message);
    return 2;
  }
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  WebhookFlags wanted = flags;
  wanted.review.naming = flags.device_naming.value_or(wanted.review.naming);
  WebhookServer server(wanted);
  if (Status started = server.start(); !started) {
    fmt::print(stderr, "gpu-scheduler: {}\n", started.error().message);
    return 1;
  }
  int signal = 0;
  do sigwait(&signals, &signal);
  while (signal == SIGHUP);
  log_info("stopping", {{"after_s", flags.shutdown_delay_s}});
  server.drain();
  // Whoever is still sent here is answered; a second signal ends it at once.
  const timespec patience{static_cast<std::time_t>(flags.shutdown_delay_s), 0};
  sigtimedwait(&signals, nullptr, &patience);
  server.stop();
  return 0;
}

void add_certificate_flags(CLI::App& command, Flags& flags) {
  const std::map<std::string, std::uint64_t> units = {
      {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86'400}};
  const CLI::AsNumberWithUnit seconds(units);
  const CLI::Range lives(kShortestLifeS, kLongestLifeS), pauses(std::uint64_t{1}, kLongestPauseS);
  command.add_option("--tls-cert", flags.tls_cert,
                     "The certificate (PEM); read anew when it changes");
  command.add_option("--tls-key", flags.tls_key, "Its key");
  command.add_flag("--self-signed", flags.self_signed,
                   "Make an authority and a certificate, share them in a Secret, renew them, and "
                   "set the caBundle of the webhook configurations");
  command.add_option("--secret", flags.secret, "That Secret")->capture_default_str();
  command.add_option("--namespace", flags.name_space,
                     "Of the Secret and the Service; default: the one we run in");
  command.add_option("--service", flags.service, "The Service that the API server calls")
      ->capture_default_str();
  command.add_option(
      "--extra-name", flags.extra_names,
      "A DNS name or an IP address besides the Service's names; may be given several "
      "times");
  command
      .add_option("--webhook-config", flags.configuration,
                  "The Mutating- and ValidatingWebhookConfiguration whose caBundle is set; empty: "
                  "none")
      ->capture_default_str();
  command
      .add_option("--authority-life", flags.authority_life_s,
                  "How long an authority is good: 90d, 12h (3650d)")
      ->transform(seconds)
      ->check(lives);
  command
      .add_option("--certificate-life", flags.certificate_life_s,
                  "How long a certificate is good (365d)")
      ->transform(seconds)
      ->check(lives);
  command
      .add_option("--check-interval", flags.check_every_s,
                  "Between two looks at the Secret and the caBundle (10s)")
      ->transform(seconds)
      ->check(pauses);
}

}  // namespace

void add_webhook(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<Flags>();
  flags->review.scheduler_names = kube::MutateOptions{}.scheduler_names;
  CLI::App* command = app.add_subcommand(
      "webhook", "Review what is created in a Kubernetes cluster: an HTTPS admission webhook");
  command->add_option("--kubeconfig", flags->kubeconfig,
                      "A kubeconfig; without it KUBECONFIG, ~/.kube/config, or the pod's account");
  command->add_option("--context", flags->context, "A context of the kubeconfig");
  command->add_option("--bind", flags->bind, "Address to listen on")->capture_default_str();
  command->add_option("--port", flags->port, "HTTPS: /mutate, /validate, and as below")
      ->capture_default_str();
  command
      ->add_option("--health-port", flags->health_port, "HTTP: /health, /ready, /metrics; 0: none")
      ->capture_default_str();
  command->add_option("--scheduler-name", flags->review.scheduler_names,
                      "Names by which pods ask for us; may be given several times");
  command->add_option("--exclude-namespace", flags->review.excluded_namespaces,
                      "Nothing in it is changed or refused; may be given several times");
  command->add_flag("--nvidia-visible-devices", flags->review.nvidia_visible_devices,
                    "Set NVIDIA_VISIBLE_DEVICES too, for nodes without a device plugin");
  command->add_flag("--kubelet-chooses", flags->review.kubelet_chooses,
                    "Set no CUDA_VISIBLE_DEVICES where a limit of nvidia.com/gpu lets a device "
                    "plugin choose");
  add_device_naming_flag(*command, flags->device_naming);
  command
      ->add_option("--cufile-path", flags->review.cufile_path,
                   "CUFILE_ENV_PATH_JSON of pods whose claim asks for cuFile")
      ->capture_default_str();
  command
      ->add_option("--shutdown-delay", flags->shutdown_delay_s,
                   "Seconds to serve on after SIGTERM, until nobody is sent here any more")
      ->capture_default_str();
  add_certificate_flags(*command, *flags);
  add_log_flags(*command, flags->log);
  command->callback([flags, &exit_code] { exit_code = run(*flags); });
}

}  // namespace gs
