// How a client trusts a server and proves who it is. PEM texts win over files.
#pragma once

#include <string>

namespace gs {

struct TlsOptions {
  std::string ca, ca_file;                    // neither: those that the system trusts
  std::string certificate, certificate_file;  // the client's own, with its chain; neither: none
  std::string key, key_file;                  // of the client's certificate
  std::string server_name;                    // empty: the host of the URL
  bool trust_anybody = false;                 // the server's certificate is not looked at

  bool operator==(const TlsOptions&) const = default;
};

}  // namespace gs
