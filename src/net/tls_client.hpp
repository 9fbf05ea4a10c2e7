// The client's side of TLS: whom it trusts, and who it says it is.
#pragma once

#include <string>

#include <boost/asio/ssl/context.hpp>
#include <openssl/types.h>

#include "base/result.hpp"
#include "net/tls_options.hpp"

namespace gs {

// A context for connections as the options want them. An error names the file or the field.
Result<boost::asio::ssl::context> tls_client_context(const TlsOptions& options);

// Says to the server which of its names is meant, and checks its certificate against that name
// (unless the options trust anybody). `host` is the name in the URL.
void expect_server(SSL* connection, const TlsOptions& options, const std::string& host);

}  // namespace gs
