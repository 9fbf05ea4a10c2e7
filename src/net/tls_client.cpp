#include "net/tls_client.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/address.hpp>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace gs {
namespace asio = boost::asio;
namespace ssl = asio::ssl;
using boost::system::error_code;

namespace {

Error refused(const std::string& what, const std::string& file, const error_code& error) {
  return invalid(what + (file.empty() ? "" : " " + file) + ": " + error.message());
}

Status load_trust(ssl::context& context, const TlsOptions& options) {
  error_code error;
  if (!options.ca.empty())
    context.add_certificate_authority(asio::buffer(options.ca), error);
  else if (!options.ca_file.empty())
    context.load_verify_file(options.ca_file, error);
  else
    context.set_default_verify_paths(error);
  if (error) return refused("CA certificate", options.ca.empty() ? options.ca_file : "", error);
  return ok_status();
}

Status load_certificate(ssl::context& context, const TlsOptions& options) {
  if (options.certificate.empty() && options.certificate_file.empty()) return ok_status();
  error_code error;
  if (!options.certificate.empty())
    context.use_certificate_chain(asio::buffer(options.certificate), error);
  else
    context.use_certificate_chain_file(options.certificate_file, error);
  if (error)
    return refused("client certificate",
                   options.certificate.empty() ? options.certificate_file : "", error);
  if (!options.key.empty())
    context.use_private_key(asio::buffer(options.key), ssl::context::pem, error);
  else
    context.use_private_key_file(options.key_file, ssl::context::pem, error);
  if (error) return refused("client key", options.key.empty() ? options.key_file : "", error);
  return ok_status();
}

bool is_address(const std::string& host) {
  error_code error;
  asio::ip::make_address(host, error);
  return !error;
}

}  // namespace

Result<ssl::context> tls_client_context(const TlsOptions& options) {
  ssl::context context{ssl::context::tls_client};
  context.set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 |
                      ssl::context::no_tlsv1_1);
  // Connections wait much longer than they talk: their buffers need not wait with them.
  SSL_CTX_set_mode(context.native_handle(), SSL_MODE_RELEASE_BUFFERS);
  error_code ignored;
  context.set_verify_mode(options.trust_anybody ? ssl::verify_none : ssl::verify_peer, ignored);
  if (!options.trust_anybody)
    if (Status s = load_trust(context, options); !s) return s.error();
  if (Status s = load_certificate(context, options); !s) return s.error();
  return context;
}

void expect_server(SSL* connection, const TlsOptions& options, const std::string& host) {
  const std::string& name = options.server_name.empty() ? host : options.server_name;
  const bool by_address = is_address(name);
  if (!by_address) SSL_set_tlsext_host_name(connection, name.c_str());
  if (options.trust_anybody) return;
  X509_VERIFY_PARAM* rules = SSL_get0_param(connection);
  X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (by_address)
    X509_VERIFY_PARAM_set1_ip_asc(rules, name.c_str());
  else
    X509_VERIFY_PARAM_set1_host(rules, name.c_str(), name.size());
}

}  // namespace gs
