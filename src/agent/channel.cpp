#include "agent/channel.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/files.hpp"
#include "agent/log.hpp"

namespace gs::agent {
namespace {

std::shared_ptr<grpc::ChannelCredentials> credentials(const Options& options) {
  if (options.tls_ca.empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = read_file(options.tls_ca).value_or("");
  if (tls.pem_root_certs.empty()) log_warning("cannot read {}", options.tls_ca);
  return grpc::SslCredentials(tls);
}

std::string local_end(const addrinfo& target) {
  const Fd fd(::socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  // A datagram socket sends nothing when it connects; it only learns the way.
  if (!fd.valid() || ::connect(fd.get(), target.ai_addr, target.ai_addrlen) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0)
    return {};
  char text[NI_MAXHOST] = "";
  if (::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof text, nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return {};
  return text;
}

}  // namespace

std::shared_ptr<grpc::Channel> connect(const Options& options) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(64 * 1024 * 1024);
  return grpc::CreateCustomChannel(options.server, credentials(options), arguments);
}

std::string own_address(const Options& options) {
  if (!options.address.empty()) return options.address;
  const std::size_t colon = options.server.rfind(':');
  const std::string host = options.server.substr(0, colon);
  const std::string port = colon == std::string::npos ? "9090" : options.server.substr(colon + 1);
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return "127.0.0.1";
  std::string address;
  for (const addrinfo* one = found; one != nullptr && address.empty(); one = one->ai_next)
    address = local_end(*one);
  ::freeaddrinfo(found);
  return address.empty() ? "127.0.0.1" : address;
}

}  // namespace gs::agent
