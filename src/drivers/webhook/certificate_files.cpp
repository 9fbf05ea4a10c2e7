#include "drivers/webhook/certificate_files.hpp"

#include <utility>

#include "wire/secret_file.hpp"

namespace gs::webhook {

CertificateFiles::CertificateFiles(std::string certificate_file, std::string key_file, Use use)
    : certificate_file_(std::move(certificate_file)),
      key_file_(std::move(key_file)),
      use_(std::move(use)) {}

Status CertificateFiles::look(Instant now) {
  Result<std::string> certificate = read_text_file(certificate_file_);
  if (!certificate) return certificate.error();
  Result<std::string> key = read_text_file(key_file_);
  if (!key) return key.error();
  KeyPair found{std::move(*certificate), std::move(*key)};
  if (found == current_) return ok_status();
  const std::string where = certificate_file_ + " and " + key_file_ + ": ";
  if (Status pair = check_pair(found); !pair) return invalid(where + pair.error().message);
  const Result<CertificateFacts> facts = read_certificate(found.certificate);
  if (!facts) return invalid(where + facts.error().message);
  if (facts->has_expired(now)) return invalid(where + "the certificate has expired");
  if (Status used = use_(found); !used) return used;
  current_ = std::move(found);
  return ok_status();
}

}  // namespace gs::webhook
