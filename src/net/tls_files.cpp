#include "net/tls_files.hpp"

#include <cerrno>
#include <cstring>
#include <memory>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "net/freed.hpp"

namespace gs {
namespace {

using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

Error wrong(const std::string& what, const std::string& file, const std::string& why) {
  ERR_clear_error();
  return invalid("TLS " + what + " " + file + ": " + why);
}

std::string openssl_reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? std::string() : std::string(" (") + reason + ")";
}

Result<Bio> open_file(const std::string& what, const std::string& file) {
  errno = 0;
  Bio bio(BIO_new_file(file.c_str(), "r"));
  if (!bio) return wrong(what, file, std::strerror(errno));
  return bio;
}

// Nobody can be asked for a passphrase.
int no_passphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

}  // namespace

Status check_tls_files(const std::string& certificate_file, const std::string& key_file) {
  ERR_clear_error();
  Result<Bio> in = open_file("certificate", certificate_file);
  if (!in) return in.error();
  const Certificate certificate(PEM_read_bio_X509(in->get(), nullptr, nullptr, nullptr));
  if (!certificate)
    return wrong("certificate", certificate_file, "holds no certificate in PEM" + openssl_reason());
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0)
    return wrong("certificate", certificate_file, "has expired");
  in = open_file("key", key_file);
  if (!in) return in.error();
  bool encrypted = false;
  const Key key(PEM_read_bio_PrivateKey(in->get(), nullptr, no_passphrase, &encrypted));
  if (encrypted) return wrong("key", key_file, "is encrypted; one without a passphrase is needed");
  if (!key) return wrong("key", key_file, "holds no private key in PEM" + openssl_reason());
  if (X509_check_private_key(certificate.get(), key.get()) != 1)
    return wrong("key", key_file, "does not belong to the certificate " + certificate_file);
  return ok_status();
}

}  // namespace gs
